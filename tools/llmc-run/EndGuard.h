// The last resort of a rank whose run has failed and that does not notice: its thread sits in a write to a file system
// that hangs, or in a long kernel. Where the network is waited for, errors come back by themselves and this does
// nothing.
#pragma once

#include "runtime/Rendezvous.h"

namespace llmc {

class EndGuard {
public:
  /// Calls `abandon` on a thread of its own when the run has failed and the grace of `timeout` (RankTimes) later the
  /// guard is still there. `ranks` must outlive it.
  EndGuard(const Rendezvous &ranks, std::chrono::milliseconds timeout,
           std::function<void(const RankFailure &)> abandon);
  ~EndGuard();
  EndGuard(const EndGuard &) = delete;
  EndGuard &operator=(const EndGuard &) = delete;

private:
  void watch();
  /// False once the guard is no longer needed.
  bool sleep(std::chrono::milliseconds time);

  const Rendezvous &ranks;
  RankTimes times;
  std::function<void(const RankFailure &)> abandon;
  std::mutex mutex;
  std::condition_variable changed;
  bool isDone = false;
  std::thread thread; ///< last: starts when everything else is ready
};

} // namespace llmc
