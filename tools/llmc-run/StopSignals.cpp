// Both are blocked everywhere, so that the kernel keeps them until sigwaitinfo takes them.
#include "tools/llmc-run/StopSignals.h"

#include <unistd.h>

namespace llmc {

static bool isIgnored(int signal) {
  struct sigaction action{};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

/// Ends the process by the signal itself, so that whoever waits for it sees why.
[[noreturn]] static void endBy(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  std::signal(signal, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
  raise(signal);
  _exit(128 + signal); // the first process of a container: it does not die of a signal's default
}

StopSignals::StopSignals() {
  sigemptyset(&signals);
  for (int signal : {SIGINT, SIGTERM})
    if (!isIgnored(signal))
      sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, &before);
  thread = std::thread([this] { receive(); });
}

StopSignals::~StopSignals() {
  isEnding = true;
  pthread_kill(thread.native_handle(), SIGTERM);
  thread.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void StopSignals::receive() {
  // Its own SIGTERM, sent by the destructor, is waited for even where the process ignores it.
  sigset_t awaited = signals;
  sigaddset(&awaited, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &awaited, nullptr);
  for (;;) {
    siginfo_t info;
    int signal = sigwaitinfo(&awaited, &info);
    if (isEnding)
      return;
    if (signal < 0 || !sigismember(&signals, signal))
      continue;
    int none = 0;
    if (!first.compare_exchange_strong(none, signal))
      endBy(signal);
  }
}

} // namespace llmc
