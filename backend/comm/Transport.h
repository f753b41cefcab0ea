// How bytes get from rank to rank: blocking collectives, called by one thread. Two of them: shared memory between the
// processes of one machine, Gloo over TCP between machines. Both cut a buffer into one slice a rank, and each rank adds
// up its slice in the order of the ranks: the same bits on all ranks, with either, and at every run.
#pragma once

#include "runtime/Plan.h"

#include <chrono>
#include <span>

namespace llmc {

enum class CollectiveKind : uint8_t { allReduce, broadcast, allGather };

/// What all ranks must mean alike when they come together.
struct CollectiveCall {
  CollectiveKind kind = CollectiveKind::allReduce;
  ElementType type = ElementType::f32; ///< of allReduce
  int32_t root = 0;                    ///< of broadcast
  uint64_t bytes = 0;                  ///< of a rank's buffer
  uint64_t labelHash = 0;
  bool operator==(const CollectiveCall &) const = default;
};

class Transport {
public:
  virtual ~Transport() = default;
  virtual std::string describe() const = 0;
  /// Comes to the next collective and waits for the others: what each rank means, in rank order. After it one of the
  /// three below (none of them for an allGather of no bytes), if all mean the same.
  virtual Result<std::span<const CollectiveCall>> meet(const CollectiveCall &mine) = 0;
  /// Ranks that have not come to the present collective.
  virtual std::vector<int> absent() const = 0;
  virtual Status allReduce(std::span<std::byte> buffer, ElementType type) = 0;
  virtual Status broadcast(std::span<std::byte> buffer, int root) = 0;
  virtual Status allGather(std::span<const std::byte> mine, std::span<std::byte> all) = 0;
  /// Makes a call that waits return with an error, now or when it next waits. From any thread.
  virtual void interrupt() = 0;
};

/// Elements [begin, end) of `count` that rank `index` of `parts` adds up; borders are multiples of 32.
struct Slice {
  uint64_t begin = 0, end = 0;
  uint64_t size() const { return end - begin; }
};
inline Slice sliceOf(uint64_t count, int index, int parts) {
  uint64_t blocks = (count + 31) / 32;
  auto border = [&](int i) {
    return std::min(count, blocks * static_cast<uint64_t>(i) / static_cast<uint64_t>(parts) * 32);
  };
  return {border(index), border(index + 1)};
}

} // namespace llmc
