// Ranks that meet, and what keeps them from it: real processes, each fault on each rank.
#include "tests/backend/comm/RankProcesses.h"

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <unistd.h>

namespace llmc::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

std::string nothing(Rendezvous &, CommApi &) { return ""; }

RankSetup three() { return {3, TransportChoice::sharedMemory, std::chrono::milliseconds(3000), {}}; }

TEST(Rendezvous, TextsGoRoundInRankOrder) {
  for (int ranks : {1, 2, 5}) {
    RankSetup setup = three();
    setup.ranks = ranks;
    auto outcomes = runRanks(setup, [](Rendezvous &place, CommApi &) -> std::string {
      for (int round = 0; round < 20; ++round) {
        auto all = place.exchange(fmt::format("{}:{}", place.rank(), round), "test");
        if (!all)
          return all.error().message;
        for (int rank = 0; rank < place.worldSize(); ++rank)
          if ((*all)[static_cast<size_t>(rank)] != fmt::format("{}:{}", rank, round))
            return (*all)[static_cast<size_t>(rank)];
      }
      return "";
    });
    for (const RankOutcome &outcome : outcomes)
      EXPECT_EQ(outcome.text, "");
  }
}

/// All but the victim end in time and name it.
void expectNamed(const RankSetup &setup, int victim, const std::string &cause) {
  auto outcomes = runRanks(setup, nothing, 6);
  for (int rank = 0; rank < setup.ranks; ++rank) {
    const RankOutcome &outcome = outcomes[static_cast<size_t>(rank)];
    if (rank == victim)
      continue;
    EXPECT_THAT(outcome.text, HasSubstr(cause)) << "rank " << rank << " of " << setup.ranks;
    EXPECT_FALSE(outcome.wasLeft) << "rank " << rank;
    EXPECT_LT(outcome.seconds, 3.5) << "rank " << rank;
  }
}

TEST(Rendezvous, NamesARankThatNeverComes) {
  for (int victim : {1, 2}) {
    RankSetup setup = three();
    setup.change = [&](int rank, RendezvousOptions &) {
      if (rank == victim)
        ::_exit(3);
    };
    expectNamed(setup, victim, fmt::format("rank {} did not arrive in 2.55 s; 2 of 3 ranks did", victim));
    setup.change = [&](int rank, RendezvousOptions &) {
      if (rank == victim)
        ::raise(SIGSTOP);
    };
    expectNamed(setup, victim, fmt::format("rank {} did not arrive in 2.55 s; 2 of 3 ranks did", victim));
  }
}

TEST(Rendezvous, NamesRankZeroThatIsKilledOrStopped) {
  RankSetup setup = three();
  setup.change = [](int rank, RendezvousOptions &) {
    if (rank == 0)
      ::raise(SIGSTOP);
  };
  expectNamed(setup, 0, "rank 0 gave no sign of life for 1.95 s");
  setup.change = [](int rank, RendezvousOptions &options) {
    if (rank == 0) {
      ::usleep(200000); // the others are in the queue
      ::raise(SIGKILL);
    }
  };
  auto outcomes = runRanks(setup, nothing, 6);
  for (int rank : {1, 2}) {
    EXPECT_THAT(outcomes[static_cast<size_t>(rank)].text, HasSubstr("rank 0 is gone"));
    EXPECT_LT(outcomes[static_cast<size_t>(rank)].seconds, 2);
  }
}

TEST(Rendezvous, DisagreementEndsAllAndSaysWho) {
  RankSetup setup = three();
  setup.change = [](int rank, RendezvousOptions &options) {
    if (rank == 2)
      options.place.worldSize = 4;
  };
  auto outcomes = runRanks(setup, nothing);
  for (const RankOutcome &outcome : outcomes) {
    EXPECT_THAT(outcome.text, StartsWith("rendezvous at 127.0.0.1:"));
    EXPECT_THAT(outcome.text, EndsWith(": rank 2 was told that there are 4 ranks, rank 0 that there are 3"));
    EXPECT_LT(outcome.seconds, 2);
  }
  setup.change = [](int rank, RendezvousOptions &options) {
    if (rank == 2)
      options.place.rank = 1;
  };
  outcomes = runRanks(setup, nothing);
  for (const RankOutcome &outcome : outcomes)
    EXPECT_THAT(outcome.text, EndsWith("two processes say that they are rank 1"));
  setup.change = [](int rank, RendezvousOptions &options) {
    if (rank == 2)
      options.version = "0";
  };
  outcomes = runRanks(setup, nothing);
  for (const RankOutcome &outcome : outcomes)
    EXPECT_THAT(outcome.text, EndsWith("rank 2 runs version 0, rank 0 version 1"));
}

TEST(Rendezvous, RefusesAnotherRunAndWaitsForItsOwn) {
  RankSetup setup = three();
  setup.change = [](int rank, RendezvousOptions &options) {
    if (rank == 2)
      options.place.job = "other";
  };
  auto outcomes = runRanks(setup, nothing);
  EXPECT_THAT(outcomes[2].text, EndsWith(": another run meets there"));
  EXPECT_LT(outcomes[2].seconds, 1);
  EXPECT_THAT(outcomes[0].text, EndsWith("rank 2 did not arrive in 2.55 s; 2 of 3 ranks did"));
}

TEST(Rendezvous, ListensOnlyWhereNobodyElseDoes) {
  Result<Fd> first = listenAt("127.0.0.1", 0);
  ASSERT_TRUE(first.ok());
  RankSetup setup = three();
  setup.change = [&](int rank, RendezvousOptions &options) {
    options.listener = Fd();
    options.meeting.port = localPort(*first);
    if (rank != 0)
      ::_exit(0);
  };
  auto outcomes = runRanks(setup, nothing);
  EXPECT_EQ(outcomes[0].text,
            fmt::format("rendezvous at 127.0.0.1:{0}: port {0} is taken by another process", localPort(*first)));
}

TEST(Rendezvous, SaysThatRankZeroCannotBeReached) {
  RankSetup setup = three();
  setup.change = [&](int rank, RendezvousOptions &options) {
    if (rank == 0)
      ::_exit(0);
    options.meeting.port = 1; // nobody listens there
  };
  auto outcomes = runRanks(setup, nothing, 5);
  EXPECT_EQ(outcomes[1].text, "rendezvous at 127.0.0.1:1: rank 1 could not reach rank 0 in 2.55 s: 127.0.0.1:1: "
                              "Connection refused");
}

class MeetingByFile : public testing::Test {
protected:
  MeetingByFile() : path(testing::TempDir() + fmt::format("llmc-meet-{}", ::getpid())) {}
  ~MeetingByFile() override { std::filesystem::remove(path); }
  RankSetup setup() const {
    RankSetup byFile = three();
    byFile.change = [this](int, RendezvousOptions &options) {
      options.listener = Fd();
      options.meeting = {MeetingPlace::Kind::file, "", 0, path};
    };
    return byFile;
  }
  std::string path;
};

TEST_F(MeetingByFile, ReplacesWhatAnEarlierRunLeftAndLeavesNothing) {
  for (std::string left : {"", "127.0.0.1 1 job\n", "127.0.0.1 1 other\n", "nonsense"}) {
    if (!left.empty())
      std::ofstream(path) << left;
    for (const RankOutcome &outcome : runRanks(setup(), nothing))
      EXPECT_EQ(outcome.text, "") << left;
    EXPECT_FALSE(std::filesystem::exists(path));
  }
}

TEST_F(MeetingByFile, SaysThatNoFileCame) {
  RankSetup alone = setup();
  auto meet = alone.change;
  alone.change = [&](int rank, RendezvousOptions &options) {
    if (rank == 0)
      ::_exit(0);
    meet(rank, options);
  };
  auto outcomes = runRanks(alone, nothing, 5);
  EXPECT_EQ(outcomes[2].text,
            fmt::format("rendezvous at file:{0}: rank 2 could not reach rank 0 in 2.55 s: {0}: No such "
                        "file or directory",
                        path));
}

} // namespace
} // namespace llmc::test
