// It looks now and then instead of being called: the alarm of Rendezvous is the network's.
#include "tools/llmc-run/EndGuard.h"

namespace llmc {

EndGuard::EndGuard(const Rendezvous &ranks, std::chrono::milliseconds timeout,
                   std::function<void(const RankFailure &)> abandon)
    : ranks(ranks), times(timeout), abandon(std::move(abandon)), thread([this] { watch(); }) {}

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
  while (sleep(times.beat / 5))
    if (std::optional<RankFailure> failure = ranks.failure()) {
      if (sleep(times.grace))
        abandon(*failure);
      return;
    }
}

} // namespace llmc
