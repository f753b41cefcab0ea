// The host oracle against values worked out otherwise: attention against the ops it stands for, and the corners that
// its own gradient cannot show (ignored rows, queries without keys, ids out of range).
#include "tests/ir/OpProgram.h"

#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace llmc::testing {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Runs the program in `text` on inputs.
FailureOr<SmallVector<HostTensor>> runText(MLIRContext &context, StringRef text, ArrayRef<std::vector<double>> inputs) {
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return failure();
  ProgramOp program = *module->getOps<ProgramOp>().begin();
  SmallVector<HostTensor> tensors;
  for (auto [type, values] : llvm::zip_equal(program.getArgumentTypes(), inputs)) {
    tensors.push_back(HostTensor::zeros(cast<RankedTensorType>(type)));
    if (tensors.back().isFloat())
      tensors.back().floats = values;
    else
      tensors.back().integers.assign(values.begin(), values.end());
  }
  Interpreter interpreter;
  return interpreter.run(program, tensors);
}

std::vector<double> ramp(size_t size, double scale) {
  std::vector<double> values(size);
  for (size_t i = 0; i < size; ++i)
    values[i] = std::sin(scale * double(i + 1));
  return values;
}

TEST(Evaluate, AttentionIsSoftmaxOfScoresTimesValues) {
  auto context = makeContext();
  // One batch, four query heads on two key heads, 3 queries, 4 keys, D = 2; written out with a causal mask that is
  // aligned at the end.
  const char *fused =
      R"(llmc.program @p "graph" (%q: tensor<1x3x8xf64>, %k: tensor<1x4x4xf64>, %v: tensor<1x4x4xf64>) -> (tensor<1x3x8xf64>) {
    %o, %l = llmc.attention(%q, %k, %v) {heads = 4 : i64, kvHeads = 2 : i64, causal, window = 0 : i64, scale = 5.000000e-01 : f64}
      : (tensor<1x3x8xf64>, tensor<1x4x4xf64>, tensor<1x4x4xf64>) -> (tensor<1x3x8xf64>, tensor<1x4x3xf64>)
    llmc.return %o : tensor<1x3x8xf64>
  })";
  const char *spelledOut =
      R"(llmc.program @p "graph" (%q: tensor<1x3x8xf64>, %k: tensor<1x4x4xf64>, %v: tensor<1x4x4xf64>) -> (tensor<1x3x8xf64>) {
    %rows = llmc.iota {dim = 1 : i64} : tensor<1x3x1xi64>
    %cols = llmc.iota {dim = 2 : i64} : tensor<1x1x4xi64>
    %one = llmc.constant dense<1> : tensor<i64>
    %last = llmc.add %rows, %one : (tensor<1x3x1xi64>, tensor<i64>) -> tensor<1x3x1xi64>
    %sees = llmc.less_equal %cols, %last : (tensor<1x1x4xi64>, tensor<1x3x1xi64>) -> tensor<1x3x4xi1>
    %q4 = llmc.reshape %q : (tensor<1x3x8xf64>) -> tensor<3x4x2xf64>
    %qh = llmc.transpose %q4 {permutation = array<i64: 1, 0, 2>} : (tensor<3x4x2xf64>) -> tensor<4x3x2xf64>
    %k4 = llmc.reshape %k : (tensor<1x4x4xf64>) -> tensor<1x4x2x2xf64>
    %kt = llmc.transpose %k4 {permutation = array<i64: 2, 0, 1, 3>} : (tensor<1x4x2x2xf64>) -> tensor<2x1x4x2xf64>
    %kb = llmc.broadcast_to %kt : (tensor<2x1x4x2xf64>) -> tensor<2x2x4x2xf64>
    %kh = llmc.reshape %kb : (tensor<2x2x4x2xf64>) -> tensor<4x4x2xf64>
    %v4 = llmc.reshape %v : (tensor<1x4x4xf64>) -> tensor<1x4x2x2xf64>
    %vt = llmc.transpose %v4 {permutation = array<i64: 2, 0, 1, 3>} : (tensor<1x4x2x2xf64>) -> tensor<2x1x4x2xf64>
    %vb = llmc.broadcast_to %vt : (tensor<2x1x4x2xf64>) -> tensor<2x2x4x2xf64>
    %vh = llmc.reshape %vb : (tensor<2x2x4x2xf64>) -> tensor<4x4x2xf64>
    %s = llmc.matmul %qh, %kh {transposeRhs} : (tensor<4x3x2xf64>, tensor<4x4x2xf64>) -> tensor<4x3x4xf64>
    %half = llmc.constant dense<5.000000e-01> : tensor<f64>
    %never = llmc.constant dense<0xFFF0000000000000> : tensor<f64>
    %scaled = llmc.mul %s, %half : (tensor<4x3x4xf64>, tensor<f64>) -> tensor<4x3x4xf64>
    %masked = llmc.select %sees, %scaled, %never : (tensor<1x3x4xi1>, tensor<4x3x4xf64>, tensor<f64>) -> tensor<4x3x4xf64>
    %p = llmc.softmax %masked : tensor<4x3x4xf64>
    %oh = llmc.matmul %p, %vh : (tensor<4x3x4xf64>, tensor<4x4x2xf64>) -> tensor<4x3x2xf64>
    %ot = llmc.transpose %oh {permutation = array<i64: 1, 0, 2>} : (tensor<4x3x2xf64>) -> tensor<3x4x2xf64>
    %o = llmc.reshape %ot : (tensor<3x4x2xf64>) -> tensor<1x3x8xf64>
    llmc.return %o : tensor<1x3x8xf64>
  })";
  std::vector<double> inputs[] = {ramp(24, 0.7), ramp(16, 1.3), ramp(16, 2.1)};
  auto found = runText(*context, fused, inputs), expected = runText(*context, spelledOut, inputs);
  ASSERT_TRUE(succeeded(found) && succeeded(expected));
  expectClose((*found)[0], (*expected)[0], 1e-14, "out");
}

TEST(Evaluate, AQueryThatSeesNoKeyGivesZeroAndNoGradient) {
  auto context = makeContext();
  // Two queries on one key: with causal attention aligned at the end, the first sees none.
  const char *text = R"(llmc.program @p "graph" (%q: tensor<1x2x1xf64>, %k: tensor<1x1x1xf64>, %v: tensor<1x1x1xf64>)
      -> (tensor<1x2x1xf64>, tensor<1x1x2xf64>, tensor<1x2x1xf64>) {
    %o, %l = llmc.attention(%q, %k, %v) {heads = 1 : i64, kvHeads = 1 : i64, causal, window = 0 : i64, scale = 1.000000e+00 : f64}
      : (tensor<1x2x1xf64>, tensor<1x1x1xf64>, tensor<1x1x1xf64>) -> (tensor<1x2x1xf64>, tensor<1x1x2xf64>)
    %g:3 = llmc.attention_grad(%q, %k, %v) out %o lse %l dOut %q
      {heads = 1 : i64, kvHeads = 1 : i64, causal, window = 0 : i64, scale = 1.000000e+00 : f64}
      : (tensor<1x2x1xf64>, tensor<1x1x1xf64>, tensor<1x1x1xf64>, tensor<1x2x1xf64>, tensor<1x1x2xf64>, tensor<1x2x1xf64>)
      -> (tensor<1x2x1xf64>, tensor<1x1x1xf64>, tensor<1x1x1xf64>)
    llmc.return %o, %l, %g#0 : tensor<1x2x1xf64>, tensor<1x1x2xf64>, tensor<1x2x1xf64>
  })";
  auto results = runText(*context, text, {{1, 2}, {3}, {4}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ((*results)[0].floats, (std::vector<double>{0, 4}));
  EXPECT_EQ((*results)[1].floats, (std::vector<double>{-kInfinity, 6}));
  EXPECT_EQ((*results)[2].floats, (std::vector<double>{0, 0}));
}

const char *kLossText = R"(llmc.program @p "graph" (%x: tensor<2x2xf64>, %l: tensor<2xi64>) -> (tensor<f64>) {
    %y, %lse = llmc.softmax_cross_entropy %x, %l {mean, ignoreIndex = -1 : i64}
      : (tensor<2x2xf64>, tensor<2xi64>) -> (tensor<f64>, tensor<2x1xf64>)
    llmc.return %y : tensor<f64>
  })";

TEST(Evaluate, AnIgnoredRowContributesNothingEvenWhenItIsNotANumber) {
  auto context = makeContext();
  auto results = runText(*context, kLossText, {{0, 0, NAN, kInfinity}, {1, -1}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_DOUBLE_EQ((*results)[0].floats[0], std::log(2.0));
}

TEST(Evaluate, TheDecomposedLossIgnoresSuchARowToo) {
  OpCase opCase = {"", "%x: tensor<2x2xf64>, %l: tensor<2xi64>",
                   "%y, %lse = llmc.softmax_cross_entropy %x, %l {mean, ignoreIndex = -1 : i64} : (tensor<2x2xf64>, "
                   "tensor<2xi64>) -> "
                   "(tensor<f64>, tensor<2x1xf64>)"};
  OpProgram program(opCase);
  ASSERT_TRUE(program.op);
  OpBuilder builder = program.builderAfterOp();
  SmallVector<Value> values = cast<DecomposableOpInterface>(program.op).decompose(builder);
  SmallVector<HostTensor> inputs = program.inputs();
  inputs[0].floats = {0, 0, NAN, kInfinity};
  inputs[1].integers = {1, -1};
  Interpreter interpreter;
  program.run(interpreter, inputs);
  EXPECT_DOUBLE_EQ(interpreter.at(values[0]).floats[0], std::log(2.0));
}

TEST(Evaluate, TheMeanOverNoLabelIsNotANumber) {
  auto context = makeContext();
  auto results = runText(*context, kLossText, {{1, 2, 3, 4}, {-1, -1}});
  ASSERT_TRUE(succeeded(results));
  EXPECT_TRUE(std::isnan((*results)[0].floats[0]));
}

TEST(Evaluate, IdsAndLabelsOutOfRangeAreRefused) {
  auto context = makeContext();
  std::string message;
  ScopedDiagnosticHandler handler(context.get(), [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  EXPECT_TRUE(failed(runText(*context, kLossText, {{1, 2, 3, 4}, {0, 2}})));
  EXPECT_EQ(message, "'llmc.softmax_cross_entropy' op is not defined for these values");
  const char *text = R"(llmc.program @p "graph" (%t: tensor<3x2xf64>, %i: tensor<1xi64>) -> (tensor<1x2xf64>) {
    %y = llmc.embedding %t, %i : (tensor<3x2xf64>, tensor<1xi64>) -> tensor<1x2xf64>
    llmc.return %y : tensor<1x2xf64>
  })";
  EXPECT_TRUE(failed(runText(*context, text, {ramp(6, 1), {3}})));
  EXPECT_EQ(message, "'llmc.embedding' op is not defined for these values");
}

TEST(Evaluate, AProgramReadsAndWritesVariables) {
  auto context = makeContext();
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(R"(
    llmc.variable @w "parameter" tensor<2xf64> = dense<1.0> : tensor<2xf64>
    llmc.program @p "graph" () -> (tensor<2xf64>) {
      %w = llmc.get @w : tensor<2xf64>
      %lr = llmc.scalar "lr" : tensor<f32>
      %c = llmc.cast %lr : (tensor<f32>) -> tensor<f64>
      %n = llmc.add %w, %c : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
      llmc.set @w, %n : tensor<2xf64>
      llmc.return %w : tensor<2xf64>
    })",
                                                             context.get());
  ASSERT_TRUE(module);
  Interpreter interpreter;
  for (VariableOp variable : module->getOps<VariableOp>())
    interpreter.variables[variable.getSymName()] = *HostTensor::fromAttribute(*variable.getValue());
  interpreter.scalars["lr"] = 0.5;
  auto results = interpreter.run(*module->getOps<ProgramOp>().begin(), {});
  ASSERT_TRUE(succeeded(results));
  EXPECT_EQ((*results)[0].floats, (std::vector<double>{1, 1}));
  EXPECT_EQ(interpreter.variables["w"].floats, (std::vector<double>{1.5, 1.5}));
}

TEST(Evaluate, AFusionGivesPartialSumsByRowBlock) {
  for (const OpCase &opCase : opCases()) {
    if (opCase.name != "fusion")
      continue;
    OpProgram program(opCase);
    ASSERT_TRUE(program.op);
    SmallVector<HostTensor> inputs = program.inputs();
    Interpreter interpreter;
    program.run(interpreter, inputs);
    const HostTensor &full = interpreter.at(program.op->getResult(0)),
                     &partials = interpreter.at(program.op->getResult(2));
    for (int64_t block : {0, 1})
      for (int64_t c = 0; c < 8; ++c) {
        double sum = 0;
        for (int64_t row = block * 4; row < std::min<int64_t>(6, block * 4 + 4); ++row)
          sum += full.floats[row * 8 + c];
        EXPECT_NEAR(partials.floats[block * 8 + c], sum, 1e-14);
      }
    return;
  }
  FAIL() << "no fusion case";
}

} // namespace
} // namespace llmc::testing
