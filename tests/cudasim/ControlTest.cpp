// What threads do together: divergence and reconvergence, exchanges in a warp, barriers, grids; the same result for
// every schedule.
#include "tests/cudasim/SimRun.h"

#include <gtest/gtest.h>
#include <numeric>

namespace llmc::cudasim {
namespace {

constexpr const char *kRegisters =
    ".reg .pred %p<8>; .reg .b32 %r<16>; .reg .f32 %f<8>; .reg .b64 %d<8>;\n.shared .align 16 .b8 s[1024];\n";

/// A kernel of in and out; each thread has its index in %r0, &in[global index] in %d0 and &out[global index] in %d1.
std::string kernelOf(const std::string &body) {
  return kHead + ".visible .entry k(.param .u64 in, .param .u64 out) {" + kRegisters + R"(
    ld.param.u64 %d0, [in]; ld.param.u64 %d1, [out];
    mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x;
    mad.lo.s32 %r3, %r1, %r2, %r0;
    mul.wide.u32 %d2, %r3, 4;
    add.s64 %d0, %d0, %d2; add.s64 %d1, %d1, %d2;
    cvta.to.global.u64 %d0, %d0;
)" + body +
         "\nret;\n}\n";
}

std::vector<uint32_t> runOn(const std::string &body, const std::vector<uint32_t> &in, uint32_t blocks, uint32_t threads,
                            uint64_t seed = 1) {
  SimBench bench(kernelOf(body));
  uint64_t src = bench.upload(in), dst = bench.reserve(blocks * threads * 4);
  std::optional<Fault> fault = bench.run(blocks, threads, {src, dst}, seed);
  EXPECT_FALSE(fault) << fault->describe();
  return bench.download<uint32_t>(dst, blocks * threads);
}

std::vector<uint32_t> counting(size_t count) {
  std::vector<uint32_t> values(count);
  std::iota(values.begin(), values.end(), 0u);
  return values;
}

TEST(CudaSimControl, lanesDivergeAndMeetAgain) {
  // Each lane loops as often as its index says, then all exchange: all must be there.
  std::vector<uint32_t> out = runOn(R"(
    mov.u32 %r4, 0; mov.u32 %r5, 0;
    $loop:
    setp.ge.u32 %p0, %r4, %r0;
    @%p0 bra $done;
    add.u32 %r5, %r5, 2; add.u32 %r4, %r4, 1;
    bra.uni $loop;
    $done:
    shfl.sync.bfly.b32 %r6, %r5, 31, 31, -1;
    st.global.u32 [%d1], %r6;
)",
                                    counting(32), 1, 32);
  for (uint32_t i = 0; i < 32; ++i)
    EXPECT_EQ(out[i], 2 * (31 - i));
}

TEST(CudaSimControl, lanesWaitForThoseBehind) {
  // The odd lanes' code stands behind what all do next, as compilers place what is rare: the even lanes come first to
  // an exchange, then to a barrier.
  for (const char *meeting : {"shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;", "bar.sync 0; xor.b32 %r6, %r0, 1;"}) {
    std::vector<uint32_t> out = runOn(std::string(R"(
      and.b32 %r4, %r0, 1; setp.ne.u32 %p0, %r4, 0;
      mov.u32 %r5, %r0;
      @%p0 bra $rare;
      $join:
      )") + meeting + R"(
      st.global.u32 [%d1], %r6;
      ret;
      $rare:
      add.u32 %r4, %r4, 1; add.u32 %r4, %r4, 1;
      bra.uni $join;
)",
                                      counting(32), 1, 32);
    for (uint32_t i = 0; i < 32; ++i)
      EXPECT_EQ(out[i], i ^ 1);
  }
}

TEST(CudaSimControl, exchanges) {
  auto shuffled = [](const std::string &how) {
    return runOn("ld.global.u32 %r4, [%d0]; shfl.sync." + how + " st.global.u32 [%d1], %r5;", counting(32), 1, 32);
  };
  EXPECT_EQ(shuffled("bfly.b32 %r5, %r4, 16, 31, -1;")[3], 19u);
  EXPECT_EQ(shuffled("down.b32 %r5, %r4, 4, 31, -1;")[3], 7u);
  EXPECT_EQ(shuffled("down.b32 %r5, %r4, 4, 31, -1;")[30], 30u);
  EXPECT_EQ(shuffled("up.b32 %r5, %r4, 4, 0, -1;")[9], 5u);
  EXPECT_EQ(shuffled("up.b32 %r5, %r4, 4, 0, -1;")[2], 2u);
  EXPECT_EQ(shuffled("idx.b32 %r5, %r4, 0, 31, -1;")[17], 0u);
  // Segments of 8 lanes: the mask's bits 8-12 are 11000.
  EXPECT_EQ(shuffled("idx.b32 %r5, %r4, 1, 0x181f, -1;")[17], 17u);
  EXPECT_EQ(shuffled("down.b32 %r5|%p0, %r4, 4, 31, -1; selp.u32 %r5, 1, 0, %p0;")[30], 0u);
  EXPECT_EQ(shuffled("bfly.b32 %r5, %r4, 1, 31, -1; redux.sync.add.s32 %r5, %r4, -1;")[5], 31u * 16);
  EXPECT_EQ(shuffled("bfly.b32 %r5, %r4, 1, 31, -1; redux.sync.max.u32 %r5, %r4, -1;")[5], 31u);
  EXPECT_EQ(shuffled("bfly.b32 %r5, %r4, 1, 31, -1; redux.sync.or.b32 %r5, %r4, -1;")[5], 31u);
}

TEST(CudaSimControl, votes) {
  auto voted = [](const std::string &how) {
    return runOn("ld.global.u32 %r4, [%d0]; setp.lt.u32 %p0, %r4, 4; " + how + " st.global.u32 [%d1], %r5;",
                 counting(32), 1, 32)[9];
  };
  EXPECT_EQ(voted("vote.sync.ballot.b32 %r5, %p0, -1;"), 15u);
  EXPECT_EQ(voted("vote.sync.any.pred %p1, %p0, -1; selp.u32 %r5, 1, 0, %p1;"), 1u);
  EXPECT_EQ(voted("vote.sync.all.pred %p1, %p0, -1; selp.u32 %r5, 1, 0, %p1;"), 0u);
  EXPECT_EQ(voted("vote.sync.uni.pred %p1, %p0, -1; selp.u32 %r5, 1, 0, %p1;"), 0u);
  EXPECT_EQ(voted("activemask.b32 %r5;"), 0xffffffffu);
}

TEST(CudaSimControl, partOfAWarp) {
  // 40 threads: the second warp has 8 lanes, and the mask must name just those that exist.
  std::vector<uint32_t> out = runOn(R"(
    ld.global.u32 %r4, [%d0];
    activemask.b32 %r5;
    shfl.sync.bfly.b32 %r6, %r4, 1, 31, %r5;
    st.global.u32 [%d1], %r6;
)",
                                    counting(40), 1, 40);
  EXPECT_EQ(out[0], 1u);
  EXPECT_EQ(out[39], 38u);
}

/// Sum over a block: warps by exchange, then through shared memory.
constexpr const char *kBlockSum = R"(
    ld.global.f32 %f0, [%d0];
    shfl.sync.bfly.b32 %r4, %f0, 16, 31, -1; mov.b32 %f1, %r4; add.rn.f32 %f0, %f0, %f1;
    shfl.sync.bfly.b32 %r4, %f0, 8, 31, -1; mov.b32 %f1, %r4; add.rn.f32 %f0, %f0, %f1;
    shfl.sync.bfly.b32 %r4, %f0, 4, 31, -1; mov.b32 %f1, %r4; add.rn.f32 %f0, %f0, %f1;
    shfl.sync.bfly.b32 %r4, %f0, 2, 31, -1; mov.b32 %f1, %r4; add.rn.f32 %f0, %f0, %f1;
    shfl.sync.bfly.b32 %r4, %f0, 1, 31, -1; mov.b32 %f1, %r4; add.rn.f32 %f0, %f0, %f1;
    and.b32 %r5, %r0, 31; setp.ne.u32 %p0, %r5, 0;
    shr.u32 %r6, %r0, 3; and.b32 %r6, %r6, 0x1ffffffc;
    mov.u32 %r7, s; add.u32 %r8, %r7, %r6;
    @%p0 bra $first;
    st.shared.f32 [%r8], %f0;
    $first:
    bar.sync 0;
    ld.shared.v4.f32 {%f2, %f3, %f4, %f5}, [s];
    add.rn.f32 %f2, %f2, %f3; add.rn.f32 %f4, %f4, %f5; add.rn.f32 %f2, %f2, %f4;
    st.global.f32 [%d1], %f2;
)";

TEST(CudaSimControl, everyScheduleGivesTheSameSums) {
  std::vector<float> in(8 * 128);
  for (size_t i = 0; i < in.size(); ++i)
    in[i] = 0.1f * static_cast<float>(i % 37);
  std::vector<float> first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    SimBench bench(kernelOf(kBlockSum));
    uint64_t src = bench.upload(in), dst = bench.reserve(in.size() * 4);
    std::optional<Fault> fault = bench.run(8, 128, {src, dst}, seed);
    ASSERT_FALSE(fault) << fault->describe();
    std::vector<float> out = bench.download<float>(dst, in.size());
    if (seed == 0)
      first = out;
    EXPECT_EQ(out, first) << "seed " << seed;
  }
  float sum = std::accumulate(in.begin(), in.begin() + 128, 0.0f);
  EXPECT_NEAR(first[0], sum, 1e-3f);
}

TEST(CudaSimControl, gridsAndBlocksOfThreeDimensions) {
  SimBench bench(kHead + R"(
.visible .entry k(.param .u64 out) .maxntid 24, 1, 1 {
  .reg .b32 %r<10>; .reg .b64 %d<4>;
  mov.u32 %r0, %tid.z; mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.x;
  mad.lo.u32 %r3, %r0, 3, %r1; mad.lo.u32 %r3, %r3, 4, %r2;
  mov.u32 %r4, %ctaid.y; mov.u32 %r5, %ctaid.x; mov.u32 %r6, %nctaid.x;
  mad.lo.u32 %r7, %r4, %r6, %r5; mad.lo.u32 %r8, %r7, 24, %r3;
  ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %r8, 4; add.s64 %d0, %d0, %d1;
  st.global.u32 [%d0], %r8;
  ret;
})");
  uint64_t out = bench.reserve(24 * 6 * 4);
  SequentialOrder order;
  LaunchShape shape{.grid = {2, 3, 1}, .block = {4, 3, 2}};
  Result<std::vector<std::byte>> arguments = bench.kernel().packArguments({SimBench::argument(out)});
  std::optional<Fault> fault = launch(bench.kernel(), shape, *arguments, bench.memory, {.order = &order});
  ASSERT_FALSE(fault) << fault->describe();
  EXPECT_EQ(bench.download<uint32_t>(out, 24 * 6), counting(24 * 6));
}

} // namespace
} // namespace llmc::cudasim
