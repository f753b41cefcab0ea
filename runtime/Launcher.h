// The ranks of one machine as processes of one parent: forked, watched and reaped. The parent does nothing else, so it
// always has time for signals and for a rank that ends.
#pragma once

#include "runtime/RankEnvironment.h"
#include "runtime/Socket.h"

#include <chrono>
#include <optional>

namespace llmc {

struct LaunchOptions {
  int ranks = 1;
  std::chrono::milliseconds timeout{30000}; ///< of the ranks: see RankTimes
  std::string host = "127.0.0.1";           ///< where rank 0 is to listen
  uint16_t port = 0;                        ///< 0: any free one
};

/// What launch() returns in a rank's own process.
struct LaunchedRank {
  RankPlace place;
  uint16_t port = 0; ///< rank 0 listens here
  Fd listener;       ///< rank 0's
};

/// How the run ended, in the parent's process.
struct LaunchEnd {
  int exitStatus = 0;                ///< 0; 128 + a signal that asked to stop; else 1
  std::vector<std::string> messages; ///< what no rank could say itself: "rank 2 was killed by signal 9 (Killed)"
};

/// Forks the ranks. Returns in each of them with its place, and in the parent, when all have ended, with how. SIGINT
/// and SIGTERM go to every rank, once; SIGTSTP stops all. No rank outlives the parent. Call before any thread starts.
struct Launched {
  std::optional<LaunchedRank> rank; ///< in a rank
  LaunchEnd end;                    ///< in the parent
};
Result<Launched> launch(const LaunchOptions &options);

} // namespace llmc
