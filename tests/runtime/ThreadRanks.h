// Ranks as threads of one process: a CommApi without a network. It is strict where a real one is only undefined: what a
// rank hands over is filled with NaN until its wait, and a disagreement about size, type, label or order fails.
#pragma once

#include "runtime/Comm.h"

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

namespace llmc::test {

class ThreadRanks {
public:
  explicit ThreadRanks(int worldSize);
  ~ThreadRanks();

  CommApi &of(int rank);
  /// Calls body(rank) on a thread for each rank; the first error of any. A rank that fails takes the others along.
  Status run(const std::function<Status(int rank)> &body);
  /// How many sums rank 0 has started.
  uint64_t numSums() const;

private:
  friend class ThreadComm;
  /// Everyone arrives with a text and a piece of memory; all see the others' when it returns. Fails where texts differ.
  Status meet(int rank, const std::string &what, std::span<std::byte> memory);

  std::mutex mutex;
  std::condition_variable changed;
  int numArrived = 0;
  uint64_t round = 0;
  bool isBroken = false;
  std::vector<std::string> whats;
  std::vector<std::span<std::byte>> memories;
  std::vector<std::unique_ptr<CommApi>> comms;
};

} // namespace llmc::test
