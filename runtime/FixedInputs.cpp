// Everything is checked and converted once, when loaded.
#include "runtime/FixedInputs.h"

#include "runtime/Safetensors.h"

#include <cstring>
#include <fmt/format.h>

namespace llmc {

static bool isInteger(ElementType type) { return type == ElementType::i64 || type == ElementType::i32; }

/// True where the file has rows for every rank and micro-batch.
static bool isDealt(const StateEntry &input, const InputMap &map) {
  return !input.shape.empty() && map.rows > 0 && input.shape[0] == map.rows;
}

static Status checkTensor(const SafetensorsView &tensor, const StateEntry &input, int64_t copies) {
  std::vector<int64_t> expected = input.shape;
  if (!expected.empty())
    expected[0] *= copies;
  bool isSameType = tensor.type == input.type || (isInteger(tensor.type) && isInteger(input.type));
  if (!isSameType || tensor.shape != expected)
    return Error{fmt::format("is {} ({}), expected {} ({})", elementTypeName(tensor.type),
                             fmt::join(tensor.shape, ", "), elementTypeName(input.type), fmt::join(expected, ", "))};
  return {};
}

/// Copies elements [first, first + as many as dst has) of a tensor, i64 to i32 or back where they differ.
static Status copyElements(const SafetensorsView &tensor, const StateEntry &input, uint64_t first,
                           std::span<std::byte> dst) {
  uint64_t elements = dst.size() / elementBytes(input.type);
  auto src = tensor.bytes.subspan(first * elementBytes(tensor.type), elements * elementBytes(tensor.type));
  if (tensor.type == input.type) {
    if (!src.empty())
      std::memcpy(dst.data(), src.data(), src.size());
    return {};
  }
  for (uint64_t i = 0; i < elements; ++i) {
    int64_t value = loadId(src, tensor.type, i);
    if (!storeId(dst, input.type, i, value))
      return Error{fmt::format("element {} is {}: too large for i32", first + i, value)};
  }
  return {};
}

/// Tokens must be inside the vocabulary, labels too or be the ignored one.
static Status checkIds(const StateEntry &input, bool isLabel, std::span<const std::byte> bytes) {
  for (uint64_t i = 0; i < bytes.size() / elementBytes(input.type); ++i) {
    int64_t id = loadId(bytes, input.type, i);
    bool isInside = id >= 0 && (input.vocabulary == 0 || id < input.vocabulary);
    if (!isInside && !(isLabel && id == input.ignoreIndex))
      return Error{fmt::format("element {} is {}: outside of the vocabulary [0, {}){}", i, id, input.vocabulary,
                               isLabel ? fmt::format(" and not {} (ignored)", input.ignoreIndex) : "")};
  }
  return {};
}

static Status loadInput(const SafetensorsFile &file, const InputMap &map, size_t index, RankShare share,
                        std::vector<Batch> &batches) {
  const StateEntry &input = *map.inputs[index];
  Result<SafetensorsView> tensor = file.find(input.name);
  LLMC_RETURN_IF_ERROR(tensor);
  bool dealt = isDealt(input, map);
  LLMC_RETURN_IF_ERROR(checkTensor(*tensor, input, dealt ? static_cast<int64_t>(batches.size()) * share.ranks : 1));
  for (size_t micro = 0; micro < batches.size(); ++micro) {
    std::span<std::byte> bytes = batches[micro].inputs[index];
    if (!dealt)
      LLMC_RETURN_IF_ERROR(copyElements(*tensor, input, 0, bytes));
    uint64_t rowBytes = dealt ? bytes.size() / static_cast<uint64_t>(map.rows) : 0;
    uint64_t rowElements = rowBytes / elementBytes(input.type);
    for (int64_t row = 0; dealt && row < map.rows; ++row) {
      uint64_t from = static_cast<uint64_t>(share.rowOfStep(static_cast<int64_t>(micro), map.rows, row));
      LLMC_RETURN_IF_ERROR(copyElements(*tensor, input, from * rowElements,
                                        bytes.subspan(static_cast<uint64_t>(row) * rowBytes, rowBytes)));
    }
    if (index == map.tokens || index == map.labels)
      LLMC_RETURN_IF_ERROR(checkIds(input, index == map.labels, bytes));
  }
  return {};
}

Result<FixedInputs> FixedInputs::load(const std::string &path, const InputMap &map, int64_t microBatches,
                                      RankShare share) {
  Result<SafetensorsFile> file = SafetensorsFile::open(path);
  LLMC_RETURN_IF_ERROR(file);
  FixedInputs fixed;
  fixed.batches.assign(static_cast<size_t>(microBatches), makeBatch(map));
  for (size_t i = 0; i < map.inputs.size(); ++i)
    if (Status status = loadInput(*file, map, i, share, fixed.batches); !status)
      return inContext(fmt::format("{}: input '{}'", path, map.inputs[i]->name), status.error());
  for (Batch &batch : fixed.batches) {
    batch.numTokens = map.rows * map.length;
    batch.numLabels = map.labels ? std::optional(countLabels(map, batch)) : std::nullopt;
  }
  return fixed;
}

Status FixedInputs::fill(int64_t step, int64_t micro, Batch &batch) {
  batch = batches[static_cast<size_t>(micro)];
  return {};
}

} // namespace llmc
