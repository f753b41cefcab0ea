// Running and writing the programs of raising tests.
#include "tests/passes/RaiseCase.h"

#include "ir/Interpreter.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <random>

using namespace mlir;

namespace llmc::testing {

static std::string textOf(const RaiseCase &c) {
  return c.variables + "llmc.program @graph \"graph\" (" + c.arguments + ") -> " + c.result + " {\n" + c.body +
         "\nllmc.return %y : " + c.result + "\n}\n";
}

static HostTensor draw(RankedTensorType type, uint32_t seed) {
  std::mt19937 random(seed * 7919 + 17);
  HostTensor tensor = HostTensor::zeros(type);
  for (double &value : tensor.floats)
    value = std::uniform_real_distribution<double>(-1.5, 1.5)(random);
  for (int64_t &value : tensor.integers)
    value = std::uniform_int_distribution<int64_t>(0, 1)(random);
  return tensor;
}

static std::vector<double> run(ModuleOp module) {
  ProgramOp program = *module.getOps<ProgramOp>().begin();
  Interpreter interpreter;
  for (auto variable : module.getOps<VariableOp>())
    if (FailureOr<HostTensor> value = HostTensor::fromAttribute(variable.getValueAttr()); succeeded(value))
      interpreter.variables[variable.getSymName()] = *value;
  for (const char *word : {"seed_lo", "seed_hi", "step"})
    interpreter.scalars[word] = 1;
  SmallVector<HostTensor> inputs;
  for (auto [i, type] : llvm::enumerate(program.getArgumentTypes()))
    inputs.push_back(draw(cast<RankedTensorType>(type), uint32_t(i)));
  FailureOr<SmallVector<HostTensor>> results = interpreter.run(program, inputs);
  return failed(results) ? std::vector<double>() : (*results)[0].floats;
}

static void raise(ModuleOp module) {
  PassManager manager(module.getContext());
  auto cleanUp = [&] {
    manager.addPass(createCanonicalizerPass());
    manager.addPass(createCSEPass());
  };
  cleanUp();
  manager.addPass(createRaiseNorm());
  manager.addPass(createRaiseActivation());
  manager.addPass(createRaiseAttention());
  manager.addPass(createRaiseCrossEntropy());
  cleanUp();
  manager.addPass(createFlattenRows());
  cleanUp();
  manager.addPass(createFuseEpilogue());
  ASSERT_TRUE(succeeded(manager.run(module)));
  ASSERT_TRUE(succeeded(verify(module)));
}

static std::string printed(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  return text;
}

void expectRaised(const RaiseCase &raiseCase) {
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.loadDialect<LlmcDialect>();
  context.getDiagEngine().registerHandler(
      [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark); });
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(textOf(raiseCase), &context);
  ASSERT_TRUE(module) << textOf(raiseCase);
  std::vector<double> before = run(*module);
  raise(*module);
  std::string text = printed(*module);
  EXPECT_NE(text.find(raiseCase.expected), std::string::npos) << "no " << raiseCase.expected << " in\n" << text;
  bool hasForbidden = !raiseCase.forbidden.empty() && text.find(raiseCase.forbidden) != std::string::npos;
  EXPECT_FALSE(hasForbidden) << raiseCase.forbidden << " in\n" << text;
  std::vector<double> after = run(*module);
  ASSERT_FALSE(before.empty());
  ASSERT_EQ(before.size(), after.size());
  for (size_t i = 0; i < before.size(); ++i)
    ASSERT_NEAR(before[i], after[i], 1e-6) << "element " << i << "\n" << text;
}

std::string type(const std::string &shape, const std::string &element) { return "tensor<" + shape + element + ">"; }

std::string op(const std::string &name, const std::string &opName, const std::string &operands,
               const std::string &types, const std::string &result, const std::string &attributes) {
  return "%" + name + " = llmc." + opName + " " + operands + " " + attributes + " : (" + types + ") -> " + result +
         "\n";
}
std::string constant(const std::string &name, const std::string &number, const std::string &shape) {
  return "%" + name + " = llmc.constant dense<" + number + "> : " + type(shape) + "\n";
}
std::string reshape(const std::string &name, const std::string &a, const std::string &from, const std::string &to) {
  return op(name, "reshape", "%" + a, type(from), type(to));
}
std::string transpose(const std::string &name, const std::string &a, const std::string &from, const std::string &to,
                      const std::string &order) {
  return op(name, "transpose", "%" + a, type(from), type(to), "{permutation = array<i64: " + order + ">}");
}
std::string binary(const std::string &name, const std::string &opName, const std::string &a, const std::string &b,
                   const std::string &aShape, const std::string &bShape, const std::string &result) {
  return op(name, opName, "%" + a + ", %" + b, type(aShape) + ", " + type(bShape), type(result));
}

std::string select(const std::string &name, const std::string &condition, const std::string &a, const std::string &b,
                   const std::string &types, const std::string &result) {
  return op(name, "select", "%" + condition + ", %" + a + ", %" + b, types, result);
}

} // namespace llmc::testing
