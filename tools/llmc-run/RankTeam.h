// This process among the ranks of its run: joins them, compares what they were told, and after every step tells the
// others what they cannot see. A run of one rank has none.
#pragma once

#include "runtime/Comm.h"
#include "runtime/Rendezvous.h"
#include "tools/llmc-run/EndGuard.h"
#include "tools/llmc-run/RunOptions.h"

#include <atomic>

namespace llmc {

/// What a rank tells the others after a step.
struct StepNote {
  double busyMs = 0;        ///< of the step, without waiting for data or other ranks
  uint64_t weightsHash = 0; ///< with --verify-ranks
  int64_t tokens = 0;       ///< of a forward run
  int64_t signal = 0;       ///< that asked this rank to stop; 0: none
};

class RankTeam {
public:
  struct Options {
    RankPlace place;
    MeetingPlace meeting;
    Fd listener; ///< rank 0: already listens at the meeting place
    std::string version;
    std::chrono::milliseconds timeout{30000};
    const std::atomic<int> *signal = nullptr; ///< join() gives up once it is not 0
    bool *speaks = nullptr;                   ///< set to false by a join() that fails where another rank says why
    /// Ends the process with status 1 after printing the message (empty: another rank does), from another thread.
    std::function<void(const std::string &message)> abandon;
  };
  /// Waits for all ranks and connects them. From then on a process that does not notice that the run has failed is
  /// abandoned (EndGuard), so that no rank outlives the time-out. This process keeps to its share of the CPUs that
  /// several of them were given together, unless `threads` (0: as many as its share) are more.
  static Result<std::unique_ptr<RankTeam>> join(Options options, int threads);

  int rank() const { return ranks->rank(); }
  int worldSize() const { return ranks->worldSize(); }
  int localRank() const { return ranks->place().localRank; }
  bool isFirst() const { return rank() == 0; }
  CommApi &comm() const { return *network; }
  int threads() const { return numThreads; }
  /// "4 ranks (llmc-run), shared memory"
  std::string describe() const;

  /// Fails on all ranks where one of them was told something else; says who and what.
  Status requireSame(const std::vector<RunFact> &facts);
  /// The notes of all ranks, in rank order.
  Result<std::vector<StepNote>> exchange(const StepNote &mine);
  /// Waits until all ranks have done their work.
  Status finish();
  /// Tells the others that this rank ends with an error, and ends the network: after it no collective touches memory.
  void fail(const Error &error);
  /// After fail(): whether this rank is the one to print its error.
  bool isSpeaker() const { return speaks; }

private:
  RankTeam() = default;
  Status connect(int threads);
  Status shareCpus(int wantedThreads);

  std::unique_ptr<Rendezvous> ranks; ///< before the others, which use it to the end
  std::unique_ptr<EndGuard> guard;
  std::unique_ptr<CommApi> network;
  int numThreads = 1;
  bool speaks = false;
};

/// Fails where ranks have other weights than rank 0; names them.
Status requireSameWeights(const std::vector<StepNote> &notes);

/// How long each rank was busy in its steps.
class RankTimeTable {
public:
  void add(const std::vector<StepNote> &notes);
  /// A line a rank, the slowest marked; without the first step, where there are more.
  std::string table() const;

private:
  int64_t steps = 0;
  std::vector<double> firstMs, restMs; ///< by rank; of the first step, and of the others together
};

/// Says which rank differs from rank 0 and in what; `all` holds each rank's facts, packed.
Status compareFacts(const std::vector<std::string> &all);
std::string packFacts(const std::vector<RunFact> &facts);

} // namespace llmc
