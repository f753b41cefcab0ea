// Where the ranks of a communicator meet: memory that their processes share, a slot for each. A rank publishes what it
// calls and its data under the collective's number; whoever finds all ranks at that number reads theirs. A slot is
// written anew when all ranks have finished the collective before.
#pragma once

#include "runtime/Status.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace llmc::cudasim {

enum class Collective : uint32_t { allReduce, reduceScatter, allGather, broadcast };

/// What a rank calls; all must call the same.
struct Call {
  Collective collective;
  /// Elements that this rank sends.
  uint64_t count;
  int32_t type;
  int32_t reduction;
  int32_t root;
  bool operator==(const Call &) const = default;
};

/// A call in words, as reports show it.
std::string describe(const Call &call);

class Meeting {
public:
  static constexpr uint64_t kSlotBytes = uint64_t(1) << 26;

  /// Joins the meeting of this name as `rank` of `numRanks`, making it if it is the first.
  static Result<std::unique_ptr<Meeting>> join(const std::string &name, int rank, int numRanks);
  ~Meeting();

  bool allJoined() const;
  /// Whether this rank may write its slot for the collective: all have finished the one before.
  bool mayPublish(uint64_t number) const;
  void publish(uint64_t number, const Call &call, const std::byte *data, uint64_t bytes);
  bool allPublished(uint64_t number) const;
  void finish(uint64_t number);

  const Call &call(int rank) const;
  const std::byte *data(int rank) const;
  /// A rank whose process is gone, or -1.
  int deadRank() const;
  int rank() const { return self; }
  int numRanks() const { return count; }

private:
  struct Slot;
  Meeting(std::byte *base, std::string name, int rank, int numRanks);
  Slot &slot(int rank) const;
  std::byte *base;
  std::string name;
  int self;
  int count;
};

} // namespace llmc::cudasim
