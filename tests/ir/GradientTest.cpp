// Every gradient against finite differences in f64. The loss is a sum of the op's results with random weights; the
// weights are the results' gradients.
#include "tests/ir/OpProgram.h"

using namespace mlir;

namespace llmc::testing {
namespace {

struct Gradient : ::testing::TestWithParam<OpCase> {};

/// The weights of the loss: one tensor per result, empty for a result that it does not depend on.
SmallVector<HostTensor> drawWeights(OpProgram &program, const OpCase &opCase) {
  SmallVector<HostTensor> weights(program.op->getNumResults());
  for (OpResult result : program.op->getResults()) {
    auto type = cast<RankedTensorType>(result.getType());
    if (isa<FloatType>(type.getElementType()) && !opCase.hiddenResults.count(result.getResultNumber()))
      weights[result.getResultNumber()] = program.draw(type, 1000 + result.getResultNumber());
  }
  return weights;
}

double evaluateLoss(Operation *op, ArrayRef<HostTensor> inputs, ArrayRef<HostTensor> weights) {
  SmallVector<HostTensor> results;
  if (failed(cast<EvaluableOpInterface>(op).evaluate(inputs, results))) {
    ADD_FAILURE() << "cannot be evaluated";
    return 0;
  }
  double loss = 0;
  for (auto [result, weight] : llvm::zip_equal(results, weights))
    for (size_t i = 0; i < weight.floats.size(); ++i)
      loss += weight.floats[i] * result.floats[i];
  return loss;
}

HostTensor finiteDifferences(Operation *op, SmallVector<HostTensor> inputs, unsigned operand,
                             ArrayRef<HostTensor> weights) {
  constexpr double step = 1e-5;
  HostTensor gradient = inputs[operand];
  for (int64_t i = 0; i < gradient.size(); ++i) {
    double &x = inputs[operand].floats[i], middle = x;
    x = middle + step;
    double above = evaluateLoss(op, inputs, weights);
    x = middle - step;
    gradient.floats[i] = (above - evaluateLoss(op, inputs, weights)) / (2 * step);
    x = middle;
  }
  return gradient;
}

/// Builds the gradient into the program, from the weights as constants.
SmallVector<Value> buildGradient(OpProgram &program, ArrayRef<HostTensor> weights) {
  OpBuilder builder = program.builderAfterOp();
  SmallVector<Value> resultGradients;
  for (const HostTensor &weight : weights)
    resultGradients.push_back(
        weight.type ? builder.create<ConstantOp>(program.op->getLoc(), weight.toAttribute()).getResult() : Value());
  return cast<DifferentiableOpInterface>(program.op).buildGradient(builder, resultGradients);
}

TEST_P(Gradient, MatchesFiniteDifferences) {
  OpProgram program(GetParam());
  ASSERT_TRUE(program.op);
  SmallVector<HostTensor> weights = drawWeights(program, GetParam()), inputs = program.inputs();
  SmallVector<Value> gradients = buildGradient(program, weights);
  ASSERT_EQ(gradients.size(), program.op->getNumOperands()) << "one gradient per operand";
  ASSERT_TRUE(program.isValid());
  Interpreter interpreter;
  program.run(interpreter, inputs);
  for (auto [i, gradient] : llvm::enumerate(gradients)) {
    std::string what = "gradient of operand " + std::to_string(i);
    bool flows = inputs[i].isFloat() && !GetParam().constantOperands.count(i);
    ASSERT_EQ(bool(gradient), flows) << what;
    if (!flows)
      continue;
    EXPECT_EQ(gradient.getType(), program.op->getOperand(i).getType()) << what;
    expectClose(interpreter.at(gradient), finiteDifferences(program.op, inputs, i, weights), 1e-6, what);
  }
}

TEST_P(Gradient, IsValidInNarrowTypes) {
  for (const char *element : {"f32", "bf16"}) {
    OpProgram program(GetParam(), element);
    ASSERT_TRUE(program.op) << element;
    buildGradient(program, drawWeights(program, GetParam()));
    EXPECT_TRUE(program.isValid()) << element;
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, ::testing::ValuesIn(casesWith<DifferentiableOpInterface>()), caseName);

TEST(GradientCoverage, EveryDifferentiableOpHasACase) {
  EXPECT_EQ(opsWithoutCase<DifferentiableOpInterface>(), std::vector<std::string>());
}

} // namespace
} // namespace llmc::testing
