// Raising attention changes no value: each way of spelling it out, run on the host in f64 before and after, and what it
// becomes.
#include "tests/passes/RaiseCase.h"

namespace llmc::testing {
namespace {

class RaiseAttention : public ::testing::TestWithParam<RaiseCase> {};
TEST_P(RaiseAttention, KeepsTheValues) { expectRaised(GetParam()); }

// Batch 2, 5 tokens, 4 heads of 4.
const std::string kRows = "2x5x16x", kSplit = "2x5x4x4x", kHeads = "2x4x5x4x", kHeadsT = "2x4x4x5x",
                  kScores = "2x4x5x5x";
const std::string kThree = "%q0: tensor<2x5x16xf64>, %k0: tensor<2x5x16xf64>, %v0: tensor<2x5x16xf64>";

/// (B, T, C) as heads (B, H, T, D).
std::string heads(const std::string &name, const std::string &source) {
  return reshape(name + "s", source, kRows, kSplit) + transpose(name, name + "s", kSplit, kHeads, "0, 2, 1, 3");
}
/// The same for keys, straight to (B, H, D, T).
std::string keysTransposed(const std::string &name, const std::string &source) {
  return reshape(name + "s", source, kRows, kSplit) + transpose(name, name + "s", kSplit, kHeadsT, "0, 2, 3, 1");
}
/// From keys (B, H, T, D) by three dimensions, as PyTorch's exporter writes it.
std::string keysByMatrices(const std::string &name, const std::string &source) {
  return reshape(name + "m", source, kHeads, "8x5x4x") +
         transpose(name + "t", name + "m", "8x5x4x", "8x4x5x", "0, 2, 1") +
         reshape(name, name + "t", "8x4x5x", kHeadsT);
}
std::string product(const std::string &q = "q", const std::string &kT = "kT") {
  return binary("s", "matmul", q, kT, kHeads, kHeadsT, kScores);
}
std::string softmax(const std::string &scores) { return "%p = llmc.softmax %" + scores + " : " + type(kScores) + "\n"; }
/// p v, and back to rows.
std::string values(const std::string &p = "p") {
  return binary("o", "matmul", p, "v", kScores, kHeads, kHeads) + transpose("ot", "o", kHeads, kSplit, "0, 2, 1, 3") +
         reshape("y", "ot", kSplit, kRows);
}
/// q, k^T and v from three tensors.
std::string inputs() { return heads("q", "q0") + keysTransposed("kT", "k0") + heads("v", "v0"); }
std::string scaled(const std::string &name, const std::string &a, const std::string &shape, const std::string &number) {
  return constant(name + "c", number) + binary(name, "mul", a, name + "c", shape, "", shape);
}

/// Rows of a (5, 5) matrix: `visible` where key <= query and key > query - window, `hidden` elsewhere.
std::string triangle(const std::string &visible, const std::string &hidden, int window = 5) {
  std::string text = "[";
  for (int t = 0; t < 5; ++t) {
    text += t ? ", [" : "[";
    for (int s = 0; s < 5; ++s)
      text += (s ? ", " : "") + (s <= t && s > t - window ? visible : hidden);
    text += "]";
  }
  return text + "]";
}
std::string booleans(const std::string &name, const std::string &values, const std::string &shape = "5x5x") {
  return "%" + name + " = llmc.constant dense<" + values + "> : " + type(shape, "i1") + "\n";
}
const std::string kInfinity = "0xFFF0000000000000", kLowest = "-3.4028234663852886e+38";

//===-- Attention

const std::string kCausal = "llmc.attention(%arg0, %arg1, %arg2) {causal, heads = 4 : i64, kvHeads = 4 : i64, scale = "
                            "5.000000e-01 : f64, window = 0 : i64}";

/// Scores hidden by a condition, then divided: "LLMs from scratch".
std::string hiddenScores(bool isHiddenFirst) {
  std::string mask =
      isHiddenFirst ? booleans("m", triangle("false", "true")) : booleans("m", triangle("true", "false"));
  std::string matrices = type(kScores), scalar = type("");
  return inputs() + product() + mask + constant("inf", kInfinity) +
         (isHiddenFirst
              ? select("h", "m", "inf", "s", type("5x5x", "i1") + ", " + scalar + ", " + matrices, matrices)
              : select("h", "m", "s", "inf", type("5x5x", "i1") + ", " + matrices + ", " + scalar, matrices)) +
         constant("two", "2.0") + binary("d", "div", "h", "two", kScores, "", kScores) + softmax("d") + values();
}

std::string slices(const std::string &source, const std::string &leading, int parts = 3) {
  std::string text;
  for (int i = 0; i < parts; ++i) {
    std::string zeros = leading.find('x') == leading.size() - 1 ? "0" : "0, 0",
                sizes = leading.find('x') == leading.size() - 1 ? "10" : "2, 5", ones = zeros == "0" ? "1" : "1, 1";
    text += op(std::string(1, "qkv"[i]) + "0", "slice", "%" + source, type(leading + "48x"), type(leading + "16x"),
               "{starts = array<i64: " + zeros + ", " + std::to_string(16 * i) + ">, sizes = array<i64: " + sizes +
                   ", 16>, steps = array<i64: " + ones + ", 1>}");
  }
  return text;
}

/// Queries and keys scaled by the fourth root, keys turned by matrices, a float mask added.
std::string scaledDotProduct(const std::string &sources, const std::string &mask, const std::string &maskShape,
                             const std::string &guard = "") {
  std::string text = sources + heads("q1", "q0") + heads("k1", "k0") + heads("v", "v0") + keysByMatrices("k2", "k1") +
                     scaled("q", "q1", kHeads, "0.70710678118654757") +
                     scaled("kT", "k2", kHeadsT, "0.70710678118654757") + product() + mask +
                     binary("a", "add", "s", "m", kScores, maskShape, kScores) + softmax("a");
  return text + (guard.empty() ? values() : guard + values("g"));
}

std::string nanGuard() {
  return op("n", "is_nan", "%p", type(kScores), type(kScores, "i1")) + constant("none", "0.0") +
         select("g", "n", "none", "p", type(kScores, "i1") + ", " + type("") + ", " + type(kScores), type(kScores));
}

/// Two key heads, each repeated for two query heads.
std::string groupedHeads(const std::string &name, const std::string &source) {
  return reshape(name + "a", source, "2x5x8x", "2x5x2x4x") +
         transpose(name + "b", name + "a", "2x5x2x4x", "2x2x5x4x", "0, 2, 1, 3") +
         reshape(name + "c", name + "b", "2x2x5x4x", "2x2x1x5x4x") +
         op(name + "d", "broadcast_to", "%" + name + "c", type("2x2x1x5x4x"), type("2x2x2x5x4x")) +
         reshape(name, name + "d", "2x2x2x5x4x", kHeads);
}

/// The same with the group dimension first: head h reads key head h modulo 2, which attention has no name for.
std::string cycledHeads(const std::string &name, const std::string &source) {
  return reshape(name + "a", source, "2x5x8x", "2x5x2x4x") +
         transpose(name + "b", name + "a", "2x5x2x4x", "2x2x5x4x", "0, 2, 1, 3") +
         reshape(name + "c", name + "b", "2x2x5x4x", "2x1x2x5x4x") +
         op(name + "d", "broadcast_to", "%" + name + "c", type("2x1x2x5x4x"), type("2x2x2x5x4x")) +
         reshape(name, name + "d", "2x2x2x5x4x", kHeads);
}

std::string causalAdd(const std::string &scores = "s") {
  return constant("m", triangle("0.0", kInfinity), "5x5x") + scaled("h", scores, kScores, "0.5") +
         binary("a", "add", "h", "m", kScores, "5x5x", kScores) + softmax("a");
}

std::vector<RaiseCase> attentionCases() {
  std::string rows = type(kRows);
  std::string causalMask = constant("m", triangle("0.0", kLowest), "5x5x");
  std::vector<RaiseCase> cases = {
      {"HiddenWhere", kThree, rows, hiddenScores(true), kCausal, "transpose", ""},
      {"VisibleWhere", kThree, rows, hiddenScores(false), kCausal, "transpose", ""},
      {"Packed", "%x: tensor<2x5x48xf64>", rows, scaledDotProduct(slices("x", "2x5x"), causalMask, "5x5x"),
       "llmc.attention(%arg0) {causal, heads = 4", "llmc.slice", ""},
      {"PackedRows", "%x: tensor<10x48xf64>", rows,
       reshape("x3", "x", "10x48x", "2x5x48x") + scaledDotProduct(slices("x3", "2x5x"), causalMask, "5x5x"),
       "llmc.attention(%0) {causal, heads = 4", "llmc.slice", ""},
      {"NanGuard", kThree, rows,
       scaledDotProduct("",
                        constant("m0", triangle("0.0", kLowest), "5x5x") + reshape("m1", "m0", "5x5x", "1x1x5x5x") +
                            op("m", "broadcast_to", "%m1", type("1x1x5x5x"), type("2x1x5x5x")),
                        "2x1x5x5x", nanGuard()),
       "llmc.attention(%arg0, %arg1, %arg2) {causal", "softmax", ""},
      {"NoMask", kThree, rows, inputs() + product() + softmax("s") + values(),
       "llmc.attention(%arg0, %arg1, %arg2) {heads = 4 : i64, kvHeads = 4 : i64, scale = 1.000000e+00", "matmul", ""},
      {"Window", kThree, rows, scaledDotProduct("", constant("m", triangle("0.0", kLowest, 2), "5x5x"), "5x5x"),
       "window = 2 : i64", "softmax", ""},
      {"Grouped", "%q0: tensor<2x5x16xf64>, %k0: tensor<2x5x8xf64>, %v0: tensor<2x5x8xf64>", rows,
       heads("q", "q0") + groupedHeads("k1", "k0") + keysByMatrices("kT", "k1") + groupedHeads("v", "v0") + product() +
           causalAdd() + values(),
       "llmc.attention(%arg0, %arg1, %arg2) {causal, heads = 4 : i64, kvHeads = 2", "broadcast_to", ""},
      {"Cycled", "%q0: tensor<2x5x16xf64>, %k0: tensor<2x5x8xf64>, %v0: tensor<2x5x8xf64>", rows,
       heads("q", "q0") + cycledHeads("k1", "k0") + keysByMatrices("kT", "k1") + cycledHeads("v", "v0") + product() +
           causalAdd() + values(),
       "{causal, heads = 4 : i64, kvHeads = 4", "softmax", ""},
      {"ScaledRows", kThree, rows,
       scaled("q2", "q0", kRows, "0.5") + heads("q", "q2") + keysTransposed("kT", "k0") + heads("v", "v0") + product() +
           booleans("m", triangle("true", "false")) + constant("inf", kInfinity) +
           select("h", "m", "s", "inf", type("5x5x", "i1") + ", " + type(kScores) + ", " + type(""), type(kScores)) +
           softmax("h") + values(),
       kCausal, "llmc.mul", ""},
      {"Rotary", kThree + ", %cos: tensor<5x4xf64>", rows,
       heads("q1", "q0") + binary("q", "mul", "q1", "cos", kHeads, "5x4x", kHeads) + keysTransposed("kT", "k0") +
           heads("v", "v0") + product() + causalAdd() + values(),
       "{causal, heads = 4", "softmax", ""},
      {"Matrices", kThree, rows,
       heads("q1", "q0") + heads("k1", "k0") + heads("v1", "v0") + reshape("q", "q1", kHeads, "8x5x4x") +
           reshape("k2", "k1", kHeads, "8x5x4x") + reshape("v", "v1", kHeads, "8x5x4x") +
           transpose("kT", "k2", "8x5x4x", "8x4x5x", "0, 2, 1") +
           binary("s", "matmul", "q", "kT", "8x5x4x", "8x4x5x", "8x5x5x") + scaled("h", "s", "8x5x5x", "0.5") +
           reshape("h4", "h", "8x5x5x", kScores) + causalMask +
           binary("a", "add", "h4", "m", kScores, "5x5x", kScores) + reshape("a3", "a", kScores, "8x5x5x") +
           "%p = llmc.softmax %a3 : " + type("8x5x5x") + "\n" +
           binary("o3", "matmul", "p", "v", "8x5x5x", "8x5x4x", "8x5x4x") + reshape("o", "o3", "8x5x4x", kHeads) +
           transpose("ot", "o", kHeads, kSplit, "0, 2, 1, 3") + reshape("y", "ot", kSplit, kRows),
       kCausal, "transpose", ""},
      {"OneHead", kThree, rows,
       transpose("kT", "k0", kRows, "2x16x5x", "0, 2, 1") +
           binary("s", "matmul", "q0", "kT", kRows, "2x16x5x", "2x5x5x") + causalMask +
           binary("a", "add", "s", "m", "2x5x5x", "5x5x", "2x5x5x") + "%p = llmc.softmax %a : " + type("2x5x5x") +
           "\n" + binary("y", "matmul", "p", "v0", "2x5x5x", kRows, kRows),
       "llmc.attention(%arg0, %arg1, %arg2) {causal, heads = 1", "transpose", ""},
      {"OneSequence", "%q: tensor<5x4xf64>, %k: tensor<5x4xf64>, %v: tensor<5x4xf64>", type("5x4x"),
       transpose("kT", "k", "5x4x", "4x5x", "1, 0") + binary("s", "matmul", "q", "kT", "5x4x", "4x5x", "5x5x") +
           causalMask + binary("a", "add", "s", "m", "5x5x", "5x5x", "5x5x") +
           "%p = llmc.softmax %a : " + type("5x5x") + "\n" + binary("y", "matmul", "p", "v", "5x5x", "5x4x", "5x4x"),
       "{causal, heads = 1", "softmax", ""},
  };
  std::string bits = type("5x5x", "i64"), column = type("5x1x", "i64"), row = type("5x", "i64");
  // A padding mask that is known only when the program runs, joined with the causal one.
  std::string padding =
      booleans("c", triangle("true", "false")) + "%one = llmc.constant dense<1> : tensor<i64>\n" +
      op("pad1", "equal", "%pad, %one", "tensor<2x5xi64>, tensor<i64>", "tensor<2x5xi1>") +
      op("pad4", "reshape", "%pad1", "tensor<2x5xi1>", "tensor<2x1x1x5xi1>") +
      op("both", "and", "%c, %pad4", "tensor<5x5xi1>, tensor<2x1x1x5xi1>", "tensor<2x1x5x5xi1>") +
      constant("zero", "0.0") + constant("low", kLowest) +
      select("m", "both", "zero", "low", "tensor<2x1x5x5xi1>, tensor<f64>, tensor<f64>", "tensor<2x1x5x5xf64>");
  cases.push_back({"Padding", kThree + ", %pad: tensor<2x5xi64>", rows, scaledDotProduct("", padding, "2x1x5x5x"),
                   "llmc.attention(%arg0, %arg1, %arg2) mask", "softmax", ""});
  cases.push_back({"PaddingGuarded", kThree + ", %pad: tensor<2x5xi64>", rows,
                   scaledDotProduct("",
                                    padding.substr(0, padding.find("%low = ")) + constant("low", kInfinity) +
                                        padding.substr(padding.find("%m = ")),
                                    "2x1x5x5x", nanGuard()),
                   "llmc.attention(%arg0, %arg1, %arg2) mask", "softmax", ""});
  cases.push_back(
      {"Iota", kThree, rows,
       inputs() + product() + "%r = llmc.iota {dim = 0 : i64} : " + column + "\n%c = llmc.iota {dim = 0 : i64} : " +
           row + "\n" + op("m", "less", "%r, %c", column + ", " + row, type("5x5x", "i1")) +
           constant("inf", kInfinity) + scaled("h", "s", kScores, "0.5") +
           select("a", "m", "inf", "h", type("5x5x", "i1") + ", " + type("") + ", " + type(kScores), type(kScores)) +
           softmax("a") + values(),
       kCausal, "softmax", ""});
  cases.push_back(
      {"Variable", kThree, rows,
       inputs() + product() + "%b = llmc.get @mask : tensor<7x7xf64>\n" +
           op("b5", "slice", "%b", "tensor<7x7xf64>", "tensor<5x5xf64>",
              "{starts = array<i64: 0, 0>, sizes = array<i64: 5, 5>, steps = array<i64: 1, 1>}") +
           op("m", "cast", "%b5", "tensor<5x5xf64>", "tensor<5x5xi1>") + constant("inf", kInfinity) +
           scaled("h", "s", kScores, "0.5") +
           select("a", "m", "inf", "h", type("5x5x", "i1") + ", " + type("") + ", " + type(kScores), type(kScores)) +
           softmax("a") + values(),
       kCausal, "softmax",
       "llmc.variable @mask \"constant\" tensor<7x7xf64> = "
       "dense<[[0.0,1.0,1.0,1.0,1.0,1.0,1.0],[0.0,0.0,1.0,1.0,1.0,1.0,1.0],"
       "[0.0,0.0,0.0,1.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,1.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,1.0,1.0],[0.0,0.0,0.0,0.0,0.0,"
       "0.0,1.0],"
       "[0.0,0.0,0.0,0.0,0.0,0.0,0.0]]> : tensor<7x7xf64>\n"});
  // Biases by head, scaled with the scores; and the causal mask beside them.
  cases.push_back(
      {"HeadBias", kThree + ", %bias: tensor<4x5x5xf64>", rows,
       inputs() + product() + binary("b", "add", "bias", "s", "4x5x5x", kScores, kScores) + causalAdd("b") + values(),
       "llmc.attention(%arg0, %arg1, %arg2) mask", "softmax", ""});
  // Three queries of five keys: the last query sees all.
  cases.push_back(
      {"FewerQueries", "%q0: tensor<2x3x16xf64>, %k0: tensor<2x5x16xf64>, %v0: tensor<2x5x16xf64>", type("2x3x16x"),
       reshape("qs", "q0", "2x3x16x", "2x3x4x4x") + transpose("q", "qs", "2x3x4x4x", "2x4x3x4x", "0, 2, 1, 3") +
           keysTransposed("kT", "k0") + heads("v", "v0") +
           binary("s", "matmul", "q", "kT", "2x4x3x4x", kHeadsT, "2x4x3x5x") +
           constant("m",
                    "[[0.0, 0.0, 0.0, -1.0e+38, -1.0e+38], [0.0, 0.0, 0.0, 0.0, -1.0e+38], [0.0, 0.0, 0.0, 0.0, 0.0]]",
                    "3x5x") +
           binary("a", "add", "s", "m", "2x4x3x5x", "3x5x", "2x4x3x5x") + "%p = llmc.softmax %a : " + type("2x4x3x5x") +
           "\n" + binary("o", "matmul", "p", "v", "2x4x3x5x", kHeads, "2x4x3x4x") +
           transpose("ot", "o", "2x4x3x4x", "2x3x4x4x", "0, 2, 1, 3") + reshape("y", "ot", "2x3x4x4x", "2x3x16x"),
       "{causal, heads = 4", "softmax", ""});
  // One sequence as matrices of its heads: (H, T, D).
  cases.push_back(
      {"OneBatchMatrices", "%q0: tensor<5x16xf64>, %k0: tensor<5x16xf64>, %v0: tensor<5x16xf64>", type("5x16x"),
       reshape("qs", "q0", "5x16x", "5x4x4x") + transpose("q", "qs", "5x4x4x", "4x5x4x", "1, 0, 2") +
           reshape("ks", "k0", "5x16x", "5x4x4x") + transpose("kT", "ks", "5x4x4x", "4x4x5x", "1, 2, 0") +
           reshape("vs", "v0", "5x16x", "5x4x4x") + transpose("v", "vs", "5x4x4x", "4x5x4x", "1, 0, 2") +
           binary("s", "matmul", "q", "kT", "4x5x4x", "4x4x5x", "4x5x5x") + causalMask +
           binary("a", "add", "s", "m", "4x5x5x", "5x5x", "4x5x5x") + "%p = llmc.softmax %a : " + type("4x5x5x") +
           "\n" + binary("o", "matmul", "p", "v", "4x5x5x", "4x5x4x", "4x5x4x") +
           transpose("ot", "o", "4x5x4x", "5x4x4x", "1, 0, 2") + reshape("y", "ot", "5x4x4x", "5x16x"),
       "{causal, heads = 4", "transpose", ""});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Found, RaiseAttention, ::testing::ValuesIn(attentionCases()), caseName);

//===-- What must stay

std::vector<RaiseCase> declinedCases() {
  std::string rows = type(kRows);
  std::string seeds = "%lo = llmc.scalar \"seed_lo\" : tensor<i32>\n%hi = llmc.scalar \"seed_hi\" : tensor<i32>\n%st = "
                      "llmc.scalar \"step\" : tensor<i32>\n";
  return {
      {"Dropout", kThree, rows,
       inputs() + product() + causalAdd() + seeds +
           op("g", "dropout", "%p, %lo, %hi, %st", type(kScores) + ", tensor<i32>, tensor<i32>, tensor<i32>",
              type(kScores), "{rate = 2.5e-01 : f64, node = 0 : i64}") +
           values("g"),
       "llmc.softmax", "llmc.attention", ""},
      {"TrainedMask", kThree, rows,
       inputs() + product() + "%b = llmc.get @bias : tensor<4x5x5xf64>\n" +
           binary("sb", "add", "s", "b", kScores, "4x5x5x", kScores) + causalAdd("sb") + values(),
       "llmc.softmax", "llmc.attention",
       "llmc.variable @bias \"parameter\" tensor<4x5x5xf64> = dense<0.5> : tensor<4x5x5xf64>\n"},
      {"FiniteFill", kThree, rows,
       inputs() + product() + booleans("m", triangle("false", "true")) + constant("inf", "-1.0e+01") +
           select("a", "m", "inf", "s", type("5x5x", "i1") + ", " + type("") + ", " + type(kScores), type(kScores)) +
           softmax("a") + values(),
       "llmc.softmax", "llmc.attention", ""},
      {"SoftCap", kThree, rows,
       inputs() + product() + "%t = llmc.tanh %s : " + type(kScores) + "\n" + causalAdd("t") + values(), "llmc.softmax",
       "llmc.attention", ""},
      {"ScaleByTensor", kThree + ", %w: tensor<5xf64>", rows,
       inputs() + product() + binary("t", "mul", "s", "w", kScores, "5x", kScores) + causalAdd("t") + values(),
       "llmc.softmax", "llmc.attention", ""},
  };
}

INSTANTIATE_TEST_SUITE_P(Declined, RaiseAttention, ::testing::ValuesIn(declinedCases()), caseName);

} // namespace
} // namespace llmc::testing
