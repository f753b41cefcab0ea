// Batches of a token file. Window k is tokens [kT, kT+T]; an epoch visits every window once, in an order that depends
// on (seed, epoch) only; step s of an epoch takes the next rowsPerStep windows of that order and deals them to the
// ranks one by one, as PyTorch's DistributedSampler does. So the same windows make a step whatever the number of ranks
// or micro-batches that share it.
#pragma once

#include "runtime/Batch.h"
#include "runtime/TokenFile.h"

namespace llmc {

struct DataOptions {
  uint64_t seed = 0;
  int64_t microBatches = 1; ///< of a rank's step
  bool dropLast =
      false; ///< leave out an epoch's last step when it is not full, instead of filling it with ignored labels
  RankShare share = {};
};

class DataLoader : public BatchSource {
public:
  /// Fails when the file has not one window (or, with dropLast, not one full step), or the plan has other inputs.
  static Result<DataLoader> create(TokenFile file, const InputMap &map, const DataOptions &options);

  Status fill(int64_t step, int64_t micro, Batch &batch) override;
  std::optional<int64_t> stepsPerEpoch() const override { return numSteps; }
  uint64_t numWindows() const { return windows; }
  /// Rows of a whole step: B x micro-batches x ranks.
  int64_t rowsPerStep() const { return map.rows * options.microBatches * options.share.ranks; }

private:
  DataLoader(TokenFile file, const InputMap &map, const DataOptions &options)
      : file(std::move(file)), map(map), options(options), window(static_cast<size_t>(map.length) + 1) {}
  /// Fails where `window`, which stands at token `first` of the file, has ids that the plan cannot take.
  Status checkIds(uint64_t first) const;

  TokenFile file;
  InputMap map;
  DataOptions options;
  std::vector<int64_t> window; ///< T + 1 tokens, filled again for each row
  uint64_t windows = 0;
  int64_t numSteps = 0;
};

} // namespace llmc
