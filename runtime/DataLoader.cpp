// No state but the file and a row's buffer: a batch is computed from (step, micro-batch) each time.
#include "runtime/DataLoader.h"

#include "runtime/Random.h"

#include <fmt/format.h>

namespace llmc {

Result<DataLoader> DataLoader::create(TokenFile file, const InputMap &map, const DataOptions &options) {
  LLMC_RETURN_IF_ERROR(requireOnlyTokensAndLabels(map));
  uint64_t length = static_cast<uint64_t>(map.length), tokens = file.numTokens();
  if (tokens < length + 1)
    return Error{fmt::format("{}: {} tokens are less than one window of {} + 1", file.path(), tokens, length)};
  DataLoader loader(std::move(file), map, options);
  loader.windows = (tokens - 1) / length;
  // Without labels nothing can be ignored, so a step must be full.
  loader.options.dropLast = options.dropLast || !map.labels;
  uint64_t rows = static_cast<uint64_t>(loader.rowsPerStep());
  loader.numSteps =
      static_cast<int64_t>(loader.options.dropLast ? loader.windows / rows : (loader.windows + rows - 1) / rows);
  if (loader.numSteps == 0)
    return Error{fmt::format("{}: {} windows of {} tokens do not fill one step of {} rows", loader.file.path(),
                             loader.windows, length, rows)};
  return loader;
}

/// Ids that the plan's embedding (all but the window's last) or loss cannot take.
Status DataLoader::checkIds(uint64_t first) const {
  int64_t tokensLimit = map.tokensEntry().vocabulary;
  int64_t labelsLimit = map.labels ? map.labelsEntry().vocabulary : 0;
  for (size_t i = 0; i < window.size(); ++i) {
    bool isToken = i + 1 < window.size(), isLabel = map.labels && (map.labelsShifted ? i > 0 : isToken);
    for (auto [isUsed, limit] : {std::pair(isToken, tokensLimit), std::pair(isLabel, labelsLimit)})
      if (isUsed && (window[i] < 0 || (limit > 0 && window[i] >= limit)))
        return Error{fmt::format("{}: token {} at byte {} is outside of the vocabulary [0, {})", file.path(), window[i],
                                 file.byteOffset(first + i), limit)};
  }
  return {};
}

Status DataLoader::fill(int64_t step, int64_t micro, Batch &batch) {
  int64_t epoch = step / numSteps;
  int64_t first = (step % numSteps) * rowsPerStep();
  Permutation shuffle(windows, mixBits(mixBits(options.seed) ^ static_cast<uint64_t>(epoch)));
  batch.numTokens = 0;
  for (int64_t row = 0; row < map.rows; ++row) {
    uint64_t position = static_cast<uint64_t>(first + options.share.rowOfStep(micro, map.rows, row));
    if (position >= windows) {
      LLMC_RETURN_IF_ERROR(storeRow(map, row, {}, batch));
      continue;
    }
    uint64_t token = shuffle(position) * static_cast<uint64_t>(map.length);
    LLMC_RETURN_IF_ERROR(file.read(token, window));
    LLMC_RETURN_IF_ERROR(checkIds(token));
    LLMC_RETURN_IF_ERROR(storeRow(map, row, window, batch));
    batch.numTokens += map.length;
  }
  batch.numLabels = map.labels ? std::optional(countLabels(map, batch)) : std::nullopt;
  return {};
}

} // namespace llmc
