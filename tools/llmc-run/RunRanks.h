// A run as one process or several: starts the ranks that --nproc asks for, or joins those that a launcher started.
#pragma once

#include "tools/llmc-run/RunPlan.h"

#include <chrono>

namespace llmc {

/// The flags of ranks.
struct RankFlags {
  int nproc = 0;          ///< 0: not given
  std::string rendezvous; ///< empty: not given
  std::chrono::milliseconds timeout{30000};
};

/// How this process's part of a run ended.
struct RunEnd {
  int exitStatus = 0;              ///< 0; 1; 128 + the signal that stopped it
  std::vector<std::string> errors; ///< for this process to print; another rank may have said why
};

/// Runs a plan as the flags and the environment say. With --nproc above 1 it returns in several processes: in each rank
/// and, when all have ended, in their parent. Call before any thread starts. `around.out` is used by rank 0 only.
RunEnd runRanks(const RankFlags &flags, const RunOptions &options, RunSurroundings around);

/// "30s", "2m", "500ms", "30" (seconds). Nothing where it is no such time, or not above 0.
std::optional<std::chrono::milliseconds> parseDuration(const std::string &text);

} // namespace llmc
