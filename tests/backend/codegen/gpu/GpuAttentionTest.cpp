// Attention and its gradient on the simulated GPU, by the CPU's check: tails of tiles, head sizes that divide by
// nothing, windows, groups of heads, masks, packed rows, f32 and bf16; the same bits under every schedule.
#include "tests/backend/cpu/AttentionCheck.h"

#include <cmath>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

TEST(GpuAttention, CausalAtEveryTail) {
  for (int64_t length : {1, 17, 31, 64, 65, 97})
    check({.batch = 2,
           .queries = length,
           .keys = length,
           .heads = 2,
           .kvHeads = 2,
           .headSize = 8,
           .causal = true,
           .isPacked = true});
}

TEST(GpuAttention, HeadSizesThatDivideByNothing) {
  for (int64_t headSize : {1, 3, 13, 65, 80, 128, 256})
    check(
        {.queries = 37, .keys = 37, .heads = 1, .kvHeads = 1, .headSize = headSize, .causal = true, .isPacked = true});
}

TEST(GpuAttention, RefusesLargerHeads) {
  AttentionCase c{.queries = 4, .keys = 4, .headSize = 257};
  AttentionTensors t = makeAttentionInputs(c);
  for (KernelKind kind : {KernelKind::Attention, KernelKind::AttentionGrad}) {
    Attention launch(c, kind, 1);
    launch.inputs(t);
    Status status = launch.runner.run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "head size 257, GPU kernels take up to 256");
  }
}

TEST(GpuAttention, OtherNumbersOfKeys) {
  for (auto [queries, keys] : {std::pair<int64_t, int64_t>{20, 75}, {75, 20}})
    for (bool causal : {false, true})
      check({.queries = queries, .keys = keys, .heads = 2, .kvHeads = 2, .headSize = 12, .causal = causal});
}

TEST(GpuAttention, SlidingWindow) {
  for (int64_t window : {1, 16, 40, 500})
    for (bool causal : {true, false})
      check({.queries = 110, .keys = 110, .heads = 1, .kvHeads = 1, .headSize = 8, .causal = causal, .window = window});
}

TEST(GpuAttention, GroupedHeads) {
  for (bool packed : {true, false})
    check({.batch = 2,
           .queries = 40,
           .keys = 40,
           .heads = 6,
           .kvHeads = 2,
           .headSize = 12,
           .causal = true,
           .isPacked = packed});
}

TEST(GpuAttention, Masks) {
  const int64_t heads = 2, queries = 40, keys = 37;
  AttentionCase c{
      .batch = 2, .queries = queries, .keys = keys, .heads = heads, .kvHeads = heads, .headSize = 8, .hasMask = true};
  using Strides = std::array<int64_t, 4>;
  for (Strides strides :
       {Strides{heads * queries * keys, queries * keys, keys, 1}, {keys, 0, 0, 1}, {0, 0, 1, queries}, {0, 7, 0, 0}}) {
    std::copy(strides.begin(), strides.end(), c.maskStrides);
    check(c);
  }
  AttentionCase causal{.queries = 70,
                       .keys = 70,
                       .heads = 1,
                       .kvHeads = 1,
                       .headSize = 8,
                       .causal = true,
                       .window = 20,
                       .hasMask = true};
  causal.maskStrides[2] = 70;
  causal.maskStrides[3] = 1;
  check(causal);
}

TEST(GpuAttention, QueriesThatSeeNothingOrAreHiddenByFiniteMasks) {
  for (bool isBf16 : {false, true}) {
    AttentionCase c{
        .queries = 40, .keys = 40, .heads = 2, .kvHeads = 1, .headSize = 8, .isBf16 = isBf16, .hasMask = true};
    c.maskStrides[2] = 1;
    AttentionTensors t = makeAttentionInputs(c);
    t.mask.assign(t.mask.size(), 0);
    t.mask[4] = -std::numeric_limits<float>::infinity();
    t.mask[21] = std::numeric_limits<float>::lowest();
    t.mask[22] = -1e30f;
    t.mask[39] = -1e25f;
    Outcome outcome;
    ASSERT_NO_FATAL_FAILURE(checkTensors(c, t, outcome));
    EXPECT_EQ(outcome.out[4 * 16], 0);
    EXPECT_EQ(outcome.lse[4], -std::numeric_limits<float>::infinity());
    EXPECT_EQ(outcome.gradients.dq[4 * 16], 0);
  }
}

TEST(GpuAttention, Bf16) {
  for (int64_t headSize : {12, 64})
    check({.queries = 70,
           .keys = 70,
           .heads = 2,
           .kvHeads = 1,
           .headSize = headSize,
           .causal = true,
           .isPacked = true,
           .isBf16 = true});
}

TEST(GpuAttention, LargeScoresDoNotOverflow) {
  check({.queries = 40, .keys = 40, .heads = 1, .kvHeads = 1, .headSize = 16, .causal = true, .scale = 4});
}

} // namespace
} // namespace llmc::test
