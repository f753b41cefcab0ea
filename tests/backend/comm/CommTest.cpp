// One conformance test for every transport: what CommApi promises, with real processes.
#include "tests/backend/comm/RankProcesses.h"

#include <bit>
#include <cmath>
#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <numeric>
#include <unistd.h>

namespace llmc::test {
namespace {

using testing::HasSubstr;
using testing::MatchesRegex;

struct CommCase {
  TransportChoice transport;
  int ranks;
};

class CommTest : public testing::TestWithParam<CommCase> {
protected:
  RankSetup setup() const { return {GetParam().ranks, GetParam().transport, std::chrono::milliseconds(10000), {}}; }

  void expectAllWell(const std::function<std::string(Rendezvous &, CommApi &)> &body) {
    auto outcomes = runRanks(setup(), body, 60);
    for (size_t rank = 0; rank < outcomes.size(); ++rank) {
      EXPECT_EQ(outcomes[rank].text, "") << "rank " << rank;
      EXPECT_EQ(outcomes[rank].signal, 0) << "rank " << rank;
    }
  }
};

/// Different on every rank and place, and no sum of them exact in bf16.
float valueAt(int rank, size_t i) {
  return 1.0f + static_cast<float>((i * 2654435761u + static_cast<size_t>(rank) * 40503u) % 1000) / 7.0f;
}

uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}
float fromBf16(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

std::span<std::byte> bytesOf(auto &values) { return std::as_writable_bytes(std::span(values)); }

std::string reduceF32(CommApi &comm, size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = valueAt(comm.rank(), i);
  Result<uint64_t> ticket = comm.startAllReduce(bytesOf(values), ElementType::f32, "gradient");
  if (Status status = ticket ? comm.wait(*ticket) : ticket.status(); !status)
    return status.error().message;
  for (size_t i = 0; i < count; ++i) {
    float expected = 0;
    for (int rank = 0; rank < comm.worldSize(); ++rank)
      expected = rank == 0 ? valueAt(0, i) : expected + valueAt(rank, i);
    if (values[i] != expected) // the same bits: summed in the order of the ranks
      return fmt::format("f32 x {}: element {} is {}, expected {}", count, i, values[i], expected);
  }
  return "";
}

std::string reduceBf16(CommApi &comm, size_t count) {
  std::vector<uint16_t> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = toBf16(valueAt(comm.rank(), i));
  Result<uint64_t> ticket = comm.startAllReduce(bytesOf(values), ElementType::bf16, "gradient");
  if (Status status = ticket ? comm.wait(*ticket) : ticket.status(); !status)
    return status.error().message;
  for (size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int rank = 0; rank < comm.worldSize(); ++rank)
      sum += fromBf16(toBf16(valueAt(rank, i)));
    if (values[i] != toBf16(sum)) // rounded once
      return fmt::format("bf16 x {}: element {} is {:x}, expected {:x}", count, i, values[i], toBf16(sum));
  }
  return "";
}

TEST_P(CommTest, SumsInF32InTheOrderOfTheRanks) {
  expectAllWell([](Rendezvous &, CommApi &comm) {
    std::string problem;
    // One element, fewer than ranks x a slice, a chunk and one more, several turns of the ring.
    for (size_t count : {1u, 33u, 1000u, 65537u, 3000001u})
      problem += reduceF32(comm, count) + reduceBf16(comm, count);
    return problem;
  });
}

TEST_P(CommTest, RunsManyInTheOrderOfIssue) {
  expectAllWell([](Rendezvous &, CommApi &comm) -> std::string {
    std::vector<std::vector<float>> buckets(300, std::vector<float>(1000));
    std::vector<uint64_t> tickets;
    for (size_t i = 0; i < buckets.size(); ++i) {
      std::ranges::fill(buckets[i], static_cast<float>(i) + static_cast<float>(comm.rank()));
      Result<uint64_t> ticket = comm.startAllReduce(bytesOf(buckets[i]), ElementType::f32, fmt::format("b{}", i));
      if (!ticket)
        return ticket.error().message;
      tickets.push_back(*ticket);
    }
    if (Status status = comm.wait(tickets.back()); !status)
      return status.error().message;
    float n = static_cast<float>(comm.worldSize());
    for (size_t i = 0; i < buckets.size(); ++i)
      if (tickets[i] != i || buckets[i][999] != n * static_cast<float>(i) + n * (n - 1) / 2)
        return fmt::format("bucket {}: {}", i, buckets[i][999]);
    CommTimes times = comm.takeTimes();
    if (times.collectives.size() != 300)
      return fmt::format("{} collectives", times.collectives.size());
    CommSpan::Time before;
    for (size_t i = 0; i < 300; ++i) {
      const CommSpan &span = times.collectives[i];
      if (span.label != fmt::format("b{}", i) || span.bytes != 4000 ||
          span.operation != std::string_view("all_reduce") || before > span.start || span.start > span.met ||
          span.met >= span.end)
        return fmt::format("collective {}: '{}', {} bytes", i, span.label, span.bytes);
      before = span.end;
    }
    CommTimes again = comm.takeTimes();
    bool isEmptied = again.busyMs == 0 && again.collectives.empty();
    return times.busyMs > 0 && times.exposedMs > 0 && isEmptied ? "" : "no times";
  });
}

TEST_P(CommTest, BroadcastsFromAnyRoot) {
  expectAllWell([](Rendezvous &, CommApi &comm) -> std::string {
    for (int root = 0; root < comm.worldSize(); ++root)
      for (size_t count : {1u, 777u, 5000000u}) {
        std::vector<uint8_t> bytes(count);
        for (size_t i = 0; i < count; ++i)
          bytes[i] = static_cast<uint8_t>(comm.rank() == root ? i * 7 + static_cast<size_t>(root) : 0);
        if (Status status = comm.broadcast(bytesOf(bytes), root, "weights"); !status)
          return status.error().message;
        for (size_t i = 0; i < count; ++i)
          if (bytes[i] != static_cast<uint8_t>(i * 7 + static_cast<size_t>(root)))
            return fmt::format("root {}: byte {} of {} is {}", root, i, count, bytes[i]);
      }
    return "";
  });
}

TEST_P(CommTest, GathersInRankOrderAndIsABarrierWithoutBytes) {
  expectAllWell([](Rendezvous &, CommApi &comm) -> std::string {
    for (size_t count : {1u, 100u, 2000000u}) {
      std::vector<uint8_t> mine(count, static_cast<uint8_t>(comm.rank() + 1));
      std::vector<uint8_t> all(count * static_cast<size_t>(comm.worldSize()));
      if (Status status = comm.allGather(std::as_bytes(std::span(mine)), bytesOf(all), "hashes"); !status)
        return status.error().message;
      for (size_t i = 0; i < all.size(); ++i)
        if (all[i] != i / count + 1)
          return fmt::format("byte {} is {}", i, all[i]);
    }
    return textOf(comm.allGather({}, {}, "end"));
  });
}

TEST_P(CommTest, DisagreementIsAnErrorOnAllRanks) {
  auto outcomes = runRanks(setup(), [](Rendezvous &, CommApi &comm) {
    std::vector<float> values(comm.rank() == 1 ? 10 : 20);
    return textOf(comm.wait(*comm.startAllReduce(bytesOf(values), ElementType::f32, "h.0.weight")));
  });
  EXPECT_EQ(outcomes[0].text, "all_reduce 0 'h.0.weight': rank 1 calls all_reduce of 40 bytes (f32), rank 0 all_reduce "
                              "of 80 bytes (f32)");
  EXPECT_THAT(outcomes[1].text, HasSubstr("rank 0 calls all_reduce of 80 bytes (f32), rank 1 all_reduce of 40 bytes"));
  outcomes = runRanks(setup(), [](Rendezvous &, CommApi &comm) {
    std::vector<float> values(8);
    if (comm.rank() == 1)
      return textOf(comm.broadcast(bytesOf(values), 1, "w"));
    return textOf(comm.wait(*comm.startAllReduce(bytesOf(values), ElementType::f32, "v")));
  });
  EXPECT_EQ(outcomes[0].text, "all_reduce 0 'v': rank 1 calls broadcast from rank 1 of 32 bytes of another label, rank "
                              "0 all_reduce of 32 bytes (f32)");
}

TEST_P(CommTest, AfterAnErrorEveryCallReturnsIt) {
  auto outcomes = runRanks(setup(), [](Rendezvous &, CommApi &comm) -> std::string {
    std::vector<float> values(comm.rank() == 1 ? 10 : 20);
    std::string first = textOf(comm.wait(*comm.startAllReduce(bytesOf(values), ElementType::f32, "a")));
    auto second = comm.startAllReduce(bytesOf(values), ElementType::f32, "b");
    bool isSame = !second && second.error().message == first && textOf(comm.broadcast({}, 0, "c")) == first;
    return isSame && !first.empty() ? "" : "not the same: " + first;
  });
  EXPECT_EQ(outcomes[0].text, "");
  EXPECT_EQ(outcomes[1].text, "");
}

/// Each rank in turn ends in the middle of a run, by a signal: when it should come to a collective, or inside of one.
class CommFaultTest : public CommTest {
protected:
  enum class When { before, inside };

  void expectCause(When when, int signal, const std::string &how) {
    for (int victim = 0; victim < GetParam().ranks; ++victim) {
      RankSetup faulty = setup();
      faulty.timeout = std::chrono::milliseconds(4000);
      auto outcomes = runRanks(
          faulty,
          [&](Rendezvous &, CommApi &comm) {
            std::vector<float> values(1000000);
            for (int step = 0; step < 3; ++step)
              if (Status status = comm.wait(*comm.startAllReduce(bytesOf(values), ElementType::f32, "head")); !status)
                return status.error().message;
            if (comm.rank() == victim && when == When::before)
              ::raise(signal);
            for (;;) { // until the loss is heard of: the last of the victim may have been done in time
              Result<uint64_t> ticket = comm.startAllReduce(bytesOf(values), ElementType::f32, "head");
              if (comm.rank() == victim && ticket) {
                ::usleep(500);
                ::raise(signal);
              }
              if (Status status = ticket ? comm.wait(*ticket) : ticket.status(); !status)
                return status.error().message;
            }
          },
          20);
      for (int rank = 0; rank < GetParam().ranks; ++rank)
        expectOutcome(outcomes[static_cast<size_t>(rank)], rank, victim, fmt::format("rank {} {}", victim, how));
    }
  }

  static void expectOutcome(const RankOutcome &outcome, int rank, int victim, const std::string &cause) {
    if (rank == victim) {
      EXPECT_EQ(outcome.signal, SIGKILL); // its own, or another rank's for the stopped one
      EXPECT_FALSE(outcome.wasLeft) << "nobody ended the stopped rank " << rank;
      return;
    }
    // It is heard of in the first that the victim did not come to or did not end.
    EXPECT_THAT(outcome.text,
                MatchesRegex(fmt::format("all_reduce [2-9] 'head': {}(; rank {} had not arrived)?", cause, victim)))
        << "rank " << rank;
    EXPECT_EQ(outcome.signal, 0) << "rank " << rank;
    EXPECT_LT(outcome.seconds, 8) << "rank " << rank; // the start of all included
  }
};

TEST_P(CommFaultTest, AKilledRankIsNamed) { expectCause(When::before, SIGKILL, "is gone: its connection closed"); }

TEST_P(CommFaultTest, AStoppedRankIsNamed) { expectCause(When::before, SIGSTOP, "gave no sign of life for 2.6 s"); }

TEST_P(CommFaultTest, ARankKilledInACollectiveIsNamed) {
  expectCause(When::inside, SIGKILL, "is gone: its connection closed");
}

TEST_P(CommFaultTest, ARankStoppedInACollectiveIsNamed) {
  expectCause(When::inside, SIGSTOP, "gave no sign of life for 2.6 s");
}

TEST_P(CommFaultTest, ARanksOwnErrorReachesTheOthers) {
  auto outcomes = runRanks(setup(), [](Rendezvous &ranks, CommApi &comm) {
    if (comm.rank() == 1)
      return ranks.fail("w.onnx: cannot write: no space").message;
    return textOf(comm.allGather({}, {}, "end"));
  });
  EXPECT_EQ(outcomes[1].text, "rank 1: w.onnx: cannot write: no space");
  EXPECT_EQ(outcomes[0].text, "all_gather 0 'end': rank 1: w.onnx: cannot write: no space");
  for (const RankOutcome &outcome : outcomes)
    EXPECT_LT(outcome.seconds, 3);
}

std::string caseName(const testing::TestParamInfo<CommCase> &info) {
  return fmt::format("{}{}", info.param.transport == TransportChoice::tcp ? "Tcp" : "SharedMemory", info.param.ranks);
}
const CommCase kCases[] = {{TransportChoice::sharedMemory, 2},
                           {TransportChoice::sharedMemory, 4},
                           {TransportChoice::tcp, 2},
                           {TransportChoice::tcp, 4}};
INSTANTIATE_TEST_SUITE_P(Transports, CommTest, testing::ValuesIn(kCases), caseName);
INSTANTIATE_TEST_SUITE_P(Transports, CommFaultTest, testing::ValuesIn(kCases), caseName);

} // namespace
} // namespace llmc::test
