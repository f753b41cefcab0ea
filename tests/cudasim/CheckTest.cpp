// Each check of the simulator on a kernel with the fault planted, beside the same kernel without it.
#include "tests/cudasim/SimRun.h"

#include <gmock/gmock.h>

namespace llmc::cudasim {
namespace {

using testing::HasSubstr;

/// A kernel of src and dst (u32 each); %r0 is the thread, %d0 = &src[thread], %d1 = &dst[thread], s is shared.
std::string kernelOf(const std::string &body) {
  return kHead + R"(
.visible .entry copies(.param .u64 src, .param .u64 dst) {
  .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %d<8>; .shared .align 16 .b8 s[512];
  ld.param.u64 %d0, [src]; ld.param.u64 %d1, [dst];
  mov.u32 %r0, %tid.x; mul.wide.u32 %d2, %r0, 4;
  add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2; mov.u64 %d4, s; add.s64 %d3, %d4, %d2;
)" + body +
         "\nret;\n}\n";
}

struct Outcome {
  std::optional<Fault> fault;
  std::string text() const { return fault ? fault->describe() : "no fault"; }
};

/// Runs on `threads` threads with 64 values in src and room for 64 in dst.
Outcome runOn(const std::string &body, uint32_t threads = 64, uint32_t blocks = 1, uint64_t seed = 1) {
  SimBench bench(kernelOf(body));
  uint64_t src = bench.upload(std::vector<uint32_t>(64, 5)), dst = bench.reserve(256);
  return {bench.run(blocks, threads, {src, dst}, seed)};
}

void expectFault(const Outcome &outcome, FaultKind kind, const std::string &words) {
  ASSERT_TRUE(outcome.fault) << "nothing was caught";
  EXPECT_EQ(outcome.fault->kind, kind) << outcome.text();
  EXPECT_THAT(outcome.text(), HasSubstr(words));
}

TEST(CudaSimCheck, cleanCopy) {
  Outcome outcome = runOn("ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1;");
  EXPECT_FALSE(outcome.fault) << outcome.text();
}

TEST(CudaSimCheck, outOfBounds) {
  expectFault(runOn("ld.global.u32 %r1, [%d0+4];"), FaultKind::outOfBounds,
              "copies: access out of bounds at PTX line 10, block (0, 0, 0), thread (63, 0, 0)");
  expectFault(runOn("st.global.u32 [%d1+-4], %r0;", 1), FaultKind::outOfBounds, "4 bytes");
  expectFault(runOn("ld.global.u32 %r1, [16];", 1), FaultKind::outOfBounds, "no allocation is near");
  expectFault(runOn("st.shared.u32 [%d3+512], %r0;", 1), FaultKind::outOfBounds, "of shared memory, which has 512");
}

TEST(CudaSimCheck, misaligned) {
  expectFault(runOn("ld.global.v4.u32 {%r1, %r2, %r3, %r4}, [%d0+4];", 1), FaultKind::misaligned, "16 bytes");
  expectFault(runOn("st.shared.v2.u32 [%d3+4], {%r0, %r0};", 1), FaultKind::misaligned, "8 bytes");
  expectFault(runOn("ld.global.u32 %r1, [%d0+2];", 1), FaultKind::misaligned, "4 bytes");
}

TEST(CudaSimCheck, uninitialized) {
  expectFault(runOn("ld.global.u32 %r1, [%d1];", 1), FaultKind::uninitialized, "offset 0");
  expectFault(runOn("st.shared.u16 [%d3], 7; ld.shared.u32 %r1, [%d3];", 1), FaultKind::uninitialized, "offset 2");
  // Shared memory of a new block is a new one, whatever the block before left there.
  expectFault(runOn("mov.u32 %r2, %ctaid.x; setp.eq.u32 %p0, %r2, 0; @%p0 st.shared.u32 [%d3], %r0;"
                    "@%p0 ld.shared.u32 %r1, [%d3]; @!%p0 ld.shared.u32 %r1, [%d3];",
                    1, 2),
              FaultKind::uninitialized, "block (1, 0, 0)");
}

TEST(CudaSimCheck, useAfterFree) {
  SimBench bench(kernelOf("ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1;"));
  uint64_t src = bench.upload(std::vector<uint32_t>(64, 5)), dst = bench.reserve(256);
  EXPECT_TRUE(bench.memory.free(src));
  EXPECT_FALSE(bench.memory.free(src));
  expectFault({bench.run(1, 64, {src, dst})}, FaultKind::useAfterFree, "of buffer1");
}

TEST(CudaSimCheck, outsideThePlannedLifetime) {
  SimBench bench(kernelOf("ld.global.u32 %r1, [%d0]; st.global.u32 [%d1], %r1;"));
  uint64_t arena = bench.upload(std::vector<uint32_t>(128, 5));
  LiveRanges live{.covered = {arena, arena + 512}, .live = {{arena, arena + 256}, {arena + 256, arena + 512}}};
  bench.live = &live;
  std::optional<Fault> fault = bench.run(1, 64, {arena, arena + 256});
  EXPECT_FALSE(fault) << fault->describe();
  live.live[1].end -= 4;
  expectFault({bench.run(1, 64, {arena, arena + 256})}, FaultKind::outsideLifetime, "offset 508 of buffer1");
  live.live = {{arena + 256, arena + 512}};
  expectFault({bench.run(1, 64, {arena, arena + 256})}, FaultKind::outsideLifetime, "offset 0 of buffer1");
}

// Each thread writes its word and reads its neighbour's, across the two warps too.
constexpr const char *kWriteOwn = "st.shared.u32 [%d3], %r0;";
constexpr const char *kReadOther = "xor.b32 %r2, %r0, 32; mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d4, %d5;"
                                   "ld.shared.u32 %r1, [%d5]; st.global.u32 [%d1], %r1;";

TEST(CudaSimCheck, missingBarrier) {
  Outcome clean = runOn(std::string(kWriteOwn) + "bar.sync 0;" + kReadOther);
  EXPECT_FALSE(clean.fault) << clean.text();
  for (uint64_t seed = 0; seed < 8; ++seed) {
    // Depending on the schedule the reader comes first and finds nothing.
    Outcome outcome = runOn(std::string(kWriteOwn) + kReadOther, 64, 1, seed);
    ASSERT_TRUE(outcome.fault) << "seed " << seed;
    EXPECT_TRUE(outcome.fault->kind == FaultKind::sharedRace || outcome.fault->kind == FaultKind::uninitialized);
  }
  // The next round's write needs a barrier after the read as well.
  std::string round = std::string(kWriteOwn) + "bar.sync 0;" + kReadOther;
  expectFault(runOn(round + kWriteOwn), FaultKind::sharedRace, "not ordered after thread");
  clean = runOn(round + "bar.sync 0;" + kWriteOwn);
  EXPECT_FALSE(clean.fault) << clean.text();
}

TEST(CudaSimCheck, missingWarpBarrier) {
  std::string other = "xor.b32 %r2, %r0, 1; mul.wide.u32 %d5, %r2, 4; add.s64 %d5, %d4, %d5; ld.shared.u32 %r1, [%d5];";
  Outcome clean = runOn(std::string(kWriteOwn) + "bar.warp.sync -1;" + other, 32);
  EXPECT_FALSE(clean.fault) << clean.text();
  expectFault(runOn(kWriteOwn + other, 32), FaultKind::sharedRace, "read of 4 bytes not ordered after thread");
}

TEST(CudaSimCheck, raceOfTwoWriters) {
  expectFault(runOn("st.shared.u32 [s], %r0;", 2), FaultKind::sharedRace, "write of 4 bytes");
  expectFault(runOn("ld.param.u64 %d6, [dst]; st.global.u32 [%d6], %r0;", 2), FaultKind::globalRace,
              "thread 0 of block 0");
  // Threads that write neighbouring bytes of one word do not collide.
  Outcome clean = runOn("cvt.u64.u32 %d5, %r0; add.s64 %d5, %d4, %d5; st.shared.u8 [%d5], 1; bar.sync 0;"
                        "ld.shared.u32 %r1, [%d3];",
                        64);
  EXPECT_TRUE(clean.fault);
  clean = runOn(
      "cvt.u64.u32 %d5, %r0; add.s64 %d5, %d4, %d5; st.shared.u8 [%d5], 1; bar.sync 0; ld.shared.u32 %r1, [s];", 64);
  EXPECT_FALSE(clean.fault) << clean.text();
}

TEST(CudaSimCheck, raceOfTwoBlocks) {
  expectFault(runOn("st.global.u32 [%d1], %r0;", 32, 2), FaultKind::globalRace, "of block");
  // A barrier orders a block, never two of them; reading together is no race, reading what another block writes is one.
  expectFault(runOn("mov.u32 %r2, %ctaid.x; setp.eq.u32 %p0, %r2, 0; ld.global.u32 %r1, [%d0]; bar.sync 0;"
                    "@%p0 st.global.u32 [%d0], %r1;",
                    32, 4),
              FaultKind::globalRace, "");
  Outcome clean = runOn("ld.global.u32 %r1, [%d0];", 32, 4);
  EXPECT_FALSE(clean.fault) << clean.text();
}

TEST(CudaSimCheck, barrierDivergence) {
  expectFault(runOn("setp.lt.u32 %p0, %r0, 8; @%p0 bra $skip; bar.sync 0; $skip:", 32), FaultKind::barrierDivergence,
              "of lanes 0xffffffff only 0xffffff00 are here");
  expectFault(runOn("setp.lt.u32 %p0, %r0, 32; @%p0 bra $skip; bar.sync 0; $skip:"), FaultKind::barrierDivergence,
              "threads have left the kernel while others wait");
  expectFault(runOn("setp.lt.u32 %p0, %r0, 32; @%p0 bra $other; bar.sync 0; ret; $other: bar.sync 0;"),
              FaultKind::barrierDivergence, "other threads wait at line");
}

TEST(CudaSimCheck, exchangeWithoutAllLanes) {
  expectFault(runOn("setp.lt.u32 %p0, %r0, 8; @%p0 shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;", 32),
              FaultKind::warpDivergence, "member mask 0xffffffff, but lanes 0x000000ff are here");
  expectFault(runOn("shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xff;", 8), FaultKind::warpDivergence, "reads lane 20");
}

TEST(CudaSimCheck, wrongArguments) {
  SimBench bench(kernelOf(""));
  expectFault({bench.run(1, 1, {uint64_t(0)})}, FaultKind::wrongArguments, "copies: 1 arguments for 2 parameters");
  expectFault({bench.run(1, 1, {SimBench::argument(uint64_t(0)), SimBench::argument(0)})}, FaultKind::wrongArguments,
              "argument 1 has 4 bytes, its parameter 8");
}

TEST(CudaSimCheck, wrongLaunch) {
  expectFault(runOn("", 1025), FaultKind::wrongLaunch, "1025 threads in a block");
  expectFault(runOn("", 0), FaultKind::wrongLaunch, "without threads");
  SimBench bench(kHead + ".visible .entry k() .reqntid 64, 1, 1 { ret; }");
  expectFault({bench.run(1, 32, {})}, FaultKind::wrongLaunch, ".reqntid asks for a block of (64, 1, 1)");
  SimBench most(kHead + ".visible .entry k() .maxntid 64 { ret; }");
  expectFault({most.run(1, 65, {})}, FaultKind::wrongLaunch, ".maxntid allows 64 threads, not 65");
  SimBench large(kHead + ".visible .entry k() { .shared .b8 s[50000]; ret; }");
  expectFault({large.run(1, 1, {})}, FaultKind::wrongLaunch, "50000 bytes of shared memory, 49152 allowed");
}

TEST(CudaSimCheck, endlessAndTrap) {
  expectFault(runOn("$again: bra.uni $again;", 1), FaultKind::endless, "instructions in one warp");
  expectFault(runOn("trap;", 1), FaultKind::trap, "gave up");
}

TEST(CudaSimCheck, writeToConstantMemory) {
  SimBench bench(kHead + ".const .align 4 .u32 c = 3;\n.visible .entry k() { .reg .b64 %d<1>; mov.u64 %d0, c;"
                         " st.global.u32 [%d0], 4; ret; }");
  expectFault({bench.run(1, 1, {})}, FaultKind::readOnly, "write to constant memory");
}

} // namespace
} // namespace llmc::cudasim
