// Signals sent to the test's own process: whoever takes them must be the waiting thread.
#include "tools/llmc-run/StopSignals.h"

#include <chrono>
#include <gtest/gtest.h>
#include <unistd.h>

namespace llmc::test {
namespace {

/// The signal that asked to stop, waited for up to five seconds; 0 if none came.
int waitForSignal(const StopSignals &stop) {
  auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (stop.asked() == 0 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return stop.asked();
}

TEST(StopSignals, TheFirstAsksToStop) {
  for (int signal : {SIGINT, SIGTERM}) {
    StopSignals stop;
    EXPECT_EQ(stop.asked(), 0);
    kill(getpid(), signal);
    EXPECT_EQ(waitForSignal(stop), signal);
  }
}

TEST(StopSignals, NoThreadIsInterrupted) {
  StopSignals stop;
  std::thread([] {
    sigset_t blocked;
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    EXPECT_TRUE(sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGTERM));
  }).join();
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action{};
    sigaction(signal, nullptr, &action);
    EXPECT_EQ(action.sa_handler, SIG_DFL) << "a handler would run on a stack of oneDNN's";
  }
}

TEST(StopSignals, TheMaskIsGivenBack) {
  {
    StopSignals stop;
  }
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_FALSE(sigismember(&blocked, SIGINT) || sigismember(&blocked, SIGTERM));
}

TEST(StopSignals, AnIgnoredSignalStaysIgnored) {
  for (int ignored : {SIGINT, SIGTERM}) {
    auto before = std::signal(ignored, SIG_IGN);
    {
      StopSignals stop;
      kill(getpid(), ignored);
      int other = ignored == SIGINT ? SIGTERM : SIGINT;
      kill(getpid(), other);
      EXPECT_EQ(waitForSignal(stop), other);
    }
    std::signal(ignored, before);
  }
}

TEST(StopSignalsDeathTest, TheSecondEndsTheProcessByItself) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto sendTwo = [](int first, int second) {
    StopSignals stop;
    kill(getpid(), first);
    waitForSignal(stop);
    kill(getpid(), second);
    std::this_thread::sleep_for(std::chrono::seconds(5));
  };
  EXPECT_EXIT(sendTwo(SIGTERM, SIGINT), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(sendTwo(SIGINT, SIGINT), ::testing::KilledBySignal(SIGINT), "");
  EXPECT_EXIT(sendTwo(SIGTERM, SIGTERM), ::testing::KilledBySignal(SIGTERM), "");
}

} // namespace
} // namespace llmc::test
