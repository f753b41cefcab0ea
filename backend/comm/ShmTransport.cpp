// Order without locks: a rank counts the actions it has done, all ranks do the same sequence of actions, so "rank j has
// done action n" is "j's count is at least n". Waiting is a futex on j's count, woken once in a while to see whether
// the run has failed.
#include "backend/comm/ShmTransport.h"

#include "backend/comm/Sum.h"

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstring>
#include <fmt/format.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace llmc {

namespace {

constexpr uint64_t kRing = 4; ///< chunks a rank may be ahead
constexpr uint64_t kMaxChunkBytes = 256 << 10, kMinChunkBytes = 16 << 10, kRingBytes = 16 << 20;
constexpr timespec kLook = {0, 50'000'000}; ///< between two looks at the state of the run

/// What a rank shows the others.
struct alignas(128) Cell {
  std::atomic<uint32_t> done;     ///< actions; wraps
  std::atomic<uint32_t> sleepers; ///< ranks that wait for `done` to change
  CollectiveCall calls[2];        ///< of the present collective and the one before
};
static_assert(std::atomic<uint32_t>::is_always_lock_free);

class ShmTransport : public Transport {
public:
  explicit ShmTransport(Rendezvous &ranks) : ranks(ranks), rank(ranks.rank()), size(ranks.worldSize()) {
    uint64_t rows = kRing * static_cast<uint64_t>(size + 1);
    chunkBytes = std::clamp(kRingBytes / rows / 4096 * 4096, kMinChunkBytes, kMaxChunkBytes);
    calls.resize(static_cast<size_t>(size));
    sources.resize(static_cast<size_t>(size));
  }

  Status open() {
    uint64_t cellBytes = (sizeof(Cell) * static_cast<uint64_t>(size) + 4095) / 4096 * 4096;
    Result<SharedMemory> made =
        SharedMemory::create(ranks, cellBytes + chunkBytes * kRing * static_cast<uint64_t>(size + 1));
    LLMC_RETURN_IF_ERROR(made);
    memory = std::move(*made);
    cells = reinterpret_cast<Cell *>(memory.data());
    buffers = memory.data() + cellBytes;
    return {};
  }

  std::string describe() const override { return "shared memory"; }

  Result<std::span<const CollectiveCall>> meet(const CollectiveCall &mine) override {
    size_t turn = ++number % 2;
    cells[rank].calls[turn] = mine;
    act();
    meeting = count;
    LLMC_RETURN_IF_ERROR(awaitAll(meeting));
    for (int other = 0; other < size; ++other)
      calls[static_cast<size_t>(other)] = cells[other].calls[turn];
    base = count;
    return std::span<const CollectiveCall>(calls);
  }

  std::vector<int> absent() const override {
    std::vector<int> found;
    for (int other = 0; other < size; ++other)
      if (!hasDone(other, meeting))
        found.push_back(other);
    return found;
  }

  /// Turn t: publish chunk t, add up chunk t - 1, take chunk t - 2. Three actions a turn.
  Status allReduce(std::span<std::byte> buffer, ElementType type) override {
    uint64_t chunks = numChunks(buffer.size()), elements = elementBytes(type);
    for (uint64_t turn = 0; turn < chunks + 2; ++turn) {
      if (turn < chunks) {
        if (turn >= kRing) // its place is free: chunk t - ring has been added up
          LLMC_RETURN_IF_ERROR(awaitTurn(turn - kRing + 1, 3, 2));
        publishOthersSlices(chunkOf(buffer, turn), turn, elements);
      }
      act();
      if (turn >= 1 && turn - 1 < chunks) {
        LLMC_RETURN_IF_ERROR(awaitTurn(turn - 1, 3, 1)); // all have published it
        if (turn - 1 >= kRing)                           // the sums' place is free: chunk t - 1 - ring has been taken
          LLMC_RETURN_IF_ERROR(awaitTurn(turn - 1 - kRing + 2, 3, 3));
        addUpSlice(chunkOf(buffer, turn - 1), turn - 1, type);
      }
      act();
      if (turn >= 2) {
        LLMC_RETURN_IF_ERROR(awaitTurn(turn - 1, 3, 2)); // all have added it up
        takeOthersSlices(chunkOf(buffer, turn - 2), turn - 2, elements);
      }
      act();
    }
    return {};
  }

  Status broadcast(std::span<std::byte> buffer, int root) override {
    return spread(rank == root ? buffer : std::span<std::byte>(), buffer.size(), [&](uint64_t chunk) {
      std::span<std::byte> to = chunkOf(buffer, chunk);
      if (rank != root)
        std::memcpy(to.data(), place(root, chunk), to.size());
    });
  }

  Status allGather(std::span<const std::byte> mine, std::span<std::byte> all) override {
    return spread(mine, mine.size(), [&](uint64_t chunk) {
      for (int other = 0; other < size; ++other) {
        std::span<std::byte> to = chunkOf(all.subspan(mine.size() * static_cast<size_t>(other), mine.size()), chunk);
        std::memcpy(to.data(), place(other, chunk), to.size());
      }
    });
  }

  void interrupt() override { isInterrupted = true; } // seen at the next look

private:
  /// Turn t: publish chunk t (who has one), take chunk t - 1. Two actions a turn.
  template <typename Take> Status spread(std::span<const std::byte> mine, uint64_t bytes, Take take) {
    uint64_t chunks = numChunks(bytes);
    for (uint64_t turn = 0; turn < chunks + 1; ++turn) {
      if (turn < chunks) {
        if (turn >= kRing) // its place is free: chunk t - ring has been taken
          LLMC_RETURN_IF_ERROR(awaitTurn(turn - kRing + 1, 2, 2));
        if (!mine.empty()) {
          std::span<const std::byte> from = chunkOf(mine, turn);
          std::memcpy(place(rank, turn), from.data(), from.size());
        }
      }
      act();
      if (turn >= 1) {
        LLMC_RETURN_IF_ERROR(awaitTurn(turn - 1, 2, 1)); // all have published it
        take(turn - 1);
      }
      act();
    }
    return {};
  }

  uint64_t numChunks(uint64_t bytes) const { return (bytes + chunkBytes - 1) / chunkBytes; }
  template <typename Byte> std::span<Byte> chunkOf(std::span<Byte> buffer, uint64_t chunk) const {
    uint64_t begin = chunk * chunkBytes;
    return buffer.subspan(begin, std::min(chunkBytes, buffer.size() - begin));
  }
  /// Where a rank publishes a chunk; row `size` holds the sums.
  std::byte *place(int row, uint64_t chunk) const {
    return buffers + (static_cast<uint64_t>(row) * kRing + chunk % kRing) * chunkBytes;
  }

  void publishOthersSlices(std::span<std::byte> chunk, uint64_t index, uint64_t elements) {
    Slice mine = sliceOf(chunk.size() / elements, rank, size);
    std::byte *to = place(rank, index);
    std::memcpy(to, chunk.data(), mine.begin * elements);
    std::memcpy(to + mine.end * elements, &chunk.data()[mine.end * elements], chunk.size() - mine.end * elements);
  }

  void addUpSlice(std::span<std::byte> chunk, uint64_t index, ElementType type) {
    uint64_t elements = elementBytes(type);
    Slice mine = sliceOf(chunk.size() / elements, rank, size);
    for (int other = 0; other < size; ++other)
      sources[static_cast<size_t>(other)] =
          (other == rank ? chunk.data() : place(other, index)) + mine.begin * elements;
    std::byte *sum = place(size, index) + mine.begin * elements;
    sumInto(sum, sources, mine.size(), type);
    std::memcpy(chunk.data() + mine.begin * elements, sum, mine.size() * elements);
  }

  void takeOthersSlices(std::span<std::byte> chunk, uint64_t index, uint64_t elements) {
    Slice mine = sliceOf(chunk.size() / elements, rank, size);
    const std::byte *from = place(size, index);
    std::memcpy(chunk.data(), from, mine.begin * elements);
    std::memcpy(chunk.data() + mine.end * elements, from + mine.end * elements, chunk.size() - mine.end * elements);
  }

  bool hasDone(int other, uint32_t target) const {
    return static_cast<int32_t>(cells[other].done.load(std::memory_order_acquire) - target) >= 0;
  }

  /// Counts one action done.
  void act() {
    Cell &mine = cells[rank];
    mine.done.store(++count, std::memory_order_seq_cst);
    if (mine.sleepers.load(std::memory_order_seq_cst) > 0)
      ::syscall(SYS_futex, &mine.done, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
  }

  /// Waits until all have done an action (the first of a turn is 1) of a turn.
  Status awaitTurn(uint64_t turn, uint32_t actionsPerTurn, uint32_t action) {
    return awaitAll(base + static_cast<uint32_t>(turn) * actionsPerTurn + action);
  }

  Status awaitAll(uint32_t target) {
    for (int other = 0; other < size; ++other)
      if (!hasDone(other, target))
        LLMC_RETURN_IF_ERROR(await(other, target));
    return {};
  }

  Status await(int other, uint32_t target) {
    Cell &cell = cells[other];
    auto start = std::chrono::steady_clock::now();
    cell.sleepers.fetch_add(1, std::memory_order_seq_cst);
    Status status;
    while (status && !hasDone(other, target)) {
      uint32_t seen = cell.done.load(std::memory_order_seq_cst);
      if (static_cast<int32_t>(seen - target) < 0)
        ::syscall(SYS_futex, &cell.done, FUTEX_WAIT, seen, &kLook, nullptr, 0);
      if (isInterrupted && !ranks.failure())
        status = Error{"interrupted"};
      else if (std::optional<RankFailure> failure = ranks.failure())
        status = Error{failure->message};
      else if (std::chrono::steady_clock::now() - start > ranks.patience())
        status = Error{fmt::format("rank {} lives and does not come", other)};
    }
    cell.sleepers.fetch_sub(1, std::memory_order_seq_cst);
    return status;
  }

  Rendezvous &ranks;
  int rank, size;
  uint64_t chunkBytes = 0;
  SharedMemory memory;
  Cell *cells = nullptr;
  std::byte *buffers = nullptr;
  uint32_t count = 0;   ///< my actions
  uint32_t base = 0;    ///< my actions before the first turn
  uint32_t meeting = 0; ///< the count of who has come to it
  uint64_t number = 0;
  std::atomic<bool> isInterrupted{false};
  std::vector<CollectiveCall> calls;
  std::vector<const std::byte *> sources;
};

} // namespace

Result<std::unique_ptr<Transport>> makeShmTransport(Rendezvous &ranks) {
  auto transport = std::make_unique<ShmTransport>(ranks);
  LLMC_RETURN_IF_ERROR(transport->open());
  return std::unique_ptr<Transport>(std::move(transport));
}

} // namespace llmc
