// The cases by family. Types are f64, so that finite differences see the op and not its storage.
#include "tests/ir/OpCases.h"

namespace llmc::testing {

std::string OpCase::opName() const {
  size_t begin = statement.find("llmc.");
  return statement.substr(begin, statement.find_first_not_of("abcdefghijklmnopqrstuvwxyz_", begin + 5) - begin);
}

static std::string tensor(const std::string &shape, const std::string &element = "f64") {
  return "tensor<" + shape + (shape.empty() ? "" : "x") + element + ">";
}

static OpCase unary(const std::string &op, double low, double high, const std::string &attributes = "",
                    const std::string &suffix = "") {
  return {op + suffix, "%a: " + tensor("3x5"), "%y = llmc." + op + " %a " + attributes + " : " + tensor("3x5"), low,
          high};
}

static void addUnaries(std::vector<OpCase> &cases) {
  for (const char *op :
       {"neg", "abs", "round", "floor", "exp", "tanh", "erf", "sigmoid", "sin", "cos", "silu", "relu", "gelu"})
    cases.push_back(unary(op, -1.5, 1.5));
  for (const char *op : {"log", "sqrt", "rsqrt"})
    cases.push_back(unary(op, 0.4, 1.6));
  cases.push_back(unary("gelu", -3, 3, "{approximate}", "_approximate"));
  for (const char *op : {"softmax", "log_softmax"})
    cases.push_back({op, "%a: " + tensor("2x3x7"), std::string("%y = llmc.") + op + " %a : " + tensor("2x3x7"), -4, 4});
  cases.push_back({"softmax_rank_1", "%a: " + tensor("7"), "%y = llmc.softmax %a : " + tensor("7"), -4, 4});
  cases.push_back({"cast", "%a: " + tensor("3x5"), "%y = llmc.cast %a : (tensor<3x5xf64>) -> tensor<3x5xf32>"});
  cases.push_back(
      {"cast_integer", "%a: " + tensor("5", "i64"), "%y = llmc.cast %a : (tensor<5xi64>) -> tensor<5xf64>"});
  cases.push_back({"not", "%a: " + tensor("5", "i1"), "%y = llmc.not %a : tensor<5xi1>"});
  cases.push_back({"dropout", "%a: tensor<5x7xf64>, %lo: tensor<i32>, %hi: tensor<i32>, %step: tensor<i32>",
                   "%y = llmc.dropout %a, %lo, %hi, %step {node = 3 : i64, rate = 3.000000e-01 : f64} : "
                   "(tensor<5x7xf64>, tensor<i32>, "
                   "tensor<i32>, tensor<i32>) -> tensor<5x7xf64>",
                   -1.5, 1.5, 1, 1000});
}

static void addBinaries(std::vector<OpCase> &cases) {
  struct Shapes {
    const char *name, *a, *b, *y;
  };
  const Shapes shapes[] = {{"", "3x5", "3x5", "3x5"},
                           {"_row", "2x3x5", "5", "2x3x5"},
                           {"_column", "3x1", "2x3x5", "2x3x5"},
                           {"_outer", "3x1", "1x5", "3x5"},
                           {"_scalar", "", "3x5", "3x5"}};
  for (const char *op : {"add", "sub", "mul", "div", "pow", "max", "min"})
    for (const Shapes &shape : shapes)
      cases.push_back({std::string(op) + shape.name, "%a: " + tensor(shape.a) + ", %b: " + tensor(shape.b),
                       std::string("%y = llmc.") + op + " %a, %b : (" + tensor(shape.a) + ", " + tensor(shape.b) +
                           ") -> " + tensor(shape.y),
                       0.4, 1.6});
  for (const char *op : {"equal", "less", "less_equal"})
    cases.push_back({op,
                     "%a: tensor<3x5xf64>, %b: tensor<5xf64>",
                     std::string("%y = llmc.") + op + " %a, %b : (tensor<3x5xf64>, tensor<5xf64>) -> tensor<3x5xi1>",
                     -1.5,
                     1.5,
                     0,
                     1,
                     {0, 1}});
  for (const char *op : {"and", "or"})
    cases.push_back({op, "%a: tensor<3x5xi1>, %b: tensor<5xi1>",
                     std::string("%y = llmc.") + op + " %a, %b : (tensor<3x5xi1>, tensor<5xi1>) -> tensor<3x5xi1>"});
  cases.push_back({"select", "%c: tensor<3x1xi1>, %a: tensor<3x5xf64>, %b: tensor<f64>",
                   "%y = llmc.select %c, %a, %b : (tensor<3x1xi1>, tensor<3x5xf64>, tensor<f64>) -> tensor<3x5xf64>"});
  cases.push_back(
      {"select_broadcast", "%c: tensor<2x1x5xi1>, %a: tensor<5xf64>, %b: tensor<3x1xf64>",
       "%y = llmc.select %c, %a, %b : (tensor<2x1x5xi1>, tensor<5xf64>, tensor<3x1xf64>) -> tensor<2x3x5xf64>"});
}

static void addReductions(std::vector<OpCase> &cases) {
  for (const char *op : {"reduce_sum", "reduce_max", "reduce_mean"}) {
    std::string name = op, a = "%a: tensor<2x3x5xf64>";
    cases.push_back({name + "_last", a,
                     "%y = llmc." + name + " %a {axes = array<i64: 2>} : (tensor<2x3x5xf64>) -> tensor<2x3x1xf64>"});
    cases.push_back({name + "_outer", a,
                     "%y = llmc." + name + " %a {axes = array<i64: 0, 2>} : (tensor<2x3x5xf64>) -> tensor<1x3x1xf64>"});
    cases.push_back(
        {name + "_all", a,
         "%y = llmc." + name + " %a {axes = array<i64: 0, 1, 2>} : (tensor<2x3x5xf64>) -> tensor<1x1x1xf64>"});
  }
}

static void addShapes(std::vector<OpCase> &cases) {
  std::string a = "%a: tensor<3x5xf64>", ab = "%a: tensor<2x3xf64>, %b: tensor<2x1xf64>";
  cases.push_back({"reshape", a, "%y = llmc.reshape %a : (tensor<3x5xf64>) -> tensor<5x3x1xf64>"});
  cases.push_back(
      {"transpose", "%a: tensor<2x3x5xf64>",
       "%y = llmc.transpose %a {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x5xf64>) -> tensor<5x2x3xf64>"});
  cases.push_back(
      {"broadcast_to", "%a: tensor<3x1xf64>", "%y = llmc.broadcast_to %a : (tensor<3x1xf64>) -> tensor<2x3x5xf64>"});
  cases.push_back({"slice", a,
                   "%y = llmc.slice %a {starts = array<i64: 1, 0>, sizes = array<i64: 2, 3>, steps = array<i64: 1, 2>} "
                   ": (tensor<3x5xf64>) "
                   "-> tensor<2x3xf64>"});
  cases.push_back(
      {"slice_backwards", a,
       "%y = llmc.slice %a {starts = array<i64: 2, 4>, sizes = array<i64: 3, 2>, steps = array<i64: -1, -3>} : "
       "(tensor<3x5xf64>) -> tensor<3x2xf64>"});
  cases.push_back({"place", ab,
                   "%y = llmc.place %a, %b {starts = array<i64: 0, 0, 0, 3>, steps = array<i64: 1, 1, 1, 1>, fill = "
                   "0.000000e+00 : f64} : "
                   "(tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x4xf64>"});
  cases.push_back({"place_gaps", ab,
                   "%y = llmc.place %a, %b {starts = array<i64: 1, 0, 0, 6>, steps = array<i64: 2, 2, 3, 1>, fill = "
                   "5.000000e-01 : f64} : "
                   "(tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<5x7xf64>"});
  cases.push_back({"place_into", "%a: tensor<2x3xf64>, %e: tensor<2x4xf64>",
                   "%y = llmc.place_into %a, %e {starts = array<i64: 0, 1>, steps = array<i64: 1, 1>} : "
                   "(tensor<2x3xf64>, tensor<2x4xf64>) "
                   "-> tensor<2x4xf64>"});
}

static void addMatMuls(std::vector<OpCase> &cases) {
  for (bool left : {false, true})
    for (bool right : {false, true}) {
      std::string flags = left && right ? " {transposeLhs, transposeRhs}"
                          : left        ? " {transposeLhs}"
                          : right       ? " {transposeRhs}"
                                        : "";
      std::string suffix = std::string(left ? "_tl" : "") + (right ? "_tr" : "");
      std::string lhs = tensor(left ? "5x3" : "3x5"), rhs = tensor(right ? "7x5" : "5x7"), y = tensor("3x7"),
                  bias = tensor("7");
      cases.push_back({"matmul" + suffix, "%a: " + lhs + ", %b: " + rhs,
                       "%y = llmc.matmul %a, %b" + flags + " : (" + lhs + ", " + rhs + ") -> " + y});
      cases.push_back({"matmul_bias_init" + suffix, "%a: " + lhs + ", %b: " + rhs + ", %c: " + bias + ", %i: " + y,
                       "%y = llmc.matmul %a, %b bias %c init %i" + flags + " : (" + lhs + ", " + rhs + ", " + bias +
                           ", " + y + ") -> " + y});
      std::string lhs4 = tensor(left ? "2x3x2x4" : "2x3x4x2"), rhs4 = tensor(right ? "2x3x5x2" : "2x3x2x5");
      cases.push_back({"matmul_batched" + suffix, "%a: " + lhs4 + ", %b: " + rhs4,
                       "%y = llmc.matmul %a, %b" + flags + " : (" + lhs4 + ", " + rhs4 + ") -> " + tensor("2x3x4x5")});
    }
  cases.push_back(
      {"pack", "%a: tensor<7x3xf64>", "%y = llmc.pack %a {transpose} : (tensor<7x3xf64>) -> tensor<3x7xf64>"});
  cases.push_back({"embedding", "%t: tensor<7x3xf64>, %i: tensor<2x5xi64>",
                   "%y = llmc.embedding %t, %i : (tensor<7x3xf64>, tensor<2x5xi64>) -> tensor<2x5x3xf64>", -1.5, 1.5, 0,
                   6});
  cases.push_back({"embedding_grad", "%i: tensor<2x5xi64>, %d: tensor<2x5x3xf64>, %t: tensor<7x3xf64>",
                   "%y = llmc.embedding_grad %i, %d init %t : (tensor<2x5xi64>, tensor<2x5x3xf64>, tensor<7x3xf64>) -> "
                   "tensor<7x3xf64>",
                   -1.5, 1.5, 0, 6});
}

static void addNorms(std::vector<OpCase> &cases) {
  std::string epsilon = " {epsilon = 1.000000e-02 : f64} : ";
  for (std::string x : {tensor("2x3x7"), tensor("7")}) {
    std::string suffix = x == tensor("7") ? "_rank_1" : "";
    cases.push_back(
        {"layer_norm" + suffix, "%x: " + x + ", %s: tensor<7xf64>, %b: tensor<7xf64>",
         "%y = llmc.layer_norm %x, %s, %b" + epsilon + "(" + x + ", tensor<7xf64>, tensor<7xf64>) -> " + x});
    cases.push_back({"layer_norm_no_bias" + suffix, "%x: " + x + ", %s: tensor<7xf64>",
                     "%y = llmc.layer_norm %x, %s" + epsilon + "(" + x + ", tensor<7xf64>) -> " + x});
    cases.push_back({"rms_norm" + suffix, "%x: " + x + ", %s: tensor<7xf64>",
                     "%y = llmc.rms_norm %x, %s" + epsilon + "(" + x + ", tensor<7xf64>) -> " + x});
    std::string arguments = "%d: " + x + ", %x: " + x + ", %s: tensor<7xf64>",
                types = "(" + x + ", " + x + ", tensor<7xf64>) -> (" + x;
    cases.push_back({"layer_norm_grad" + suffix, arguments,
                     "%y:3 = llmc.layer_norm_grad %d, %x, %s" + epsilon + types + ", tensor<7xf64>, tensor<7xf64>)"});
    cases.push_back({"rms_norm_grad" + suffix, arguments,
                     "%y:2 = llmc.rms_norm_grad %d, %x, %s" + epsilon + types + ", tensor<7xf64>)"});
  }
}

/// B = 2, T = 5 queries; S = 5 keys when packed, else 7; D = 3.
static void addAttentions(std::vector<OpCase> &cases) {
  struct Form {
    std::string name;
    bool packed;
    int heads, kvHeads;
    std::string flags, mask;
  };
  const Form forms[] = {{"", false, 2, 2, "window = 0 : i64", ""},
                        {"_causal", false, 2, 2, "causal, window = 0 : i64", ""},
                        {"_grouped", false, 4, 2, "causal, window = 0 : i64", ""},
                        {"_window", false, 2, 1, "causal, window = 2 : i64", ""},
                        {"_mask", false, 2, 2, "window = 0 : i64", "tensor<2x1x5x7xf64>"},
                        {"_mask_row", false, 2, 2, "causal, window = 0 : i64", "tensor<1x7xf64>"},
                        {"_packed", true, 2, 2, "causal, window = 0 : i64", ""},
                        {"_packed_grouped", true, 4, 2, "causal, window = 3 : i64", "tensor<4x5x5xf64>"}};
  for (const Form &form : forms) {
    std::string q = tensor("2x5x" + std::to_string(form.heads * 3)),
                k = tensor("2x7x" + std::to_string(form.kvHeads * 3));
    std::string packed = tensor("2x5x" + std::to_string((form.heads + 2 * form.kvHeads) * 3)),
                lse = tensor("2x" + std::to_string(form.heads) + "x5");
    std::string arguments = form.packed ? "%q: " + packed : "%q: " + q + ", %k: " + k + ", %v: " + k;
    std::string inputs = form.packed ? "(%q)" : "(%q, %k, %v)", types = form.packed ? packed : q + ", " + k + ", " + k;
    std::string attributes = " {heads = " + std::to_string(form.heads) +
                             " : i64, kvHeads = " + std::to_string(form.kvHeads) + " : i64, " + form.flags +
                             ", scale = 6.000000e-01 : f64} : ";
    std::string results = form.packed ? packed : "(" + types + ")", mask;
    if (!form.mask.empty()) {
      arguments += ", %m: " + form.mask;
      types += ", " + form.mask;
      mask = " mask %m";
    }
    std::set<unsigned> constants = form.mask.empty() ? std::set<unsigned>{} : std::set<unsigned>{form.packed ? 1u : 3u};
    cases.push_back(
        {"attention" + form.name,
         arguments,
         "%y, %lse = llmc.attention" + inputs + mask + attributes + "(" + types + ") -> (" + q + ", " + lse + ")",
         -1.5,
         1.5,
         0,
         1,
         constants,
         {1}});
    cases.push_back({"attention_grad" + form.name, arguments + ", %o: " + q + ", %lse: " + lse + ", %d: " + q,
                     (form.packed ? "%y" : "%y:3") + std::string(" = llmc.attention_grad") + inputs + mask +
                         " out %o lse %lse dOut %d" + attributes + "(" + types + ", " + q + ", " + lse + ", " + q +
                         ") -> " + results});
  }
}

static void addLosses(std::vector<OpCase> &cases) {
  std::string x = "%x: tensor<6x7xf64>, %l: tensor<6xi64>", types = "(tensor<6x7xf64>, tensor<6xi64>",
              results = ") -> (tensor<f64>, tensor<6x1xf64>)";
  cases.push_back({"softmax_cross_entropy",
                   x,
                   "%y, %lse = llmc.softmax_cross_entropy %x, %l {ignoreIndex = -100 : i64} : " + types + results,
                   -4,
                   4,
                   0,
                   6,
                   {},
                   {1}});
  cases.push_back({"softmax_cross_entropy_mean",
                   x,
                   "%y, %lse = llmc.softmax_cross_entropy %x, %l {mean, ignoreIndex = 2 : i64} : " + types + results,
                   -4,
                   4,
                   0,
                   6,
                   {},
                   {1}});
  cases.push_back({"softmax_cross_entropy_scale",
                   "%x: tensor<6x7xf64>, %l: tensor<6x1xi32>, %s: tensor<f64>",
                   "%y, %lse = llmc.softmax_cross_entropy %x, %l scale %s {mean, ignoreIndex = -1 : i64} : "
                   "(tensor<6x7xf64>, tensor<6x1xi32>, "
                   "tensor<f64>" +
                       results,
                   -4,
                   4,
                   -1,
                   6,
                   {2},
                   {1}});
  for (std::string mean : {"", "mean, "})
    cases.push_back({mean.empty() ? "softmax_cross_entropy_grad" : "softmax_cross_entropy_grad_mean",
                     "%d: tensor<f64>, " + x + ", %lse: tensor<6x1xf64>",
                     "%y = llmc.softmax_cross_entropy_grad %d, %x, %l, %lse {" + mean +
                         "ignoreIndex = -1 : i64} : (tensor<f64>, tensor<6x7xf64>, tensor<6xi64>, tensor<6x1xf64>) -> "
                         "tensor<6x7xf64>",
                     0.5, 4, -1, 6});
}

static void addOptimizers(std::vector<OpCase> &cases) {
  std::string t = "tensor<3x5xf64>", four = "%p: " + t + ", %g: " + t + ", %m: " + t + ", %v: " + t,
              types = "(" + t + ", " + t;
  for (bool clips : {false, true}) {
    std::string suffix = clips ? "_clip" : "", clip = clips ? " clip %c {decays} : " : " : ",
                last = clips ? ", tensor<f64>) -> " : ") -> ";
    std::string argument = clips ? ", %c: tensor<f64>" : "";
    cases.push_back({"adamw" + suffix, four + argument,
                     "%y:3 = llmc.adamw %p, %g, %m, %v" + clip + types + ", " + t + ", " + t + last + "(" + t + ", " +
                         t + ", " + t + ")",
                     0.1, 1.5});
    cases.push_back({"sgd" + suffix, "%p: " + t + ", %g: " + t + argument,
                     "%y = llmc.sgd %p, %g" + clip + types + last + t, 0.1, 1.5});
  }
  cases.push_back(
      {"global_norm", "%a: tensor<2x3x5xf64>, %b: tensor<7xf64>, %c: tensor<f64>",
       "%y = llmc.global_norm %a, %b, %c : (tensor<2x3x5xf64>, tensor<7xf64>, tensor<f64>) -> tensor<f64>"});
  cases.push_back({"fusion", "%x: tensor<2x3x8xf64>, %g: tensor<8xf64>",
                   "%y:3 = llmc.fusion(%x, %g) {space = array<i64: 6, 8>, rowBlock = 4 : i64, colBlock = 8 : i64} : "
                   "(tensor<2x3x8xf64>, "
                   "tensor<8xf64>) -> (tensor<2x3x8xf64>, tensor<6xf64>, tensor<2x8xf64>) {\n"
                   "^bb0(%a: tensor<6x8xf64>, %b: tensor<1x8xf64>):\n"
                   "  %0 = llmc.mul %a, %b : (tensor<6x8xf64>, tensor<1x8xf64>) -> tensor<6x8xf64>\n"
                   "  %1 = llmc.reduce_max %0 {axes = array<i64: 1>} : (tensor<6x8xf64>) -> tensor<6x1xf64>\n"
                   "  %2 = llmc.sub %0, %1 : (tensor<6x8xf64>, tensor<6x1xf64>) -> tensor<6x8xf64>\n"
                   "  %3 = llmc.reduce_sum %2 {axes = array<i64: 0>} : (tensor<6x8xf64>) -> tensor<1x8xf64>\n"
                   "  llmc.yield %2, %1, %3 : tensor<6x8xf64>, tensor<6x1xf64>, tensor<1x8xf64>\n}"});
}

static void addCollectives(std::vector<OpCase> &cases) {
  for (const char *op : {"all_reduce_start", "all_reduce_wait"})
    cases.push_back({op, "%a: tensor<3x5xf64>, %b: tensor<f64>",
                     std::string("%y:2 = llmc.") + op + " %a, %b at 1 : tensor<3x5xf64>, tensor<f64>"});
}

const std::vector<OpCase> &opCases() {
  static const std::vector<OpCase> all = [] {
    std::vector<OpCase> cases;
    addUnaries(cases);
    addBinaries(cases);
    addReductions(cases);
    addShapes(cases);
    addMatMuls(cases);
    addNorms(cases);
    addAttentions(cases);
    addLosses(cases);
    addOptimizers(cases);
    addCollectives(cases);
    return cases;
  }();
  return all;
}

} // namespace llmc::testing
