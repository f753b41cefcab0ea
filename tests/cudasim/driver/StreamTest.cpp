// Order on the simulated device: what events and streams order runs right in every schedule, and what they do not order
// is found in every one.
#include "tests/cudasim/driver/DriverBench.h"

namespace llmc::cudasim {
namespace {

using testing::Each;
using testing::HasSubstr;

/// x = 1 on the first stream, y = x + x on the second, z = y + x on the first. Two waits, numbers 1 and 2.
CUresult diamond(const DriverBench &bench, CUdeviceptr x, CUdeviceptr y, CUdeviceptr z) {
  CUevent filled = bench.newEvent(), doubled = bench.newEvent();
  bench.ok(bench.fill(bench.one, x, 1));
  bench.ok(bench.driver->cuEventRecord(filled, bench.one));
  bench.ok(bench.driver->cuStreamWaitEvent(bench.two, filled, 0));
  bench.ok(bench.add(bench.two, y, x, x));
  bench.ok(bench.driver->cuEventRecord(doubled, bench.two));
  bench.ok(bench.driver->cuStreamWaitEvent(bench.one, doubled, 0));
  bench.ok(bench.add(bench.one, z, y, x));
  return bench.driver->cuCtxSynchronize();
}

TEST(CudaSimStreams, eventsOrderEverySchedule) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CudasimConfig config = kPlainConfig;
    config.seed = seed;
    DriverBench bench(config);
    CUdeviceptr x = bench.allocate(), y = bench.allocate(), z = bench.allocate();
    ASSERT_EQ(diamond(bench, x, y, z), CUDA_SUCCESS) << bench.lastFault();
    EXPECT_THAT(bench.download(z), Each(3u));
  }
}

TEST(CudaSimStreams, aRemovedEventWaitIsFoundInEverySchedule) {
  for (uint64_t removed : {1, 2})
    for (uint64_t seed = 0; seed < 8; ++seed) {
      CudasimConfig config = kPlainConfig;
      config.seed = seed;
      config.dropEventWait = removed;
      DriverBench bench(config);
      CUdeviceptr x = bench.allocate(), y = bench.allocate(), z = bench.allocate();
      EXPECT_EQ(diamond(bench, x, y, z), CUDA_ERROR_LAUNCH_FAILED) << "wait " << removed << ", seed " << seed;
      // Whichever comes first: the reader finds nothing, or what is not ordered before it.
      EXPECT_THAT(bench.lastFault(), testing::AnyOf(HasSubstr("uninitialized"), HasSubstr("race in global memory")));
    }
}

/// Two streams read x, then the first writes it anew after waiting for the readers that `waits` names.
CUresult twoReaders(const CudasimConfig &config, bool waitsForFirst, bool waitsForSecond) {
  DriverBench bench(config);
  CUdeviceptr x = bench.allocate(), y = bench.allocate(), z = bench.allocate();
  CUstream three = bench.newStream();
  CUevent filled = bench.newEvent(), read[2] = {bench.newEvent(), bench.newEvent()};
  bench.ok(bench.fill(bench.one, x, 1));
  bench.ok(bench.driver->cuEventRecord(filled, bench.one));
  for (CUstream stream : {bench.two, three})
    bench.ok(bench.driver->cuStreamWaitEvent(stream, filled, 0));
  bench.ok(bench.add(bench.two, y, x, x));
  bench.ok(bench.driver->cuEventRecord(read[0], bench.two));
  bench.ok(bench.add(three, z, x, x));
  bench.ok(bench.driver->cuEventRecord(read[1], three));
  if (waitsForFirst)
    bench.ok(bench.driver->cuStreamWaitEvent(bench.one, read[0], 0));
  if (waitsForSecond)
    bench.ok(bench.driver->cuStreamWaitEvent(bench.one, read[1], 0));
  bench.ok(bench.fill(bench.one, x, 2));
  return bench.driver->cuCtxSynchronize();
}

TEST(CudaSimStreams, aWriterMustWaitForEveryReader) {
  for (uint64_t seed = 0; seed < 16; ++seed) {
    CudasimConfig config = kPlainConfig;
    config.seed = seed;
    EXPECT_EQ(twoReaders(config, true, true), CUDA_SUCCESS) << seed;
    EXPECT_EQ(twoReaders(config, true, false), CUDA_ERROR_LAUNCH_FAILED) << seed;
    EXPECT_EQ(twoReaders(config, false, true), CUDA_ERROR_LAUNCH_FAILED) << seed;
  }
}

TEST(CudaSimStreams, aFaultStaysAndIsExplained) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate(kBytes - 4);
  bench.ok(bench.fill(bench.one, x, 1));
  CUresult result = bench.driver->cuStreamSynchronize(bench.one);
  EXPECT_EQ(result, CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_THAT(
      bench.driver->check(result, "step 3").error().message,
      HasSubstr("step 3: CUDA_ERROR_ILLEGAL_ADDRESS (700): fill: access out of bounds at PTX line 9, block (3"));
  CUdeviceptr more = 0;
  EXPECT_EQ(bench.driver->cuMemAlloc(&more, 4), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(CudaSimStreams, theDefaultStreamWaitsForBlockingStreamsOnly) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate();
  CUstream blocking = bench.newStream(CU_STREAM_DEFAULT);
  bench.ok(bench.fill(blocking, x, 4));
  std::vector<uint32_t> values(kCount);
  bench.ok(bench.driver->cuMemcpyDtoH(values.data(), x, kBytes));
  EXPECT_THAT(values, Each(4u));
  bench.ok(bench.fill(bench.one, x, 5)); // not blocking: nothing orders it after the copy's read, or before the next
  bench.driver->cuMemcpyDtoH(values.data(), x, kBytes);
  EXPECT_NE(bench.driver->cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_THAT(bench.lastFault(), HasSubstr("race in global memory"));
}

TEST(CudaSimStreams, queriesAndTimes) {
  DriverBench bench;
  CUevent start = bench.newEvent(), end = bench.newEvent();
  CUdeviceptr x = bench.allocate();
  bench.ok(bench.driver->cuEventRecord(start, bench.one));
  bench.ok(bench.fill(bench.one, x, 1));
  bench.ok(bench.driver->cuEventRecord(end, bench.one));
  float milliseconds = -1;
  EXPECT_EQ(bench.driver->cuEventElapsedTime(&milliseconds, start, end), CUDA_ERROR_NOT_READY);
  while (bench.driver->cuEventQuery(end) == CUDA_ERROR_NOT_READY)
    ;
  bench.ok(bench.driver->cuEventElapsedTime(&milliseconds, start, end));
  EXPECT_GT(milliseconds, 0);
  bench.ok(bench.driver->cuStreamQuery(bench.one));
  bench.ok(bench.driver->cuEventSynchronize(end));
  bench.ok(bench.driver->cuEventDestroy(end));
  EXPECT_EQ(bench.driver->cuEventSynchronize(end), CUDA_ERROR_INVALID_HANDLE);
  bench.ok(bench.driver->cuStreamDestroy(bench.one));
  EXPECT_EQ(bench.driver->cuStreamSynchronize(bench.one), CUDA_ERROR_INVALID_HANDLE);
}

/// The diamond, captured from the first stream.
CUgraph capture(const DriverBench &bench, CUdeviceptr x, CUdeviceptr y, CUdeviceptr z, bool joins, CUresult &result) {
  CUevent filled = bench.newEvent(), doubled = bench.newEvent();
  CUgraph graph = nullptr;
  bench.ok(bench.driver->cuStreamBeginCapture(bench.one, CU_STREAM_CAPTURE_MODE_GLOBAL));
  bench.ok(bench.fill(bench.one, x, 1));
  bench.ok(bench.driver->cuEventRecord(filled, bench.one));
  bench.ok(bench.driver->cuStreamWaitEvent(bench.two, filled, 0));
  bench.ok(bench.add(bench.two, y, x, x));
  bench.ok(bench.driver->cuEventRecord(doubled, bench.two));
  if (joins)
    bench.ok(bench.driver->cuStreamWaitEvent(bench.one, doubled, 0));
  bench.ok(bench.add(bench.one, z, joins ? y : x, x));
  result = bench.driver->cuStreamEndCapture(bench.one, &graph);
  return graph;
}

TEST(CudaSimGraphs, aCapturedDiamondRunsAgainAndAgain) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CudasimConfig config = kPlainConfig;
    config.seed = seed;
    DriverBench bench(config);
    CUdeviceptr x = bench.allocate(), y = bench.allocate(), z = bench.allocate();
    CUresult result;
    CUgraph graph = capture(bench, x, y, z, true, result);
    bench.ok(result);
    size_t count = 0;
    bench.ok(bench.driver->cuGraphGetNodes(graph, nullptr, &count));
    EXPECT_EQ(count, 3u);
    CUgraphExec exec = nullptr;
    bench.ok(bench.driver->cuGraphInstantiate(&exec, graph, 0));
    bench.ok(bench.driver->cuGraphDestroy(graph));
    for (int step = 0; step < 3; ++step) {
      bench.ok(bench.driver->cuGraphLaunch(exec, bench.one));
      bench.ok(bench.add(bench.one, y, z, z));
    }
    ASSERT_EQ(bench.driver->cuCtxSynchronize(), CUDA_SUCCESS) << bench.lastFault();
    EXPECT_THAT(bench.download(y), Each(6u));
    EXPECT_EQ(bench.hook<CudasimCounts (*)()>("cudasimCounts")().numLaunches, 12u);
    bench.ok(bench.driver->cuGraphExecDestroy(exec));
  }
}

TEST(CudaSimGraphs, nodesThatNothingOrdersAreARace) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    CudasimConfig config = kPlainConfig;
    config.seed = seed;
    DriverBench bench(config);
    CUdeviceptr x = bench.allocate(), y = bench.allocate();
    CUevent fork = bench.newEvent(), joined = bench.newEvent();
    CUgraph graph = nullptr;
    CUgraphExec exec = nullptr;
    bench.ok(bench.driver->cuStreamBeginCapture(bench.one, CU_STREAM_CAPTURE_MODE_GLOBAL));
    bench.ok(bench.driver->cuEventRecord(fork, bench.one)); // too early: before the fill
    bench.ok(bench.fill(bench.one, x, 1));
    bench.ok(bench.driver->cuStreamWaitEvent(bench.two, fork, 0));
    bench.ok(bench.add(bench.two, y, x, x));
    bench.ok(bench.driver->cuEventRecord(joined, bench.two));
    bench.ok(bench.driver->cuStreamWaitEvent(bench.one, joined, 0));
    bench.ok(bench.driver->cuStreamEndCapture(bench.one, &graph));
    bench.ok(bench.driver->cuGraphInstantiate(&exec, graph, 0));
    bench.ok(bench.driver->cuGraphLaunch(exec, bench.one));
    EXPECT_EQ(bench.driver->cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED) << "seed " << seed;
  }
}

TEST(CudaSimGraphs, captureRefusesWhatItCannotHold) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate(), y = bench.allocate(), z = bench.allocate();
  CUresult result;
  capture(bench, x, y, z, false, result);
  EXPECT_EQ(result, CUDA_ERROR_STREAM_CAPTURE_UNJOINED);

  CUgraph graph = nullptr;
  CUevent outside = bench.newEvent();
  bench.ok(bench.driver->cuEventRecord(outside, bench.two));
  bench.ok(bench.driver->cuStreamBeginCapture(bench.one, CU_STREAM_CAPTURE_MODE_GLOBAL));
  EXPECT_EQ(bench.driver->cuStreamBeginCapture(bench.one, CU_STREAM_CAPTURE_MODE_GLOBAL), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(bench.driver->cuStreamWaitEvent(bench.one, outside, 0), CUDA_ERROR_ILLEGAL_STATE);
  EXPECT_EQ(bench.driver->cuStreamSynchronize(bench.one), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(bench.driver->cuCtxSynchronize(), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  EXPECT_EQ(bench.driver->cuMemAlloc(&x, 4), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  std::vector<uint32_t> pageable(kCount);
  EXPECT_EQ(bench.driver->cuMemcpyHtoDAsync(y, pageable.data(), kBytes, bench.one),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  bench.ok(bench.driver->cuStreamIsCapturing(bench.one, &status));
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_ACTIVE);
  EXPECT_EQ(bench.driver->cuStreamEndCapture(bench.two, &graph), CUDA_ERROR_ILLEGAL_STATE);
  bench.ok(bench.driver->cuStreamEndCapture(bench.one, &graph));
  EXPECT_EQ(bench.driver->cuStreamBeginCapture(nullptr, CU_STREAM_CAPTURE_MODE_GLOBAL),
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

} // namespace
} // namespace llmc::cudasim
