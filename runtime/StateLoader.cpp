// Each thread takes the next chunk, reads it into its own buffer, checks it and copies it to where its entries live. A
// large part of the time goes into the first touch of the state's pages, so the copies must be shared out like the
// reads.
#include "runtime/StateLoader.h"

#include "runtime/PieceRuns.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <thread>

namespace llmc {

/// Stored entries by their place in the file; checkPlan made sure that they do not overlap.
static std::vector<const StateEntry *> storedEntries(const Plan &plan) {
  std::vector<const StateEntry *> stored;
  for (const StateEntry &entry : plan.state)
    if ((entry.kind == StateKind::parameter || entry.kind == StateKind::constant) && entry.buffer.bytes > 0)
      stored.push_back(&entry);
  std::sort(stored.begin(), stored.end(), [](auto *a, auto *b) { return a->fileOffset < b->fileOffset; });
  return stored;
}

namespace {

class StateLoader {
public:
  StateLoader(const PlanFile &file, DeviceApi &device, std::byte *state)
      : file(file), device(device), state(state), entries(storedEntries(file.plan())) {}

  Status load(int numThreads) {
    std::vector<std::thread> others;
    for (int i = 1; i < numThreads; ++i)
      others.emplace_back([this] { loadChunks(); });
    loadChunks();
    for (std::thread &thread : others)
      thread.join();
    return status;
  }

private:
  void loadChunks() {
    std::vector<std::byte> buffer(std::min(kWeightsChunkBytes, file.weightsBytes()));
    for (size_t index = next++; index < file.numWeightsChunks(); index = next++) {
      Status loaded = loadChunk(index, buffer);
      if (loaded)
        continue;
      // Chunks are taken in order, so the first of those that fail is the same for any number of threads.
      std::lock_guard lock(mutex);
      if (status || index < failedChunk) {
        status = std::move(loaded);
        failedChunk = index;
      }
      next = file.numWeightsChunks();
      return;
    }
  }

  Status loadChunk(size_t index, std::span<std::byte> buffer) {
    auto chunk = file.readWeightsChunk(index, buffer);
    LLMC_RETURN_IF_ERROR(chunk);
    uint64_t chunkBegin = index * kWeightsChunkBytes, chunkEnd = chunkBegin + chunk->size();
    auto first = std::partition_point(entries.begin(), entries.end(), [&](const StateEntry *entry) {
      return entry->fileOffset + entry->buffer.bytes <= chunkBegin;
    });
    for (; first != entries.end() && (*first)->fileOffset < chunkEnd; ++first) {
      const StateEntry &entry = **first;
      uint64_t begin = std::max(chunkBegin, entry.fileOffset);
      uint64_t end = std::min(chunkEnd, entry.fileOffset + entry.buffer.bytes);
      auto copyRun = [&](const PieceRun &run) {
        return device.copyIn(state + entry.buffer.offset + run.memory,
                             chunk->subspan(entry.fileOffset + run.value - chunkBegin, run.bytes));
      };
      LLMC_RETURN_IF_ERROR(
          forEachRun(entry.rows, elementBytes(entry.type), begin - entry.fileOffset, end - begin, copyRun));
    }
    return {};
  }

  const PlanFile &file;
  DeviceApi &device;
  std::byte *state;
  std::vector<const StateEntry *> entries;
  std::atomic<size_t> next{0}; ///< the first chunk that no thread has taken
  std::mutex mutex;            ///< for what follows
  Status status;
  size_t failedChunk = 0;
};

} // namespace

Status loadWeights(const PlanFile &file, DeviceApi &device, std::byte *state, int threads) {
  if (file.numWeightsChunks() == 0)
    return {};
  size_t numThreads = std::clamp<size_t>(static_cast<size_t>(std::max(threads, 1)), 1, file.numWeightsChunks());
  return StateLoader(file, device, state).load(static_cast<int>(numThreads));
}

} // namespace llmc
