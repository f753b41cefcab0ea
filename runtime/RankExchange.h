// What the ranks tell each other around a step, in small messages: how much each brings, what loss each has summed, and
// whether they hold the same weights. On one rank nothing is sent.
#pragma once

#include "runtime/Comm.h"

namespace llmc {

class RankExchange {
public:
  /// `comm` may be null (one rank), and outlives the exchange.
  explicit RankExchange(CommApi *comm) : comm(comm) {}

  int rank() const { return comm ? comm->rank() : 0; }
  int worldSize() const { return comm ? comm->worldSize() : 1; }

  /// What a rank brings to a step.
  struct Contribution {
    int64_t microBatches = 0;
    int64_t tokens = 0;
    int64_t labels = 0; ///< that count
    /// micro-batches whose graph has no labels to count
    int64_t microBatchesWithoutLabels = 0;
  };
  /// Of all ranks together. Before a step rather than in its programs: then a gradient is that of the mean wherever it
  /// is summed, clipped or exported, counts are exact beyond 2^24, and a step without any label is refused before it
  /// changes a weight. 32 bytes, at a point where the ranks have just met.
  Result<Contribution> sum(const Contribution &mine);
  /// Added in the order of the ranks, in double: the same bits on all of them.
  Result<double> sum(double mine, std::string_view label);
  /// Sums f32 numbers in place and waits for them.
  Status sum(std::span<std::byte> buffer, std::string_view label);
  /// Fails where a rank holds another hash than rank 0: "rank 2 has other <what> than rank 0".
  Status requireSame(uint64_t hash, std::string_view what);

  /// Of the network since the last call; zero on one rank.
  CommTimes takeTimes();

private:
  /// Every rank's `mine`, in rank order.
  template <typename T> Result<std::vector<T>> gather(const T &mine, std::string_view label);

  CommApi *comm;
};

} // namespace llmc
