// Ranks as real processes of a test: forked, met at a hub, watched, killed when they take too long.
#pragma once

#include "backend/comm/Communicator.h"

#include <functional>
#include <string>
#include <vector>

namespace llmc::test {

struct RankSetup {
  int ranks = 2;
  TransportChoice transport = TransportChoice::sharedMemory;
  std::chrono::milliseconds timeout{10000};
  /// Changes what a rank is told, before it joins.
  std::function<void(int rank, RendezvousOptions &)> change;
};

/// How a rank's process ended.
struct RankOutcome {
  std::string text;     ///< what its body returned, or why it could not join
  int signal = 0;       ///< that ended it
  bool wasLeft = false; ///< did not end in time and was killed
  double seconds = 0;   ///< until it ended
};

/// Runs `body` in every rank; its text is the outcome ("" for all well). Joining or connecting that fails is an outcome
/// too. `most` seconds in all.
std::vector<RankOutcome> runRanks(const RankSetup &setup,
                                  const std::function<std::string(Rendezvous &, CommApi &)> &body, double most = 30);

/// The message of an error, or "".
inline std::string textOf(const Status &status) { return status ? "" : status.error().message; }

} // namespace llmc::test
