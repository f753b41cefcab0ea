// Every decomposition against the op's own evaluation, or, for the optimizers, against the formula written here a
// second time.
#include "tests/ir/OpProgram.h"

using namespace mlir;

namespace llmc::testing {
namespace {

constexpr double kLr = 0.01, kBeta1 = 0.9, kBeta2 = 0.95, kEps = 1e-3, kDecay = 0.1, kCorrection1 = 0.19,
                 kCorrection2 = 0.0975;

using Reference = void (*)(ArrayRef<HostTensor> inputs, bool decays, SmallVectorImpl<HostTensor> &results);

/// One step of torch.optim.AdamW on p, g, m, v and perhaps a clip factor.
void adamw(ArrayRef<HostTensor> x, bool decays, SmallVectorImpl<HostTensor> &results) {
  results.append({x[0], x[2], x[3]});
  for (int64_t i = 0; i < x[0].size(); ++i) {
    double &p = results[0].floats[i], &m = results[1].floats[i], &v = results[2].floats[i];
    double g = x[1].floats[i] * (x.size() > 4 ? x[4].floats[0] : 1);
    p *= 1 - kLr * (decays ? kDecay : 0);
    m = kBeta1 * m + (1 - kBeta1) * g;
    v = kBeta2 * v + (1 - kBeta2) * g * g;
    p -= kLr / kCorrection1 * m / (std::sqrt(v) / std::sqrt(kCorrection2) + kEps);
  }
}

void sgd(ArrayRef<HostTensor> x, bool decays, SmallVectorImpl<HostTensor> &results) {
  results.push_back(x[0]);
  for (int64_t i = 0; i < x[0].size(); ++i)
    results[0].floats[i] -=
        kLr * (x[1].floats[i] * (x.size() > 2 ? x[2].floats[0] : 1) + (decays ? kDecay : 0) * x[0].floats[i]);
}

void globalNorm(ArrayRef<HostTensor> x, bool, SmallVectorImpl<HostTensor> &results) {
  double sum = 0;
  for (const HostTensor &gradient : x)
    for (double value : gradient.floats)
      sum += value * value;
  results.push_back(HostTensor::zeros(RankedTensorType::get({}, x[0].type.getElementType())));
  results[0].floats[0] = std::sqrt(sum);
}

/// The results that the op should have.
SmallVector<HostTensor> expectedResults(Operation *op, ArrayRef<HostTensor> inputs) {
  SmallVector<HostTensor> results;
  if (auto evaluable = dyn_cast<EvaluableOpInterface>(op)) {
    EXPECT_TRUE(succeeded(evaluable.evaluate(inputs, results)));
    return results;
  }
  const std::map<std::string, Reference> references = {
      {"llmc.adamw", adamw}, {"llmc.sgd", sgd}, {"llmc.global_norm", globalNorm}};
  auto found = references.find(op->getName().getStringRef().str());
  if (found == references.end())
    ADD_FAILURE() << op->getName().getStringRef().str() << " can neither be evaluated nor has a reference here";
  else
    found->second(inputs, op->hasAttr("decays"), results);
  return results;
}

struct Decompose : ::testing::TestWithParam<OpCase> {};

/// Decomposes the op in place: users of its results would read the returned values.
SmallVector<Value> decompose(OpProgram &program) {
  OpBuilder builder = program.builderAfterOp();
  return cast<DecomposableOpInterface>(program.op).decompose(builder);
}

TEST_P(Decompose, ComputesTheSame) {
  OpProgram program(GetParam());
  ASSERT_TRUE(program.op);
  SmallVector<HostTensor> inputs = program.inputs(), expected = expectedResults(program.op, inputs);
  SmallVector<Value> values = decompose(program);
  ASSERT_EQ(values.size(), program.op->getNumResults());
  ASSERT_EQ(TypeRange(ValueRange(values)), program.op->getResultTypes());
  ASSERT_TRUE(program.isValid());
  program.op->erase();
  Interpreter interpreter;
  interpreter.scalars = {{"lr", kLr},
                         {"one_minus_beta1", 1 - kBeta1},
                         {"beta2", kBeta2},
                         {"one_minus_beta2", 1 - kBeta2},
                         {"eps", kEps},
                         {"weight_decay", kDecay},
                         {"bias_correction1", kCorrection1},
                         {"bias_correction2", kCorrection2}};
  program.run(interpreter, inputs);
  for (auto [i, value] : llvm::enumerate(values))
    expectClose(interpreter.at(value), expected[i], 1e-12, "result " + std::to_string(i));
}

TEST_P(Decompose, IsValidInNarrowTypes) {
  for (const char *element : {"f32", "bf16"}) {
    OpProgram program(GetParam(), element);
    ASSERT_TRUE(program.op) << element;
    SmallVector<Value> values = decompose(program);
    EXPECT_EQ(TypeRange(ValueRange(values)), program.op->getResultTypes()) << element;
    EXPECT_TRUE(program.isValid()) << element;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Decompose, ::testing::ValuesIn(casesWith<DecomposableOpInterface>()), caseName);

TEST(DecomposeCoverage, EveryDecomposableOpHasACase) {
  EXPECT_EQ(opsWithoutCase<DecomposableOpInterface>(), std::vector<std::string>());
}

} // namespace
} // namespace llmc::testing
