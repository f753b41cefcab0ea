// Bounds follow from the type and the lengths of the sums.
#include "tests/backend/cpu/AttentionCheck.h"

#include <cmath>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

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

} // namespace

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

} // namespace llmc::test
