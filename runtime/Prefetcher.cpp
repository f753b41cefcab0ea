// A slot belongs to the thread while empty and to the caller while full.
#include "runtime/Prefetcher.h"

namespace llmc {

Prefetcher::Prefetcher(BatchSource &source, const InputMap &map, int64_t firstStep, int64_t numSteps,
                       int64_t microBatches)
    : source(source) {
  for (Slot &slot : slots)
    slot.batches.assign(static_cast<size_t>(microBatches), makeBatch(map));
  thread = std::thread([=, this] { fillAll(firstStep, numSteps); });
}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard lock(mutex);
    isStopped = true;
  }
  changed.notify_all();
  thread.join();
}

void Prefetcher::fillAll(int64_t firstStep, int64_t numSteps) {
  for (int64_t i = 0; i < numSteps; ++i) {
    Slot &slot = slots[static_cast<size_t>(i % 2)];
    {
      std::unique_lock lock(mutex);
      changed.wait(lock, [&] { return isStopped || !slot.isFull; });
      if (isStopped)
        return;
    }
    Status status;
    for (size_t micro = 0; micro < slot.batches.size() && status; ++micro)
      status = source.fill(firstStep + i, static_cast<int64_t>(micro), slot.batches[micro]);
    bool failed = !status;
    {
      std::lock_guard lock(mutex);
      slot.status = std::move(status);
      slot.isFull = true;
    }
    changed.notify_all();
    if (failed)
      return;
  }
}

Result<std::span<const Batch>> Prefetcher::next() {
  std::unique_lock lock(mutex);
  if (taken > 0) {
    slots[static_cast<size_t>((taken - 1) % 2)].isFull = false;
    changed.notify_all();
  }
  Slot &slot = slots[static_cast<size_t>(taken % 2)];
  changed.wait(lock, [&] { return slot.isFull; });
  LLMC_RETURN_IF_ERROR(slot.status);
  ++taken;
  return std::span<const Batch>(slot.batches);
}

} // namespace llmc
