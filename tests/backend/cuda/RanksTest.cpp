// Ranks as processes, each with a simulated GPU, whose programs sum over NCCL; and the faults of ranks, by the words of
// the rank that notices.
#include "tests/backend/cuda/CopyCode.h"
#include "tests/backend/cuda/SimDevice.h"
#include "tests/cudasim/nccl/Control.h"

#include <atomic>
#include <csignal>
#include <dlfcn.h>
#include <functional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc::cuda::test {
namespace {

using testing::Each;
using testing::HasSubstr;

/// The network that ranks have before NCCL: memory that their processes share.
class SharedComm : public CommApi {
public:
  static constexpr size_t kBytes = 4096;
  struct Board {
    std::atomic<int> arrived{0};
    std::byte bytes[16][kBytes];
  };
  SharedComm(Board &board, int rank, int size) : board(board), self(rank), size(size) {}

  int rank() const override { return self; }
  int worldSize() const override { return size; }
  std::string describe() const override { return "shared memory"; }
  Result<uint64_t> startAllReduce(std::span<std::byte>, ElementType, std::string_view) override {
    return Error{"the GPUs' sums are NCCL's"};
  }
  Status wait(uint64_t) override { return Error{"the GPUs' sums are NCCL's"}; }
  Status broadcast(std::span<std::byte> buffer, int root, std::string_view) override {
    if (self == root)
      std::copy(buffer.begin(), buffer.end(), board.bytes[root]);
    meet();
    std::copy_n(board.bytes[root], buffer.size(), buffer.begin());
    meet();
    return {};
  }
  Status allGather(std::span<const std::byte> mine, std::span<std::byte> all, std::string_view) override {
    std::copy(mine.begin(), mine.end(), board.bytes[self]);
    meet();
    for (int rank = 0; rank < size; ++rank)
      std::copy_n(board.bytes[rank], mine.size(), all.begin() + static_cast<int64_t>(mine.size()) * rank);
    meet();
    return {};
  }
  CommTimes takeTimes() override { return {}; }

private:
  void meet() {
    int target = (++met) * size;
    ++board.arrived;
    while (board.arrived < target)
      usleep(100);
  }
  Board &board;
  int self, size, met = 0;
};

/// A rank of a run: its device and network.
struct Rank {
  SharedComm &comm;
  SimDevice &sim;
  void plant(CudasimNcclFault fault, uint64_t collective) const {
    void *library = dlopen(simOptions().ncclLibrary.c_str(), RTLD_NOW);
    reinterpret_cast<void (*)(CudasimNcclFault, uint64_t)>(dlsym(library, "cudasimNcclPlant"))(fault, collective);
  }
};

/// Runs each rank in a process of its own; `ordinal` gives its GPU. Exit statuses: 0 good, 1 an expectation failed.
std::vector<int> runRanks(int numRanks, const std::function<void(Rank &)> &body, uint64_t seed = 1,
                          std::chrono::milliseconds timeout = std::chrono::seconds(20), bool sharesGpu = false) {
  void *memory = mmap(nullptr, sizeof(SharedComm::Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  auto *board = new (memory) SharedComm::Board;
  std::vector<pid_t> processes;
  for (int rank = 0; rank < numRanks; ++rank) {
    pid_t process = fork();
    if (process == 0) {
      alarm(60);
      CudasimConfig config = kPlainConfig;
      config.numDevices = numRanks;
      config.seed = seed * 100 + static_cast<uint64_t>(rank);
      CudaDeviceOptions options = simOptions();
      options.ordinal = sharesGpu ? 0 : rank;
      options.rankTimeout = timeout;
      SharedComm comm(*board, rank, numRanks);
      SimDevice sim(config, options);
      Rank self{comm, sim};
      body(self);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    processes.push_back(process);
  }
  std::vector<int> statuses;
  for (pid_t process : processes) {
    int status = 0;
    waitpid(process, &status, 0);
    statuses.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
  }
  munmap(memory, sizeof(SharedComm::Board));
  return statuses;
}

constexpr uint64_t kCount = 64; // floats of a part

/// Two messages of two parts, sent while other memory is filled, then copied on: part p of the state goes to the
/// arena, is summed there, and the sum goes back to the state.
Program sumProgram() {
  Program program;
  auto part = [](Space space, uint64_t index) { return BufferRef{space, index * kCount * 4, kCount * 4}; };
  auto add = [&](KernelKind kind, const char *name, std::vector<BufferRef> operands) -> Launch & {
    Launch &launch = program.launches.emplace_back();
    launch.kind = kind;
    launch.name = name;
    launch.operands = std::move(operands);
    launch.entry = kind == KernelKind::Copy ? 0 : -1;
    launch.ints.resize(kind == KernelKind::Copy ? 21 : 0);
    return launch;
  };
  for (int64_t message = 0; message < 2; ++message) {
    uint64_t first = 2 * static_cast<uint64_t>(message);
    for (uint64_t i : {first, first + 1})
      add(KernelKind::Copy, "gather", {part(Space::state, i), part(Space::arena, i)});
    add(KernelKind::AllReduceStart, message == 0 ? "h.0/weight" : "h.1/weight",
        {part(Space::arena, first), part(Space::arena, first + 1)})
        .ints = {message, 0};
  }
  add(KernelKind::Zero, "beside", {part(Space::arena, 4)});
  for (int64_t message = 0; message < 2; ++message) {
    uint64_t first = 2 * static_cast<uint64_t>(message);
    add(KernelKind::AllReduceWait, "wait", {part(Space::arena, first), part(Space::arena, first + 1)}).ints = {message,
                                                                                                               0};
    for (uint64_t i : {first, first + 1})
      add(KernelKind::Copy, "scatter", {part(Space::arena, i), part(Space::state, i)});
  }
  program.arenaBytes = 5 * kCount * 4;
  return program;
}

Result<std::unique_ptr<PreparedProgram>> prepare(Rank &rank, const Program &program, std::byte *state) {
  CodeEntry copy{.name = "copy", .offset = 0, .symbol = "copy", .gridX = 1, .blockX = kCount, .sharedBytes = 0};
  LLMC_RETURN_IF_ERROR(rank.sim.load(llmc::test::kCopyCode, {copy}));
  Result<std::byte *> arena = rank.sim.device->allocate(program.arenaBytes, "arena");
  LLMC_RETURN_IF_ERROR(arena);
  return rank.sim.device->prepare(program, {state, nullptr, *arena}, &rank.comm);
}

TEST(CudaRanks, sumOverProcessesInEverySchedule) {
  for (int numRanks : {2, 4})
    for (uint64_t seed = 1; seed <= 10; ++seed)
      EXPECT_THAT(runRanks(
                      numRanks,
                      [&](Rank &rank) {
                        std::byte *state =
                            rank.sim.upload(std::vector<float>(4 * kCount, static_cast<float>(rank.comm.rank() + 1)));
                        auto program = prepare(rank, sumProgram(), state);
                        ASSERT_TRUE(program.ok()) << program.error().message;
                        float expected = static_cast<float>(numRanks * (numRanks + 1)) / 2;
                        std::vector<double> times(sumProgram().launches.size(), -1);
                        for (int run = 0; run < 4; ++run, expected *= static_cast<float>(numRanks)) {
                          Status status = run == 3 ? (*program)->runProfiled(times) : (*program)->run();
                          ASSERT_TRUE(status.ok()) << status.error().message;
                          EXPECT_THAT(rank.sim.download<float>(state, 4 * kCount), Each(expected)) << "run " << run;
                        }
                        EXPECT_THAT(times, Each(testing::Ge(0)));
                        EXPECT_TRUE(rank.comm.allGather({}, {}, "the end").ok()) << "a rank that is gone is a fault";
                      },
                      seed),
                  Each(0))
          << numRanks << " ranks, seed " << seed;
}

/// Runs until the rank that is expected to notice does; its error.
void expectFailure(Rank &rank, const Program &program, const std::string &words) {
  std::byte *state = rank.sim.upload(std::vector<float>(4 * kCount, 1));
  auto prepared = prepare(rank, program, state);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  Status status = (*prepared)->run();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, HasSubstr(words));
}

TEST(CudaRanks, aRankThatNeverComesIsNoticed) {
  EXPECT_THAT(runRanks(
                  2,
                  [](Rank &rank) {
                    if (rank.comm.rank() == 1)
                      rank.plant(cudasimNcclHang, 1);
                    expectFailure(rank, sumProgram(), "collective 1 ('h.1/weight') has not ended within 300 ms");
                  },
                  1, std::chrono::milliseconds(300)),
              Each(0));
}

TEST(CudaRanks, aRankThatDiesIsNoticed) {
  std::vector<int> statuses = runRanks(2, [](Rank &rank) {
    if (rank.comm.rank() == 0)
      rank.plant(cudasimNcclDie, 1);
    expectFailure(rank, sumProgram(), "rank 0 is gone");
  });
  EXPECT_EQ(statuses[0], -SIGKILL);
  EXPECT_EQ(statuses[1], 0);
}

TEST(CudaRanks, collectivesInAnotherOrderAreNoticed) {
  EXPECT_THAT(runRanks(2,
                       [](Rank &rank) {
                         Program program = sumProgram();
                         if (rank.comm.rank() == 1) // one part only: another message
                           program.launches[2].operands.pop_back();
                         expectFailure(rank, program, "rank");
                       }),
              Each(0));
}

TEST(CudaRanks, twoRanksOnOneGpuAreRefused) {
  EXPECT_THAT(runRanks(
                  2,
                  [](Rank &rank) {
                    std::byte *state = rank.sim.upload(std::vector<float>(4 * kCount, 1));
                    auto prepared = prepare(rank, sumProgram(), state);
                    ASSERT_FALSE(prepared.ok());
                    EXPECT_THAT(prepared.error().message,
                                HasSubstr("ranks 0 and 1 have the same GPU: each needs one of its own"));
                  },
                  1, std::chrono::seconds(20), /*sharesGpu=*/true),
              Each(0));
}

TEST(CudaRanks, partsMustFollowEachOther) {
  EXPECT_THAT(runRanks(2,
                       [](Rank &rank) {
                         std::byte *state = rank.sim.upload(std::vector<float>(4 * kCount, 1));
                         auto errorWith = [&](void (*edit)(Launch &)) {
                           Program program = sumProgram();
                           edit(program.launches[2]);
                           auto prepared = prepare(rank, program, state);
                           return prepared ? "" : prepared.error().message;
                         };
                         EXPECT_EQ(errorWith([](Launch &l) { l.operands[1].offset += 64; }),
                                   "all_reduce_start 'h.0/weight': part 1 does not follow the part before it");
                         EXPECT_EQ(errorWith([](Launch &l) { l.ints[1] = int64_t(ElementType::i64); }),
                                   "all_reduce_start 'h.0/weight': a sum over ranks of elements that are neither f32 "
                                   "nor bf16");
                         EXPECT_EQ(errorWith([](Launch &l) { l.operands.clear(); }),
                                   "all_reduce_start 'h.0/weight': a sum over ranks of nothing");
                         EXPECT_EQ(errorWith([](Launch &l) { l.ints[0] = 2; }),
                                   "all_reduce_start 'h.0/weight': position 2 of a program with 2 collectives");
                       }),
              Each(0));
}

} // namespace
} // namespace llmc::cuda::test
