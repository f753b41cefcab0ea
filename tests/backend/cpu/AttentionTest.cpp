// Attention and its gradient against f64 loops: causal and not, windows, masks, grouped heads, packed rows, odd head
// sizes and lengths, f32 and bf16; and the same bits on one, two, three and seven threads.
#include "tests/backend/cpu/AttentionReference.h"
#include "tests/backend/cpu/LaunchRunner.h"

#include <cmath>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

/// Where q, k, v (or their gradients) lie in one packed buffer or three dense ones.
struct Rows {
  int64_t stride, offset;
};
struct Layout {
  Rows q, k, v;
  explicit Layout(const AttentionCase &c) : q{c.columns(), 0}, k{c.kvColumns(), 0}, v{c.kvColumns(), 0} {
    if (!c.isPacked)
      return;
    int64_t stride = c.columns() + 2 * c.kvColumns();
    q = {stride, 0};
    k = {stride, c.columns()};
    v = {stride, c.columns() + c.kvColumns()};
  }
};

std::vector<float> pack(const AttentionCase &c, const AttentionTensors &t) {
  std::vector<float> packed;
  for (int64_t row = 0; row < c.batch * c.queries; ++row)
    for (auto [tensor, columns] : {std::pair(&t.q, c.columns()), {&t.k, c.kvColumns()}, {&t.v, c.kvColumns()}})
      packed.insert(packed.end(), tensor->begin() + row * columns, tensor->begin() + (row + 1) * columns);
  return packed;
}

/// Rows taken out of a buffer again.
std::vector<float> unpack(const std::vector<float> &buffer, Rows rows, int64_t numRows, int64_t columns) {
  std::vector<float> dense;
  for (int64_t row = 0; row < numRows; ++row)
    for (int64_t j = 0; j < columns; ++j)
      dense.push_back(buffer[size_t(rows.offset + row * rows.stride + j)]);
  return dense;
}

class Attention {
public:
  Attention(const AttentionCase &c, KernelKind kind, int threads) : c(c), layout(c), runner(kind, threads) {
    runner.ints({{"batch", c.batch},
                 {"queries", c.queries},
                 {"keys", c.keys},
                 {"heads", c.heads},
                 {"kvHeads", c.kvHeads},
                 {"headSize", c.headSize},
                 {"causal", c.causal},
                 {"window", c.window},
                 {"type", int64_t(c.isBf16 ? ElementType::bf16 : ElementType::f32)},
                 {"qRowStride", layout.q.stride},
                 {"qOffset", layout.q.offset},
                 {"kRowStride", layout.k.stride},
                 {"kOffset", layout.k.offset},
                 {"vRowStride", layout.v.stride},
                 {"vOffset", layout.v.offset},
                 {"maskBatchStride", c.maskStrides[0]},
                 {"maskHeadStride", c.maskStrides[1]},
                 {"maskQueryStride", c.maskStrides[2]},
                 {"maskKeyStride", c.maskStrides[3]}});
    runner.number("scale", c.scale);
  }

  void inputs(const AttentionTensors &t) {
    if (c.isPacked) {
      for (const char *name : {"q", "k", "v"})
        put(name, pack(c, t));
    } else {
      put("q", t.q);
      put("k", t.k);
      put("v", t.v);
    }
    if (c.hasMask)
      runner.operand("mask", t.mask);
  }
  void put(const char *name, const std::vector<float> &values) {
    if (c.isBf16)
      runner.operand(name, asBf16(values));
    else
      runner.operand(name, values);
  }
  std::vector<float> get(const char *name) {
    return c.isBf16 ? fromBf16(runner.result<uint16_t>(name)) : runner.result<float>(name);
  }

  const AttentionCase &c;
  Layout layout;
  LaunchRunner runner;
};

struct Gradients {
  std::vector<float> dq, dk, dv;
  bool operator==(const Gradients &) const = default;
};

struct Outcome {
  std::vector<float> out, lse;
  Gradients gradients;
  bool operator==(const Outcome &) const = default;
};

void runBoth(const AttentionCase &c, const AttentionTensors &t, int threads, Outcome &outcome) {
  Attention forward(c, KernelKind::Attention, threads);
  forward.inputs(t);
  forward.put("out", std::vector<float>(t.q.size(), NAN));
  forward.runner.operand("lse", std::vector<float>(size_t(c.batch * c.heads * c.queries), NAN));
  Status status = forward.runner.run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  outcome.out = forward.get("out");
  outcome.lse = forward.runner.result<float>("lse");

  Attention backward(c, KernelKind::AttentionGrad, threads);
  const Layout &layout = backward.layout;
  backward.inputs(t);
  backward.put("out", outcome.out);
  backward.runner.operand("lse", outcome.lse);
  backward.put("dOut", t.dOut);
  size_t packed = c.isPacked ? t.q.size() + t.k.size() + t.v.size() : 0;
  backward.put("dq", std::vector<float>(packed ? packed : t.q.size(), NAN));
  backward.put("dk", std::vector<float>(packed ? packed : t.k.size(), NAN));
  backward.put("dv", std::vector<float>(packed ? packed : t.v.size(), NAN));
  backward.runner.ints({{"dqRowStride", layout.q.stride},
                        {"dqOffset", layout.q.offset},
                        {"dkRowStride", layout.k.stride},
                        {"dkOffset", layout.k.offset},
                        {"dvRowStride", layout.v.stride},
                        {"dvOffset", layout.v.offset}});
  status = backward.runner.run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  int64_t queryRows = c.batch * c.queries, keyRows = c.batch * c.keys;
  outcome.gradients = {unpack(backward.get("dq"), layout.q, queryRows, c.columns()),
                       unpack(backward.get("dk"), layout.k, keyRows, c.kvColumns()),
                       unpack(backward.get("dv"), layout.v, keyRows, c.kvColumns())};
}

constexpr double kLn2 = 0.6931471805599453;

double largestOf(const std::vector<double> &values) {
  double largest = 0;
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  return largest;
}

/// Within the rounding of sums over the head and over the other side of the attention, against the largest entry. In
/// bf16 (8 significant bits) the result is rounded, and on some CPUs a factor of each of its terms.
void expectNear(const AttentionCase &c, const char *what, const std::vector<float> &got,
                const std::vector<double> &expected, const std::vector<double> &terms, double largest) {
  ASSERT_EQ(got.size(), expected.size());
  double steps = double(c.headSize + std::max(c.queries, c.keys) + 16);
  double ofSums = largest * 2 * steps * 0x1p-23;
  for (size_t i = 0; i < got.size(); ++i) {
    double ofBf16 = c.isBf16 ? 0x1p-8 * (std::abs(double(got[i])) + terms[i]) : 0;
    ASSERT_NEAR(got[i], expected[i], ofSums + ofBf16) << what << " at " << i;
  }
}

/// Forward and backward of the tensors against the reference, and again on more threads.
void checkTensors(const AttentionCase &c, AttentionTensors &t, Outcome &outcome) {
  SCOPED_TRACE(testing::Message() << "T " << c.queries << " S " << c.keys << " H " << c.heads << "/" << c.kvHeads
                                  << " D " << c.headSize << " causal " << c.causal << " window " << c.window << " mask "
                                  << c.hasMask << " packed " << c.isPacked << " bf16 " << c.isBf16);
  ASSERT_NO_FATAL_FAILURE(runBoth(c, t, 1, outcome));
  referenceForward(c, t);
  expectNear(c, "out", outcome.out, t.out, t.outTerms, largestOf(t.out));
  for (size_t i = 0; i < t.lse.size(); ++i) {
    if (std::isinf(t.lse[i])) {
      ASSERT_EQ(outcome.lse[i], t.lse[i]);
    } else if (t.lse[i] > -kLn2 * std::numeric_limits<float>::max()) { // below, scores in units of log2 saturate
      ASSERT_NEAR(outcome.lse[i], t.lse[i], 1e-5 * (1 + std::abs(t.lse[i])));
    }
  }
  t.out.assign(outcome.out.begin(), outcome.out.end());
  referenceBackward(c, t);
  // dq and dk are differences that cancel to nothing where a query sees one key: all three are held to the largest.
  double largest = std::max({largestOf(t.dq), largestOf(t.dk), largestOf(t.dv)});
  expectNear(c, "dq", outcome.gradients.dq, t.dq, t.dqTerms, largest);
  expectNear(c, "dk", outcome.gradients.dk, t.dk, t.dkTerms, largest);
  expectNear(c, "dv", outcome.gradients.dv, t.dv, t.dvTerms, largest);
  for (int threads : {2, 3, 7}) {
    Outcome again;
    ASSERT_NO_FATAL_FAILURE(runBoth(c, t, threads, again));
    EXPECT_TRUE(again == outcome) << threads << " threads give other bits";
  }
}

void check(const AttentionCase &c) {
  AttentionTensors t = makeAttentionInputs(c);
  Outcome outcome;
  checkTensors(c, t, outcome);
}

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
