// It looks now and then instead of being called: the alarm of Rendezvous is the network's.
#include "tools/llmc-run/EndGuard.h"

#include <algorithm>

namespace llmc {

constexpr std::chrono::milliseconds kLeastGrace{1000}; ///< a busy machine takes its time to end a process

EndGuard::EndGuard(const Rendezvous &ranks, std::chrono::milliseconds timeout,
                   std::function<void(const RankFailure &)> abandon)
    : ranks(ranks), timeout(timeout), abandon(std::move(abandon)), thread([this] { watch(); }) {}

EndGuard::~EndGuard() {
  {
    std::lock_guard lock(mutex);
    isDone = true;
  }
  changed.notify_all();
  thread.join();
}

bool EndGuard::sleep(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex);
  return !changed.wait_for(lock, time, [&] { return isDone; });
}

void EndGuard::watch() {
  while (sleep(timeout / 20))
    if (std::optional<RankFailure> failure = ranks.failure()) {
      if (sleep(std::max(timeout / 10, kLeastGrace)))
        abandon(*failure);
      return;
    }
}

} // namespace llmc
