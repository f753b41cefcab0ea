// Attention and its gradient against f64 loops: causal and not, windows, masks, grouped heads, packed rows, odd head
// sizes and lengths, f32 and bf16; and the same bits on one, two, three and seven threads.
#include "tests/backend/cpu/AttentionCheck.h"

#include <cmath>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

TEST(Attention, CausalAtEveryTail) {
  for (int64_t length : {1, 2, 7, 8, 15, 16, 17, 31, 33, 48, 63, 64, 65, 97, 130})
    for (int64_t headSize : {8, 20, 64})
      check({.batch = 2,
             .queries = length,
             .keys = length,
             .heads = 2,
             .kvHeads = 2,
             .headSize = headSize,
             .causal = true,
             .isPacked = true});
}

TEST(Attention, HeadSizesThatDivideByNothing) {
  for (int64_t headSize : {1, 3, 13, 65, 80, 128})
    check(
        {.queries = 45, .keys = 45, .heads = 3, .kvHeads = 3, .headSize = headSize, .causal = true, .isPacked = true});
}

TEST(Attention, LongerThanOneTask) {
  check({.queries = 600, .keys = 600, .heads = 1, .kvHeads = 1, .headSize = 24, .causal = true, .isPacked = true});
  check({.queries = 530, .keys = 530, .heads = 1, .kvHeads = 1, .headSize = 16, .causal = true, .window = 70});
}

TEST(Attention, HeadsCutIntoStretches) {
  // Too few heads for two threads and more; keys of several stretches, some of which no query of a panel sees.
  for (bool isBf16 : {false, true}) {
    AttentionCase c{.queries = 330, .keys = 330, .heads = 2, .kvHeads = 1, .headSize = 20, .causal = true};
    c.isBf16 = isBf16;
    check(c);
    c.window = 50;
    check(c);
    c.causal = false;
    check(c);
    c.window = 0;
    c.keys = 1100; // longer stretches
    c.queries = 70;
    c.heads = 1;
    check(c);
  }
}

TEST(Attention, NotCausal) {
  for (auto [queries, keys] : {std::pair<int64_t, int64_t>{5, 9}, {40, 70}, {70, 40}, {64, 128}})
    check({.batch = 2, .queries = queries, .keys = keys, .heads = 2, .kvHeads = 2, .headSize = 20});
}

TEST(Attention, CausalWithAnotherNumberOfKeys) {
  check({.queries = 20, .keys = 75, .heads = 2, .kvHeads = 2, .headSize = 20, .causal = true});
  // More queries than keys: the first ones see nothing.
  check({.queries = 75, .keys = 20, .heads = 2, .kvHeads = 2, .headSize = 20, .causal = true});
}

TEST(Attention, SlidingWindow) {
  for (int64_t window : {1, 3, 16, 40, 500})
    for (bool causal : {true, false})
      check(
          {.queries = 150, .keys = 150, .heads = 2, .kvHeads = 2, .headSize = 20, .causal = causal, .window = window});
}

TEST(Attention, GroupedHeads) {
  for (bool packed : {true, false})
    check({.batch = 2,
           .queries = 50,
           .keys = 50,
           .heads = 6,
           .kvHeads = 2,
           .headSize = 12,
           .causal = true,
           .isPacked = packed});
  check({.queries = 33, .keys = 33, .heads = 4, .kvHeads = 1, .headSize = 16, .causal = true});
}

TEST(Attention, Masks) {
  const int64_t heads = 2, queries = 70, keys = 41;
  AttentionCase c{
      .batch = 2, .queries = queries, .keys = keys, .heads = heads, .kvHeads = heads, .headSize = 20, .hasMask = true};
  using Strides = std::array<int64_t, 4>;
  for (Strides strides : {Strides{heads * queries * keys, queries * keys, keys, 1},
                          {0, 0, keys, 1},
                          {keys, 0, 0, 1},
                          {0, 0, 1, queries},
                          {0, 7, 0, 0}}) {
    std::copy(strides.begin(), strides.end(), c.maskStrides);
    check(c);
  }
  AttentionCase causal{
      .queries = 90, .keys = 90, .heads = 1, .kvHeads = 1, .headSize = 20, .causal = true, .hasMask = true};
  causal.maskStrides[2] = 90;
  causal.maskStrides[3] = 1;
  check(causal);
}

TEST(Attention, QueriesThatSeeNothing) {
  // Masked by -inf: zero, and no gradient.
  AttentionCase c{.queries = 40, .keys = 30, .headSize = 16, .hasMask = true};
  c.maskStrides[2] = 1;
  AttentionTensors t = makeAttentionInputs(c);
  t.mask.assign(t.mask.size(), 0);
  t.mask[4] = -std::numeric_limits<float>::infinity();
  Outcome outcome;
  ASSERT_NO_FATAL_FAILURE(checkTensors(c, t, outcome));
  EXPECT_EQ(outcome.out[4 * 16], 0);
  EXPECT_EQ(outcome.lse[4], -std::numeric_limits<float>::infinity());
  for (int64_t d = 0; d < 16; ++d)
    EXPECT_EQ(outcome.gradients.dq[size_t(4 * 16 + d)], 0);
}

TEST(Attention, QueriesThatFiniteMasksHide) {
  // A low finite mask on all keys of a query swallows its scores: all keys alike, with their gradients, as in PyTorch.
  // lse cannot say how many they were.
  for (bool isBf16 : {false, true})
    for (int64_t length : {40, 300}) {
      AttentionCase c{.batch = 2,
                      .queries = length,
                      .keys = length,
                      .heads = 2,
                      .kvHeads = 1,
                      .headSize = 16,
                      .causal = true,
                      .isBf16 = isBf16,
                      .hasMask = true};
      c.maskStrides[2] = 1;
      AttentionTensors t = makeAttentionInputs(c);
      t.mask.assign(t.mask.size(), 0);
      t.mask[21] = std::numeric_limits<float>::lowest();
      t.mask[22] = -1e30f;
      t.mask[size_t(length - 1)] = -1e25f;
      Outcome outcome;
      checkTensors(c, t, outcome);
    }
}

TEST(Attention, Bf16) {
  for (int64_t length : {17, 64, 130})
    for (int64_t headSize : {20, 64})
      check({.batch = 2,
             .queries = length,
             .keys = length,
             .heads = 2,
             .kvHeads = 2,
             .headSize = headSize,
             .causal = true,
             .isPacked = true,
             .isBf16 = true});
}

TEST(Attention, LargeScoresDoNotOverflow) {
  check({.queries = 40, .keys = 40, .heads = 1, .kvHeads = 1, .headSize = 16, .causal = true, .scale = 4});
}

TEST(Attention, RefusesRowsOutsideTheBuffer) {
  AttentionCase c{.queries = 4, .keys = 4, .headSize = 8, .isPacked = true};
  AttentionTensors t = makeAttentionInputs(c);
  Attention forward(c, KernelKind::Attention, 1);
  forward.inputs(t);
  forward.put("out", t.q);
  forward.runner.operand("lse", std::vector<float>(4));
  forward.runner.ints({{"vOffset", 17}});
  Status status = forward.runner.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "attention 'node': v holds 384 bytes, element 96 of f32 is outside");
}

} // namespace
} // namespace llmc::test
