// Threads read and hash chunks into a ring of buffers; the caller's thread, which alone may use the device, copies them
// out in order. So the time is that of the slower of the two, and the extra memory a few chunks.
#include "runtime/StateLoader.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

namespace llmc {

namespace {

class ChunkRing {
public:
  ChunkRing(const PlanFile &file, int numThreads) : file(file), slots(static_cast<size_t>(numThreads) + 2) {
    for (int i = 0; i < numThreads; ++i)
      threads.emplace_back([this] { readChunks(); });
  }

  ~ChunkRing() {
    {
      std::lock_guard lock(mutex);
      isStopped = true;
    }
    changed.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  /// Waits for the next chunk, in order; valid until release().
  Result<std::span<const std::byte>> next() {
    std::unique_lock lock(mutex);
    Slot &slot = slots[numTaken % slots.size()];
    changed.wait(lock, [&] { return slot.isFull; });
    LLMC_RETURN_IF_ERROR(slot.status);
    return slot.chunk;
  }

  void release() {
    {
      std::lock_guard lock(mutex);
      slots[numTaken % slots.size()].isFull = false;
      ++numTaken;
    }
    changed.notify_all();
  }

private:
  struct Slot {
    std::vector<std::byte> buffer;
    std::span<const std::byte> chunk;
    Status status;
    bool isFull = false;
  };

  void readChunks() {
    for (;;) {
      std::unique_lock lock(mutex);
      size_t index = numStarted++;
      if (index >= file.numWeightsChunks())
        return;
      changed.wait(lock, [&] { return isStopped || index < numTaken + slots.size(); });
      if (isStopped)
        return;
      lock.unlock();
      Slot &slot = slots[index % slots.size()];
      slot.buffer.resize(std::min(kWeightsChunkBytes, file.weightsBytes()));
      auto chunk = file.readWeightsChunk(index, slot.buffer);
      lock.lock();
      slot.status = chunk.status();
      slot.chunk = chunk ? *chunk : std::span<const std::byte>();
      slot.isFull = true;
      lock.unlock();
      changed.notify_all();
    }
  }

  const PlanFile &file;
  std::vector<Slot> slots;
  std::mutex mutex;
  std::condition_variable changed;
  size_t numStarted = 0; ///< chunks that threads have begun to read
  size_t numTaken = 0;   ///< chunks copied out
  bool isStopped = false;
  std::vector<std::thread> threads;
};

} // namespace

/// Stored entries by their place in the file; checkPlan made sure that they do not overlap.
static std::vector<const StateEntry *> storedEntries(const Plan &plan) {
  std::vector<const StateEntry *> stored;
  for (const StateEntry &entry : plan.state)
    if ((entry.kind == StateKind::parameter || entry.kind == StateKind::constant) && entry.buffer.bytes > 0)
      stored.push_back(&entry);
  std::sort(stored.begin(), stored.end(), [](auto *a, auto *b) { return a->fileOffset < b->fileOffset; });
  return stored;
}

Status loadWeights(const PlanFile &file, DeviceApi &device, std::byte *state, int threads) {
  std::vector<const StateEntry *> entries = storedEntries(file.plan());
  size_t first = 0;
  size_t numChunks = file.numWeightsChunks();
  if (numChunks == 0)
    return {};
  ChunkRing ring(file, static_cast<int>(std::clamp<size_t>(static_cast<size_t>(std::max(threads, 1)), 1, numChunks)));
  for (size_t i = 0; i < numChunks; ++i) {
    auto chunk = ring.next();
    LLMC_RETURN_IF_ERROR(chunk);
    uint64_t chunkBegin = i * kWeightsChunkBytes, chunkEnd = chunkBegin + chunk->size();
    for (size_t e = first; e < entries.size() && entries[e]->fileOffset < chunkEnd; ++e) {
      const StateEntry &entry = *entries[e];
      uint64_t entryEnd = entry.fileOffset + entry.buffer.bytes;
      uint64_t begin = std::max(chunkBegin, entry.fileOffset), end = std::min(chunkEnd, entryEnd);
      LLMC_RETURN_IF_ERROR(device.copyIn(state + entry.buffer.offset + (begin - entry.fileOffset),
                                         chunk->subspan(begin - chunkBegin, end - begin)));
      if (entryEnd <= chunkEnd)
        first = e + 1;
    }
    ring.release();
  }
  return {};
}

} // namespace llmc
