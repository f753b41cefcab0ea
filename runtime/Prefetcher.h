// Reads the next step's batches on a background thread while the current step runs. Two slots, each a whole step,
// because the scale of the loss needs the labels of all micro-batches before the first of them runs.
#pragma once

#include "runtime/Batch.h"

#include <array>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace llmc {

class Prefetcher {
public:
  /// Steps [firstStep, firstStep + numSteps) of `source`, which must outlive this. The thread starts at once.
  Prefetcher(BatchSource &source, const InputMap &map, int64_t firstStep, int64_t numSteps, int64_t microBatches);
  ~Prefetcher();
  Prefetcher(const Prefetcher &) = delete;
  Prefetcher &operator=(const Prefetcher &) = delete;

  /// The next step's batches, valid until the next call; waits for them where the thread is behind. The source's error,
  /// if it had one. At most numSteps calls.
  Result<std::span<const Batch>> next();

private:
  struct Slot {
    std::vector<Batch> batches;
    Status status;
    bool isFull = false;
  };
  void fillAll(int64_t firstStep, int64_t numSteps);

  BatchSource &source;
  std::array<Slot, 2> slots;
  std::mutex mutex;
  std::condition_variable changed;
  bool isStopped = false;
  int64_t taken = 0;
  std::thread thread; ///< last: starts when everything else is ready
};

} // namespace llmc
