// Raising norms, activations and losses changes no value: each way of spelling them out, run on the host in f64 before
// and after.
#include "tests/passes/RaiseCase.h"

namespace llmc::testing {
namespace {

class RaiseRows : public ::testing::TestWithParam<RaiseCase> {};
TEST_P(RaiseRows, KeepsTheValues) { expectRaised(GetParam()); }

const std::string kRows = "2x5x16x";

std::string mean(const std::string &name, const std::string &a) {
  return op(name, "reduce_mean", "%" + a, type("2x5x16x"), type("2x5x1x"), "{axes = array<i64: 2>}");
}
std::string rms(const std::string &x) {
  return binary("xx", "mul", x, x, kRows, kRows, kRows) + mean("ms", "xx") + constant("e", "1.0e-05");
}

std::vector<RaiseCase> rowCases() {
  std::string rows = type(kRows), x = "%x: tensor<2x5x16xf64>",
              vectors = x + ", %w: tensor<16xf64>, %b: tensor<16xf64>";
  std::string deviation = mean("m", "x") + binary("d", "sub", "x", "m", kRows, "2x5x1x", kRows) + rms("d") +
                          binary("ve", "add", "ms", "e", "2x5x1x", "", "2x5x1x");
  std::string layerNorm = "llmc.layer_norm %arg0, %arg1, %arg2 {epsilon",
              rmsNorm = "llmc.rms_norm %arg0, %arg1 {epsilon";
  std::string half = constant("half", "0.5"), one = constant("one", "1.0");
  return {
      {"RsqrtFirst", vectors, rows,
       deviation + "%r = llmc.rsqrt %ve : tensor<2x5x1xf64>\n" + binary("rw", "mul", "r", "w", "2x5x1x", "16x", kRows) +
           binary("n", "mul", "d", "rw", kRows, kRows, kRows) + binary("y", "add", "b", "n", "16x", kRows, kRows),
       layerNorm, "llmc.sub", ""},
      {"ReciprocalOfRoot", vectors, rows,
       deviation + "%r = llmc.sqrt %ve : tensor<2x5x1xf64>\n" + one +
           binary("i", "div", "one", "r", "", "2x5x1x", "2x5x1x") +
           binary("n", "mul", "d", "i", kRows, "2x5x1x", kRows) + binary("nw", "mul", "w", "n", "16x", kRows, kRows) +
           binary("y", "add", "nw", "b", kRows, "16x", kRows),
       layerNorm, "llmc.sub", ""},
      {"SumsByCount", vectors, rows,
       op("sum", "reduce_sum", "%x", rows, type("2x5x1x"), "{axes = array<i64: 2>}") + constant("n", "0.0625") +
           binary("m", "mul", "sum", "n", "2x5x1x", "", "2x5x1x") +
           binary("d", "sub", "x", "m", kRows, "2x5x1x", kRows) + binary("dd", "mul", "d", "d", kRows, kRows, kRows) +
           op("sq", "reduce_sum", "%dd", rows, type("2x5x1x"), "{axes = array<i64: 2>}") + constant("c", "16.0") +
           binary("v", "div", "sq", "c", "2x5x1x", "", "2x5x1x") + constant("e", "1.0e-05") +
           binary("ve", "add", "v", "e", "2x5x1x", "", "2x5x1x") + "%r = llmc.rsqrt %ve : tensor<2x5x1xf64>\n" +
           binary("n1", "mul", "d", "r", kRows, "2x5x1x", kRows) + binary("nw", "mul", "n1", "w", kRows, "16x", kRows) +
           binary("y", "add", "nw", "b", kRows, "16x", kRows),
       layerNorm, "llmc.sub", ""},
      {"UnbiasedVariance", vectors, rows,
       mean("m", "x") + binary("d", "sub", "x", "m", kRows, "2x5x1x", kRows) +
           binary("dd", "mul", "d", "d", kRows, kRows, kRows) +
           op("sq", "reduce_sum", "%dd", rows, type("2x5x1x"), "{axes = array<i64: 2>}") + constant("c", "15.0") +
           binary("v", "div", "sq", "c", "2x5x1x", "", "2x5x1x") + "%r = llmc.rsqrt %v : tensor<2x5x1xf64>\n" +
           binary("n1", "mul", "d", "r", kRows, "2x5x1x", kRows) + binary("y", "mul", "n1", "w", kRows, "16x", kRows),
       "llmc.sub", "norm", ""},
      {"RmsNorm", vectors, rows,
       rms("x") + binary("ve", "add", "ms", "e", "2x5x1x", "", "2x5x1x") + "%s = llmc.sqrt %ve : tensor<2x5x1xf64>\n" +
           one + binary("r", "div", "one", "s", "", "2x5x1x", "2x5x1x") +
           binary("n", "mul", "x", "r", kRows, "2x5x1x", kRows) + binary("y", "mul", "w", "n", "16x", kRows, kRows),
       rmsNorm, "reduce", ""},
      {"RmsNormOfProduct", vectors + ", %z: tensor<2x5x16xf64>", rows,
       binary("xz", "mul", "x", "z", kRows, kRows, kRows) + rms("xz") +
           binary("ve", "add", "ms", "e", "2x5x1x", "", "2x5x1x") + "%r = llmc.rsqrt %ve : tensor<2x5x1xf64>\n" +
           binary("n", "mul", "xz", "r", kRows, "2x5x1x", kRows) + binary("y", "mul", "w", "n", "16x", kRows, kRows),
       "llmc.rms_norm %0, %arg1", "reduce", ""},
      {"GeluByTanh", x, rows,
       constant("k", "0.044715") + constant("c", "0.7978845608028654") + constant("three", "3.0") + half + one +
           binary("h", "mul", "x", "half", kRows, "", kRows) + binary("x3", "pow", "x", "three", kRows, "", kRows) +
           binary("kx", "mul", "x3", "k", kRows, "", kRows) + binary("i", "add", "x", "kx", kRows, kRows, kRows) +
           binary("u", "mul", "i", "c", kRows, "", kRows) + "%t = llmc.tanh %u : " + rows + "\n" +
           binary("t1", "add", "t", "one", kRows, "", kRows) + binary("y", "mul", "h", "t1", kRows, kRows, kRows),
       "llmc.gelu %arg0 {approximate}", "tanh", ""},
      // x (c + c k x x), halved last.
      {"GeluByTanhFactored", x, rows,
       constant("ck", "0.0356774081363001") + constant("c", "0.7978845608028654") + half + one +
           binary("xx", "mul", "x", "x", kRows, kRows, kRows) + binary("i", "mul", "xx", "ck", kRows, "", kRows) +
           binary("j", "add", "c", "i", "", kRows, kRows) + binary("u", "mul", "x", "j", kRows, kRows, kRows) +
           "%t = llmc.tanh %u : " + rows + "\n" + binary("t1", "add", "one", "t", "", kRows, kRows) +
           binary("g", "mul", "x", "t1", kRows, kRows, kRows) + binary("y", "mul", "half", "g", "", kRows, kRows),
       "llmc.gelu %arg0 {approximate}", "tanh", ""},
      {"GeluByErf", x, rows,
       constant("r", "1.4142135623730951") + half + one + binary("u", "div", "x", "r", kRows, "", kRows) +
           "%t = llmc.erf %u : " + rows + "\n" + binary("t1", "add", "t", "one", kRows, "", kRows) +
           binary("g", "mul", "half", "t1", "", kRows, kRows) + binary("y", "mul", "x", "g", kRows, kRows, kRows),
       "llmc.gelu %arg0 :", "erf", ""},
      {"GeluOfProduct", x + ", %w: tensor<16xf64>", rows,
       binary("z", "mul", "x", "w", kRows, "16x", kRows) + constant("r", "0.70710678118654757") + half +
           binary("u", "mul", "r", "z", "", kRows, kRows) + "%t = llmc.erf %u : " + rows + "\n" +
           binary("th", "mul", "t", "half", kRows, "", kRows) + binary("t1", "add", "th", "half", kRows, "", kRows) +
           binary("y", "mul", "t1", "z", kRows, kRows, kRows),
       "llmc.gelu %0 :", "erf", ""},
      {"NoGelu", x, rows,
       half + one + "%t = llmc.erf %x : " + rows + "\n" + binary("t1", "add", "t", "one", kRows, "", kRows) +
           binary("g", "mul", "half", "t1", "", kRows, kRows) + binary("y", "mul", "x", "g", kRows, kRows, kRows),
       "llmc.erf", "gelu", ""},
      {"SiluBySigmoid", x, rows,
       "%s = llmc.sigmoid %x : " + rows + "\n" + binary("y", "mul", "s", "x", kRows, kRows, kRows), "llmc.silu %arg0",
       "sigmoid", ""},
      {"SiluByExp", x, rows,
       one + "%m = llmc.neg %x : " + rows + "\n%e = llmc.exp %m : " + rows + "\n" +
           binary("e1", "add", "one", "e", "", kRows, kRows) + binary("y", "div", "x", "e1", kRows, kRows, kRows),
       "llmc.silu %arg0", "exp", ""},
  };
}

INSTANTIATE_TEST_SUITE_P(Rows, RaiseRows, ::testing::ValuesIn(rowCases()), caseName);

std::vector<RaiseCase> lossCases() {
  std::string arguments = "%x: tensor<2x3x2xf64>, %labels: tensor<2x3xi64>", row = "tensor<2xi64>",
              all = type("2x3x2x");
  std::string selection = "%i = llmc.iota {dim = 0 : i64} : " + row + "\n" +
                          op("l", "reshape", "%labels", "tensor<2x3xi64>", "tensor<2x3x1xi64>") +
                          op("h", "equal", "%i, %l", row + ", tensor<2x3x1xi64>", type("2x3x2x", "i1")) +
                          constant("zero", "0.0");
  std::string selected = select("s", "h", "lp", "zero", type("2x3x2x", "i1") + ", " + all + ", " + type(""), all);
  std::string sumRows = op("rows", "reduce_sum", "%s", all, type("2x3x1x"), "{axes = array<i64: 2>}");
  std::string meanAll =
      op("mean", "reduce_mean", "%rows", type("2x3x1x"), type("1x1x1x"), "{axes = array<i64: 0, 1, 2>}");
  std::string log = "%lp = llmc.log_softmax %x : " + all + "\n";
  // Some rows select nothing: they give zero and count in a mean.
  std::string outside =
      "%in = llmc.constant dense<[[[true], [false], [true]], [[false], [true], [false]]]> : " + type("2x3x1x", "i1") +
      "\n%no = llmc.constant dense<[[[0], [-100], [0]], [[-7], [0], [2]]]> : " + "tensor<2x3x1xi64>\n" +
      op("l0", "reshape", "%labels", "tensor<2x3xi64>", "tensor<2x3x1xi64>") +
      op("l", "select", "%in, %l0, %no", type("2x3x1x", "i1") + ", tensor<2x3x1xi64>, tensor<2x3x1xi64>",
         "tensor<2x3x1xi64>");
  std::string someOutside = selection;
  std::string plain = op("l", "reshape", "%labels", "tensor<2x3xi64>", "tensor<2x3x1xi64>");
  someOutside.replace(someOutside.find(plain), plain.size(), outside);
  std::string loss = "llmc.softmax_cross_entropy";
  return {
      {"Mean", arguments, type(""),
       log + selection + selected + sumRows + meanAll + "%neg = llmc.neg %mean : " + type("1x1x1x") + "\n" +
           reshape("y", "neg", "1x1x1x", ""),
       loss, "log_softmax", ""},
      {"NegatedRows", arguments, type(""),
       "%p = llmc.softmax %x : " + all + "\n%lp = llmc.log %p : " + all + "\n" + selection +
           op("one", "cast", "%h", type("2x3x2x", "i1"), all) +
           binary("s", "mul", "one", "lp", "2x3x2x", "2x3x2x", "2x3x2x") +
           op("r0", "reduce_sum", "%s", all, type("2x3x1x"), "{axes = array<i64: 2>}") +
           "%rows = llmc.neg %r0 : " + type("2x3x1x") + "\n" + meanAll + reshape("y", "mean", "1x1x1x", ""),
       loss, "llmc.log", ""},
      {"SumByCount", arguments, type(""),
       log + selection + selected + op("sum", "reduce_sum", "%s", all, type("1x1x1x"), "{axes = array<i64: 0, 1, 2>}") +
           constant("n", "-6.0") + binary("m", "div", "sum", "n", "1x1x1x", "", "1x1x1x") +
           reshape("y", "m", "1x1x1x", ""),
       loss, "log_softmax", ""},
      {"Sum", arguments, type(""),
       log + selection + selected + op("sum", "reduce_sum", "%s", all, type("1x1x1x"), "{axes = array<i64: 0, 1, 2>}") +
           "%m = llmc.neg %sum : " + type("1x1x1x") + "\n" + reshape("y", "m", "1x1x1x", ""),
       loss, "log_softmax", ""},
      {"MeanOfLabelsOutside", arguments, type(""),
       log + someOutside + selected + sumRows + meanAll + "%neg = llmc.neg %mean : " + type("1x1x1x") + "\n" +
           reshape("y", "neg", "1x1x1x", ""),
       loss, "log_softmax", ""},
      {"NotMinus", arguments, type(""),
       log + selection + selected + sumRows + meanAll + reshape("y", "mean", "1x1x1x", ""), "log_softmax",
       "cross_entropy", ""},
  };
}

INSTANTIATE_TEST_SUITE_P(Loss, RaiseRows, ::testing::ValuesIn(lossCases()), caseName);

} // namespace
} // namespace llmc::testing
