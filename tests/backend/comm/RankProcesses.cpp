// A pipe a rank carries its text; poll() on nothing but time, for a test may wait a little.
#include "tests/backend/comm/RankProcesses.h"

#include "runtime/RankProcess.h"

#include <algorithm>
#include <csignal>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc::test {

using Clock = std::chrono::steady_clock;

static std::string runOneRank(int rank, const RankSetup &setup, Fd listener,
                              const std::function<std::string(Rendezvous &, CommApi &)> &body) {
  RendezvousOptions options;
  options.place = {rank, setup.ranks, rank, setup.ranks, "test", "job"};
  options.meeting.host = "127.0.0.1";
  options.meeting.port = localPort(listener);
  options.version = "1";
  options.timeout = setup.timeout;
  if (rank == 0)
    options.listener = std::move(listener);
  listener = Fd();
  if (setup.change)
    setup.change(rank, options);
  Result<std::unique_ptr<Rendezvous>> ranks = Rendezvous::join(std::move(options));
  if (!ranks)
    return ranks.error().message;
  Result<std::unique_ptr<CommApi>> comm = makeCommunicator(**ranks, setup.transport);
  return comm ? body(**ranks, **comm) : comm.error().message;
}

static std::string readAll(int fd) {
  std::string text;
  char chunk[4096];
  for (ssize_t size; (size = ::read(fd, chunk, sizeof(chunk))) > 0;)
    text.append(chunk, static_cast<size_t>(size));
  ::close(fd);
  return text;
}

std::vector<RankOutcome> runRanks(const RankSetup &setup,
                                  const std::function<std::string(Rendezvous &, CommApi &)> &body, double most) {
  Result<Fd> listener = listenAt("127.0.0.1", 0);
  EXPECT_TRUE(listener.ok());
  std::vector<RankOutcome> outcomes(static_cast<size_t>(setup.ranks));
  std::vector<pid_t> pids;
  std::vector<int> pipes;
  Clock::time_point start = Clock::now();
  for (int rank = 0; rank < setup.ranks; ++rank) {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::string text = runOneRank(rank, setup, std::move(*listener), body);
      (void)!::write(ends[1], text.data(), text.size());
      ::_exit(0);
    }
    ::close(ends[1]);
    pids.push_back(pid);
    pipes.push_back(ends[0]);
  }
  *listener = Fd();
  constexpr std::chrono::milliseconds kBreath{500};
  Clock::time_point last = start, onlyStoppedSince = start;
  for (size_t left = pids.size(); left > 0; ::usleep(5000)) {
    Clock::time_point now = Clock::now();
    double seconds = std::chrono::duration<double>(now - start).count();
    // A stopped rank is only waited for as long as another lives that should end by itself. All may have been stopped
    // together, and this process with them: that is over soon.
    bool wasAway = now - std::exchange(last, now) > kBreath;
    if (wasAway || !std::ranges::all_of(pids, [](pid_t pid) { return pid == 0 || isStoppedProcess(pid); }))
      onlyStoppedSince = now;
    bool isOver = seconds > most || now - onlyStoppedSince > kBreath;
    for (size_t i = 0; i < pids.size(); ++i) {
      int status = 0;
      if (pids[i] && isOver && !outcomes[i].wasLeft) {
        outcomes[i].wasLeft = true;
        ::kill(pids[i], SIGKILL);
      }
      if (!pids[i] || ::waitpid(pids[i], &status, WNOHANG) != pids[i])
        continue;
      pids[i] = 0;
      --left;
      outcomes[i].seconds = seconds;
      outcomes[i].signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
      outcomes[i].text = readAll(pipes[i]);
    }
  }
  return outcomes;
}

} // namespace llmc::test
