// Collectives between real processes on simulated devices, with the faults that ranks have.
#include "backend/cuda/Nccl.h"
#include "tests/cudasim/driver/DriverBench.h"
#include "tests/cudasim/nccl/Control.h"

#include <atomic>
#include <bit>
#include <csignal>
#include <functional>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace llmc::cudasim {
namespace {

using testing::Each;
using testing::HasSubstr;

std::unique_ptr<cuda::Nccl> library() {
  Result<std::unique_ptr<cuda::Nccl>> loaded = cuda::Nccl::load(LLMC_CUDASIM_NCCL);
  EXPECT_TRUE(loaded) << loaded.error().message;
  return std::move(*loaded);
}

/// A rank with its communicator.
class RankBench : public DriverBench {
public:
  RankBench(const ncclUniqueId &id, int rank, int numRanks, const CudasimConfig &config = kPlainConfig)
      : DriverBench(config), nccl(library()), rank(rank) {
    EXPECT_EQ(nccl->ncclCommInitRankConfig(&comm, numRanks, id, rank, nullptr), ncclSuccess);
  }
  CUdeviceptr filled(float value) const {
    CUdeviceptr address = allocate();
    ok(fill(one, address, std::bit_cast<uint32_t>(value)));
    ok(driver->cuStreamSynchronize(one));
    return address;
  }
  ncclResult_t allReduce(CUdeviceptr src, CUdeviceptr dst, CUstream stream, ncclRedOp_t how = ncclSum) const {
    return nccl->ncclAllReduce(reinterpret_cast<void *>(src), reinterpret_cast<void *>(dst), kCount, ncclFloat32, how,
                               comm, reinterpret_cast<cudaStream_t>(stream));
  }
  std::vector<float> floats(CUdeviceptr src) const {
    std::vector<float> values;
    for (uint32_t bits : download(src))
      values.push_back(std::bit_cast<float>(bits));
    return values;
  }
  void plant(CudasimNcclFault fault, uint64_t collective) const {
    reinterpret_cast<void (*)(CudasimNcclFault, uint64_t)>(nccl->symbol("cudasimNcclPlant"))(fault, collective);
  }

  std::unique_ptr<cuda::Nccl> nccl;
  ncclComm_t comm = nullptr;
  int rank;
};

/// Runs each rank in a process of its own. Gives their exit statuses: 0 good, 1 an expectation failed, -9 killed.
std::vector<int> runRanks(int numRanks, const std::function<void(const ncclUniqueId &, int)> &body) {
  ncclUniqueId id;
  library()->ncclGetUniqueId(&id);
  std::vector<pid_t> processes;
  for (int rank = 0; rank < numRanks; ++rank) {
    pid_t process = fork();
    if (process == 0) {
      alarm(60);
      body(id, rank);
      _exit(testing::Test::HasFailure() ? 1 : 0);
    }
    processes.push_back(process);
  }
  std::vector<int> statuses(numRanks);
  for (int left = numRanks; left > 0; --left) {
    int status = 0;
    pid_t ended = waitpid(-1, &status, 0); // whoever is first: the others look for processes that are gone
    for (int rank = 0; rank < numRanks; ++rank)
      if (processes[rank] == ended)
        statuses[rank] = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  return statuses;
}

TEST(CudaSimNccl, everyCollective) {
  EXPECT_THAT(runRanks(3,
                       [](const ncclUniqueId &id, int rank) {
                         RankBench bench(id, rank, 3);
                         CUdeviceptr src = bench.filled(static_cast<float>(rank + 1)), dst = bench.allocate();
                         CUdeviceptr wide = bench.allocate(3 * kBytes);
                         auto stream = reinterpret_cast<cudaStream_t>(bench.one);
                         auto *from = reinterpret_cast<void *>(src), *to = reinterpret_cast<void *>(dst);
                         EXPECT_EQ(bench.allReduce(src, dst, bench.one), ncclSuccess);
                         EXPECT_THAT(bench.floats(dst), Each(6.0f));
                         EXPECT_EQ(bench.allReduce(src, dst, bench.one, ncclAvg), ncclSuccess);
                         EXPECT_THAT(bench.floats(dst), Each(2.0f));
                         EXPECT_EQ(bench.allReduce(src, dst, bench.one, ncclMax), ncclSuccess);
                         EXPECT_THAT(bench.floats(dst), Each(3.0f));
                         EXPECT_EQ(bench.nccl->ncclBroadcast(from, to, kCount, ncclFloat32, 1, bench.comm, stream),
                                   ncclSuccess);
                         EXPECT_THAT(bench.floats(dst), Each(2.0f));
                         EXPECT_EQ(bench.nccl->ncclAllGather(from, reinterpret_cast<void *>(wide), kCount, ncclFloat32,
                                                             bench.comm, stream),
                                   ncclSuccess);
                         EXPECT_THAT(bench.floats(wide + 2 * kBytes), Each(3.0f));
                         EXPECT_EQ(bench.nccl->ncclReduceScatter(reinterpret_cast<void *>(wide), to, kCount,
                                                                 ncclFloat32, ncclSum, bench.comm, stream),
                                   ncclSuccess);
                         EXPECT_THAT(bench.floats(dst), Each(3.0f * static_cast<float>(rank + 1)));
                         // Pairs of bf16: 1.0 twice is 2.0 twice.
                         bench.ok(bench.fill(bench.one, dst, 0x3f803f80));
                         EXPECT_EQ(
                             bench.nccl->ncclAllReduce(to, to, 2 * kCount, ncclBfloat16, ncclSum, bench.comm, stream),
                             ncclSuccess);
                         EXPECT_THAT(bench.download(dst), Each(0x40404040u));
                         EXPECT_EQ(bench.nccl->ncclCommFinalize(bench.comm), ncclSuccess);
                         EXPECT_EQ(bench.nccl->ncclCommDestroy(bench.comm), ncclSuccess);
                       }),
              Each(0));
}

TEST(CudaSimNccl, overlappedInsideAGraphInEverySchedule) {
  for (uint64_t seed = 0; seed < 5; ++seed)
    EXPECT_THAT(runRanks(2,
                         [&](const ncclUniqueId &id, int rank) {
                           CudasimConfig config = kPlainConfig;
                           config.seed = 10 * seed + rank;
                           RankBench bench(id, rank, 2, config);
                           CUdeviceptr x = bench.allocate(), y = bench.allocate(), sum = bench.allocate();
                           CUevent made = bench.newEvent(), summed = bench.newEvent();
                           CUgraph graph = nullptr;
                           CUgraphExec exec = nullptr;
                           bench.ok(bench.driver->cuStreamBeginCapture(bench.one, CU_STREAM_CAPTURE_MODE_GLOBAL));
                           bench.ok(bench.fill(bench.one, x, std::bit_cast<uint32_t>(1.5f)));
                           bench.ok(bench.driver->cuEventRecord(made, bench.one));
                           bench.ok(bench.driver->cuStreamWaitEvent(bench.two, made, 0));
                           EXPECT_EQ(bench.allReduce(x, sum, bench.two), ncclSuccess);
                           bench.ok(bench.driver->cuEventRecord(summed, bench.two));
                           bench.ok(bench.add(bench.one, y, x, x)); // goes on meanwhile
                           bench.ok(bench.driver->cuStreamWaitEvent(bench.one, summed, 0));
                           bench.ok(bench.driver->cuStreamEndCapture(bench.one, &graph));
                           bench.ok(bench.driver->cuGraphInstantiate(&exec, graph, 0));
                           for (int step = 0; step < 3; ++step)
                             bench.ok(bench.driver->cuGraphLaunch(exec, bench.one));
                           EXPECT_THAT(bench.floats(sum), Each(3.0f)) << bench.lastFault();
                         }),
                Each(0));
}

TEST(CudaSimNccl, aRemovedEventWaitIsFound) {
  for (uint64_t seed = 0; seed < 5; ++seed)
    EXPECT_THAT(runRanks(2,
                         [&](const ncclUniqueId &id, int rank) {
                           CudasimConfig config = kPlainConfig;
                           config.seed = seed;
                           config.dropEventWait = 1;
                           RankBench bench(id, rank, 2, config);
                           CUdeviceptr x = bench.allocate(), sum = bench.allocate();
                           CUevent made = bench.newEvent();
                           bench.ok(bench.fill(bench.one, x, 0));
                           bench.ok(bench.driver->cuEventRecord(made, bench.one));
                           bench.ok(bench.driver->cuStreamWaitEvent(bench.two, made, 0));
                           EXPECT_EQ(bench.allReduce(x, sum, bench.two), ncclSuccess);
                           EXPECT_EQ(bench.driver->cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
                         }),
                Each(0));
}

TEST(CudaSimNccl, ranksThatCallDifferentThingsAreTold) {
  EXPECT_THAT(runRanks(3,
                       [](const ncclUniqueId &id, int rank) {
                         RankBench bench(id, rank, 3);
                         CUdeviceptr x = bench.filled(1), dst = bench.allocate();
                         EXPECT_EQ(bench.allReduce(x, dst, bench.one, rank == 1 ? ncclMax : ncclSum), ncclSuccess);
                         EXPECT_EQ(bench.driver->cuStreamSynchronize(bench.one), CUDA_ERROR_LAUNCH_FAILED);
                         EXPECT_THAT(bench.lastFault(), HasSubstr("ranks call different collectives: collective 0"));
                         ncclResult_t error = ncclSuccess;
                         EXPECT_EQ(bench.nccl->ncclCommGetAsyncError(bench.comm, &error), ncclSuccess);
                         EXPECT_EQ(error, ncclInvalidUsage);
                         EXPECT_THAT(bench.nccl->ncclGetLastError(bench.comm), HasSubstr("AllReduce of 256 elements"));
                       }),
              Each(0));
}

/// Asks for the event for a while, as a watchdog does.
bool endsInTime(const RankBench &bench, CUevent event, ncclResult_t &error) {
  for (int i = 0; i < 400; ++i) {
    CUresult result = bench.driver->cuEventQuery(event);
    if (result == CUDA_SUCCESS)
      return true;
    EXPECT_EQ(result, CUDA_ERROR_NOT_READY);
    bench.nccl->ncclCommGetAsyncError(bench.comm, &error);
    if (error != ncclSuccess)
      return false;
    usleep(1000);
  }
  return false;
}

/// A counter that all ranks' processes share.
std::atomic<int> &sharedCounter() {
  void *memory = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return *new (memory) std::atomic<int>(0);
}

void expectWatchdog(CudasimNcclFault fault, ncclResult_t expectedError, const char *words, std::vector<int> expected) {
  std::atomic<int> &numGivenUp = sharedCounter();
  EXPECT_EQ(runRanks(3,
                     [&](const ncclUniqueId &id, int rank) {
                       RankBench bench(id, rank, 3);
                       CUdeviceptr x = bench.filled(1), dst = bench.allocate();
                       if (rank == 1)
                         bench.plant(fault, 1);
                       CUevent end = bench.newEvent();
                       EXPECT_EQ(bench.allReduce(x, dst, bench.one), ncclSuccess);
                       EXPECT_EQ(bench.allReduce(x, dst, bench.one), ncclSuccess);
                       bench.ok(bench.driver->cuEventRecord(end, bench.one));
                       ncclResult_t error = ncclSuccess;
                       EXPECT_FALSE(endsInTime(bench, end, error));
                       EXPECT_EQ(error, expectedError);
                       // Who leaves is gone for the others: first all look.
                       ++numGivenUp;
                       while (numGivenUp < (fault == cudasimNcclDie ? 2 : 3))
                         usleep(1000);
                       if (*words) {
                         EXPECT_STREQ(bench.nccl->ncclGetLastError(bench.comm), words);
                       }
                       EXPECT_EQ(bench.nccl->ncclCommAbort(bench.comm), ncclSuccess);
                       bench.ok(bench.driver->cuStreamSynchronize(bench.one)); // ends now
                     }),
            expected);
}

TEST(CudaSimNccl, aRankThatHangsIsLeftByAbort) { expectWatchdog(cudasimNcclHang, ncclSuccess, "", {0, 0, 0}); }

TEST(CudaSimNccl, aRankThatDiesIsNamed) {
  expectWatchdog(cudasimNcclDie, ncclRemoteError, "rank 1 is gone", {0, -SIGKILL, 0});
}

TEST(CudaSimNccl, refusesWhatCannotBe) {
  ncclUniqueId id;
  library()->ncclGetUniqueId(&id);
  RankBench bench(id, 0, 1);
  CUdeviceptr x = bench.filled(1);
  auto *data = reinterpret_cast<void *>(x);
  auto stream = reinterpret_cast<cudaStream_t>(bench.one);
  cuda::Nccl &nccl = *bench.nccl;
  EXPECT_EQ(nccl.ncclBroadcast(data, data, 1, ncclFloat32, 1, bench.comm, stream), ncclInvalidArgument);
  EXPECT_STREQ(nccl.ncclGetLastError(nullptr), "root 1 of 1 ranks");
  EXPECT_EQ(nccl.ncclAllReduce(data, data, 1, ncclFloat8e4m3, ncclSum, bench.comm, stream), ncclInvalidArgument);
  EXPECT_EQ(nccl.ncclAllReduce(data, data, 1, ncclFloat32, ncclSum, nullptr, stream), ncclInvalidArgument);
  EXPECT_EQ(nccl.ncclAllReduce(data, data, 1 << 30, ncclFloat32, ncclSum, bench.comm, stream), ncclInvalidArgument);
  EXPECT_THAT(nccl.check(ncclInvalidArgument, "sum").error().message, HasSubstr("sum: NCCL error 4: invalid argument"));
  ncclComm_t other = nullptr;
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&other, 2, id, 2, nullptr), ncclInvalidArgument);
  EXPECT_EQ(nccl.ncclGroupEnd(), ncclInvalidUsage);
  EXPECT_EQ(nccl.ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(nccl.ncclGroupEnd(), ncclSuccess);
  int count = 0, rank = -1;
  EXPECT_EQ(nccl.ncclCommCount(bench.comm, &count), ncclSuccess);
  EXPECT_EQ(nccl.ncclCommUserRank(bench.comm, &rank), ncclSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(rank, 0);
  // Not blocking: in progress until the other rank comes.
  library()->ncclGetUniqueId(&id);
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&other, 2, id, 0, &config), ncclInProgress);
  ncclResult_t error = ncclSuccess;
  EXPECT_EQ(nccl.ncclCommGetAsyncError(other, &error), ncclSuccess);
  EXPECT_EQ(error, ncclInProgress);
  EXPECT_EQ(nccl.ncclCommInitRankConfig(&other, 2, id, 0, &config), ncclInvalidUsage);
  EXPECT_STREQ(nccl.ncclGetLastError(nullptr), "two processes are rank 0");
}

} // namespace
} // namespace llmc::cudasim
