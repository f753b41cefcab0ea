// fork() without exec(): the flags are read already, and no thread exists yet. Each rank is its own process group, so
// that a terminal's Ctrl-C reaches the parent alone, which passes it on once.
#include "runtime/Launcher.h"

#include "runtime/RankHub.h"
#include "runtime/RankProcess.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kStoppedGrace{300}; ///< for a stopped rank, once the run has failed
constexpr std::chrono::milliseconds kPause{100};        ///< between two looks

namespace {

struct Child {
  pid_t pid = 0;
  bool hasEnded = false;
  bool wasKilled = false; ///< by us, because it did not end
};

class Parent {
public:
  explicit Parent(const LaunchOptions &options) : options(options) {}

  Result<Launched> run() {
    Result<Fd> opened = listenAt(options.host, options.port);
    LLMC_RETURN_IF_ERROR(opened);
    listener = std::move(*opened);
    port = localPort(listener);
    uint64_t random = 0;
    if (::getrandom(&random, sizeof(random), 0) != sizeof(random))
      return Error{"no random number for the run's name"};
    job = fmt::format("{:016x}", random);
    blockSignals();
    pid_t parent = ::getpid();
    for (int rank = 0; rank < options.ranks; ++rank) {
      pid_t pid = ::fork();
      if (pid == 0)
        return inChild(rank, parent);
      if (pid < 0) {
        fail(fmt::format("rank {} could not be started: {}", rank, std::strerror(errno)));
        killAll(SIGKILL);
        break;
      }
      ::setpgid(pid, pid); // here too: whichever of the two comes first
      children.push_back({pid});
    }
    listener = Fd();
    watch();
    ::sigprocmask(SIG_SETMASK, &oldMask, nullptr);
    Launched launched;
    launched.end = std::move(end);
    return launched;
  }

private:
  void blockSignals() {
    sigemptyset(&watched);
    for (int signal : {SIGCHLD, SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP})
      sigaddset(&watched, signal);
    ::sigprocmask(SIG_BLOCK, &watched, &oldMask);
  }

  Result<Launched> inChild(int rank, pid_t parent) {
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) // it ended before the line above
      ::_exit(1);
    ::prctl(PR_SET_NAME, fmt::format("llmc-run:{}", rank).c_str());
    ::sigprocmask(SIG_SETMASK, &oldMask, nullptr);
    Launched launched;
    LaunchedRank &mine = launched.rank.emplace();
    mine.place = {rank, options.ranks, rank, options.ranks, kOwnLauncher, job};
    mine.port = port;
    if (rank == 0)
      mine.listener = std::move(listener);
    else
      listener = Fd();
    return launched;
  }

  void fail(std::string message) {
    end.exitStatus = 1;
    hasFailed = true;
    if (!message.empty())
      end.messages.push_back(std::move(message));
  }

  void endBySignal(int signal) { end.exitStatus = end.exitStatus == 0 ? 128 + signal : end.exitStatus; }

  void killAll(int signal) {
    for (Child &child : children)
      if (!child.hasEnded) {
        child.wasKilled = child.wasKilled || signal == SIGKILL;
        ::kill(child.pid, signal);
      }
  }

  void reap() {
    int status = 0;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      Child &child = children[rank];
      if (child.hasEnded || ::waitpid(child.pid, &status, WNOHANG) != child.pid)
        continue;
      child.hasEnded = true;
      if (WIFSIGNALED(status)) {
        int signal = WTERMSIG(status);
        // Also where another has said that this one is gone: only here it is known how.
        if (signal == asked)
          endBySignal(signal);
        else
          fail(child.wasKilled
                   ? ""
                   : fmt::format("rank {} was killed by signal {} ({})", rank, signal, ::strsignal(signal)));
      } else if (WEXITSTATUS(status) > 128) { // a signal stopped the run in good order
        endBySignal(WEXITSTATUS(status) - 128);
      } else if (WEXITSTATUS(status) != 0) {
        fail("");
      }
    }
  }

  /// Once one has ended, the others should: after a failure they hear of it, and a stopped one cannot.
  void endLeftOvers() {
    // Not by the clock alone: all may have been stopped for a while.
    sinceFirstEnd += std::min<Clock::duration>(Clock::now() - lastLook, 2 * kPause);
    lastLook = Clock::now();
    RankTimes times(options.timeout); // a failure has taken the rest
    auto limit = hasFailed ? times.grace + times.beat : times.silence;
    for (size_t rank = 0; rank < children.size(); ++rank) {
      Child &child = children[rank];
      if (child.hasEnded || child.wasKilled)
        continue;
      bool isStopped = isStoppedProcess(child.pid);
      if (sinceFirstEnd <= (hasFailed && isStopped ? kStoppedGrace : limit))
        continue;
      if (!hasFailed || !isStopped)
        fail(fmt::format("rank {} {} {:g} s after the first that ended", rank,
                         isStopped ? "was stopped and is still there" : "is still there",
                         static_cast<double>(limit.count()) / 1e3));
      child.wasKilled = true;
      ::kill(child.pid, SIGKILL);
    }
  }

  void handle(int signal) {
    switch (signal) {
    case SIGCHLD:
      return;
    case SIGTSTP: // its default would stop the parent alone
      killAll(SIGSTOP);
      ::raise(SIGSTOP);
      killAll(SIGCONT);
      return;
    default:
      asked = asked == 0 ? signal : asked;
      return killAll(signal);
    }
  }

  void watch() {
    timespec pause = {0, std::chrono::nanoseconds(kPause).count()};
    while (!std::ranges::all_of(children, [](const Child &child) { return child.hasEnded; })) {
      int signal = ::sigtimedwait(&watched, nullptr, &pause);
      if (signal > 0)
        handle(signal);
      reap();
      if (std::ranges::any_of(children, [](const Child &child) { return child.hasEnded; }))
        endLeftOvers();
      else
        lastLook = Clock::now();
    }
  }

  const LaunchOptions &options;
  Fd listener;
  uint16_t port = 0;
  std::string job;
  sigset_t watched = {}, oldMask = {};
  std::vector<Child> children;
  bool hasFailed = false;
  Clock::time_point lastLook;
  Clock::duration sinceFirstEnd{0};
  int asked = 0; ///< the first signal that asked to end
  LaunchEnd end;
};

} // namespace

Result<Launched> launch(const LaunchOptions &options) { return Parent(options).run(); }

} // namespace llmc
