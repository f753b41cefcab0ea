// Which processes a rank may end: those of its run that are stopped, and no others that have got their number.
#include "runtime/RankProcess.h"

#include <algorithm>
#include <csignal>
#include <gtest/gtest.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc::test {
namespace {

/// A child that waits to be ended, and the text by which others know it.
class Child {
public:
  Child() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    pid = ::fork();
    if (pid == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::string text = describeProcess();
      (void)!::write(ends[1], text.data(), text.size());
      for (;;)
        ::pause();
    }
    char text[512];
    ssize_t size = ::read(ends[0], text, sizeof(text));
    name.assign(text, static_cast<size_t>(std::max<ssize_t>(size, 0)));
    ::close(ends[0]);
    ::close(ends[1]);
  }
  ~Child() {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  Child(const Child &) = delete;
  Child &operator=(const Child &) = delete;

  void stop() const {
    ::kill(pid, SIGSTOP);
    int status = 0;
    EXPECT_EQ(::waitpid(pid, &status, WUNTRACED), pid);
    EXPECT_TRUE(WIFSTOPPED(status));
  }

  pid_t pid = 0;
  std::string name;
};

TEST(RankProcess, AStoppedOneIsEnded) {
  Child child;
  EXPECT_FALSE(isStoppedProcess(child.pid));
  child.stop();
  EXPECT_TRUE(isStoppedProcess(child.pid));
  endIfStopped(child.name);
  int status = 0;
  EXPECT_EQ(::waitpid(child.pid, &status, 0), child.pid);
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

TEST(RankProcess, OneThatRunsIsLeftAlone) {
  Child child;
  endIfStopped(child.name);
  ::usleep(50000);
  EXPECT_FALSE(isStoppedProcess(child.pid));
  EXPECT_EQ(::kill(child.pid, 0), 0);
  child.stop(); // it could not be stopped if it had ended
}

TEST(RankProcess, AnotherWithItsNumberIsLeftAlone) {
  Child child;
  child.stop();
  size_t start = child.name.find(' ') + 1;
  std::string older = child.name, elsewhere = child.name;
  older[start] = older[start] == '1' ? '2' : '1';
  elsewhere.back() = elsewhere.back() == '0' ? '1' : '0';
  for (const std::string &other : {older, elsewhere, std::string(), std::string("1 1 x"), std::string("x")})
    endIfStopped(other);
  ::usleep(50000);
  EXPECT_TRUE(isStoppedProcess(child.pid));
}

TEST(RankProcess, IsToldApart) {
  Child a, b;
  EXPECT_NE(a.name, b.name);
  EXPECT_NE(a.name.find(machineId()), std::string::npos);
}

} // namespace
} // namespace llmc::test
