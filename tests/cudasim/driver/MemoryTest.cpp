// Memory and copies on the simulated device, with the mistakes that a runtime makes with them.
#include "tests/cudasim/driver/DriverBench.h"

#include <numeric>

namespace llmc::cudasim {
namespace {

using testing::Each;
using testing::HasSubstr;

TEST(CudaSimMemory, copiesAndFills) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate(), y = bench.allocate();
  uint32_t *host = bench.pinned();
  std::iota(host, host + kCount, 0u);
  bench.ok(bench.driver->cuMemcpyHtoDAsync(x, host, kBytes, bench.one));
  bench.ok(bench.driver->cuMemcpyDtoDAsync(y, x, kBytes, bench.one));
  bench.ok(bench.driver->cuMemsetD32Async(y, 9, 4, bench.one));
  bench.ok(bench.driver->cuMemsetD8Async(y + 16, 1, 4, bench.one));
  std::vector<uint32_t> values(kCount);
  bench.ok(bench.driver->cuMemcpyDtoHAsync(values.data(), y, kBytes, bench.one));
  bench.ok(bench.driver->cuStreamSynchronize(bench.one));
  EXPECT_EQ(values[3], 9u);
  EXPECT_EQ(values[4], 0x01010101u);
  EXPECT_EQ(values[5], 5u);
  EXPECT_EQ(values[kCount - 1], kCount - 1);
}

TEST(CudaSimMemory, aPinnedSourceThatChangesTooEarlyIsFound) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate();
  uint32_t *host = bench.pinned();
  std::fill(host, host + kCount, 1u);
  bench.ok(bench.driver->cuMemcpyHtoDAsync(x, host, kBytes, bench.one));
  host[7] = 2;
  EXPECT_EQ(bench.driver->cuStreamSynchronize(bench.one), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(bench.lastFault(), HasSubstr("host memory changed while a copy waited"));
}

TEST(CudaSimMemory, pageableMemoryIsReadAtOnce) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate();
  std::vector<uint32_t> host(kCount, 1);
  bench.ok(bench.driver->cuMemcpyHtoDAsync(x, host.data(), kBytes, bench.one));
  host.assign(kCount, 2);
  bench.ok(bench.driver->cuStreamSynchronize(bench.one));
  EXPECT_THAT(bench.download(x), Each(1u));
}

TEST(CudaSimMemory, aResultReadTooEarlyIsAPattern) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate();
  uint32_t *host = bench.pinned();
  bench.ok(bench.fill(bench.one, x, 3));
  bench.ok(bench.driver->cuMemcpyDtoHAsync(host, x, kBytes, bench.one));
  EXPECT_EQ(host[0], 0xcbcbcbcb);
  bench.ok(bench.driver->cuStreamSynchronize(bench.one));
  EXPECT_EQ(host[0], 3u);
}

TEST(CudaSimMemory, kernelsReachPinnedMemory) {
  DriverBench bench;
  uint32_t *host = bench.pinned();
  CUdeviceptr address = 0;
  bench.ok(bench.driver->cuMemHostGetDevicePointer(&address, host, 0));
  bench.ok(bench.fill(bench.one, address, 8));
  bench.ok(bench.driver->cuStreamSynchronize(bench.one));
  EXPECT_EQ(host[kCount - 1], 8u);
  bench.ok(bench.driver->cuMemFreeHost(host));
  EXPECT_EQ(bench.driver->cuMemFreeHost(host), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaSimMemory, wrongCopiesAreFound) {
  struct Case {
    const char *words;
    CUresult (*run)(DriverBench &, CUdeviceptr);
  };
  const Case cases[] = {
      {"read of uninitialized memory",
       [](DriverBench &bench, CUdeviceptr x) {
         std::vector<uint32_t> values(kCount);
         return bench.driver->cuMemcpyDtoH(values.data(), x, kBytes);
       }},
      {"access out of bounds",
       [](DriverBench &bench, CUdeviceptr x) {
         bench.ok(bench.driver->cuMemsetD8Async(x, 0, kBytes + 1, bench.one));
         return bench.driver->cuCtxSynchronize();
       }},
      {"cuMemset: access out of bounds",
       [](DriverBench &bench, CUdeviceptr x) {
         bench.ok(bench.driver->cuMemsetD8Async(16, 0, 1, bench.one));
         return bench.driver->cuCtxSynchronize();
       }},
      {"use after free",
       [](DriverBench &bench, CUdeviceptr x) {
         bench.ok(bench.fill(bench.one, x, 1));
         bench.ok(bench.driver->cuMemFree(x)); // the fill has not run
         return bench.driver->cuCtxSynchronize();
       }},
  };
  for (const Case &wrong : cases) {
    SCOPED_TRACE(wrong.words);
    DriverBench bench;
    EXPECT_NE(wrong.run(bench, bench.allocate()), CUDA_SUCCESS);
    EXPECT_THAT(bench.lastFault(), HasSubstr(wrong.words));
  }
}

TEST(CudaSimMemory, streamOrderedMemory) {
  for (bool waits : {true, false})
    for (uint64_t seed = 0; seed < 8; ++seed) {
      CudasimConfig config = kPlainConfig;
      config.seed = seed;
      DriverBench bench(config);
      CUdeviceptr x = 0;
      CUevent used = bench.newEvent(), made = bench.newEvent();
      bench.ok(bench.driver->cuMemAllocAsync(&x, kBytes, bench.one));
      bench.ok(bench.driver->cuEventRecord(made, bench.one));
      bench.ok(bench.driver->cuStreamWaitEvent(bench.two, made, 0));
      bench.ok(bench.fill(bench.two, x, 1));
      bench.ok(bench.driver->cuEventRecord(used, bench.two));
      if (waits)
        bench.ok(bench.driver->cuStreamWaitEvent(bench.one, used, 0));
      bench.ok(bench.driver->cuMemFreeAsync(x, bench.one));
      EXPECT_EQ(bench.driver->cuCtxSynchronize() == CUDA_SUCCESS, waits) << seed << ": " << bench.lastFault();
    }
  // Used on another stream before the allocation is sure to have run.
  for (uint64_t seed = 0; seed < 8; ++seed) {
    CudasimConfig config = kPlainConfig;
    config.seed = seed;
    DriverBench bench(config);
    CUdeviceptr x = 0;
    bench.ok(bench.driver->cuMemAllocAsync(&x, kBytes, bench.one));
    bench.ok(bench.fill(bench.two, x, 1));
    EXPECT_EQ(bench.driver->cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) << seed;
    EXPECT_THAT(bench.lastFault(), HasSubstr("race in global memory"));
  }
}

TEST(CudaSimMemory, theDeviceIsFinite) {
  CudasimConfig config = kPlainConfig;
  config.memoryBytes = 10000;
  DriverBench bench(config);
  size_t free = 0, total = 0;
  bench.ok(bench.driver->cuMemGetInfo(&free, &total));
  EXPECT_EQ(total, 10000u);
  CUdeviceptr x = bench.allocate(free), more = 0;
  EXPECT_EQ(bench.driver->cuMemAlloc(&more, 1), CUDA_ERROR_OUT_OF_MEMORY);
  bench.ok(bench.driver->cuMemFree(x));
  EXPECT_EQ(bench.driver->cuMemFree(x), CUDA_ERROR_INVALID_VALUE);
  bench.ok(bench.driver->cuMemAlloc(&more, free));
}

/// Values of a plan: [0, kBytes) lives in operations 0 and 1, [kBytes, 2 kBytes) in 1 and 2 of `user`'s arena.
size_t plannedRanges(void *user, const CudasimOperation *operation, CudasimRange *covered, CudasimRange *live,
                     size_t capacity) {
  uint64_t arena = *static_cast<CUdeviceptr *>(user);
  *covered = {arena, arena + 2 * kBytes};
  size_t count = 0;
  if (operation->number <= 1)
    live[count++] = {arena, arena + kBytes};
  if (operation->number >= 1)
    live[count++] = {arena + kBytes, arena + 2 * kBytes};
  return count;
}

TEST(CudaSimMemory, plannedLifetimes) {
  DriverBench bench;
  CUdeviceptr arena = bench.allocate(2 * kBytes), other = bench.allocate();
  bench.hook<void (*)(CudasimLiveRanges, void *)>("cudasimSetLiveRanges")(plannedRanges, &arena);
  bench.ok(bench.fill(bench.one, arena, 1));
  bench.ok(bench.add(bench.one, arena + kBytes, arena, arena));
  bench.ok(bench.driver->cuMemcpyDtoDAsync(other, arena + kBytes, kBytes, bench.one));
  ASSERT_EQ(bench.driver->cuStreamSynchronize(bench.one), CUDA_SUCCESS) << bench.lastFault();
  bench.ok(bench.add(bench.one, other, arena, arena + kBytes)); // the first value is dead by now
  EXPECT_EQ(bench.driver->cuStreamSynchronize(bench.one), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(bench.lastFault(), HasSubstr("add: access outside the planned lifetime"));
}

} // namespace
} // namespace llmc::cudasim
