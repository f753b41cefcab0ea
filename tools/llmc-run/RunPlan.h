// What llmc-run does once the flags are read: opens the plan, trains, writes what was asked for.
#pragma once

#include "runtime/Device.h"
#include "tools/llmc-run/RunOptions.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <functional>

namespace llmc {

class RankTeam;

/// Where a run happens and who watches it.
struct RunSurroundings {
  /// Opens the device; `localRank` is this rank's number on its machine.
  std::function<Result<std::unique_ptr<DeviceApi>>(int threads, int localRank)> makeDevice;
  std::string deviceNote;  ///< said beside the device's name
  std::FILE *out = stdout; ///< for the person at the terminal
  bool isTerminal = false; ///< `out` is one
  std::chrono::steady_clock::time_point processStart = std::chrono::steady_clock::now();
  const std::atomic<int> *signal = nullptr; ///< the signal that asked to stop; 0: none
  std::string version;
  /// Prints what is not empty and ends the process with status 1: for a rank whose own thread cannot.
  std::function<void(const std::string &error)> abandon;
  RankTeam *team = nullptr; ///< null: a run of one rank
};

/// Runs a plan. When asked to stop (any rank of a team) it finishes the step and writes its exports as for a run of
/// that many steps. The signal that stopped it, else 0.
Result<int> runPlan(const RunOptions &options, const RunSurroundings &around);

} // namespace llmc
