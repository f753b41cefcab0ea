// Parsing and running of cases.
#include "tests/ir/OpProgram.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <random>

using namespace mlir;

namespace llmc::testing {

std::unique_ptr<MLIRContext> makeContext() {
  auto context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
  context->loadDialect<LlmcDialect>();
  return context;
}

/// `text` with the element type f64 of tensors (never of attributes) replaced.
static std::string withElement(std::string text, const std::string &element) {
  for (std::string before : {"xf64>", "<f64>"})
    for (size_t at = text.find(before); at != std::string::npos; at = text.find(before, at + 1))
      text.replace(at + 1, 3, element);
  return text;
}

OpProgram::OpProgram(const OpCase &opCase, const std::string &element) : opCase(opCase), context(makeContext()) {
  std::string text =
      "llmc.program @case \"graph\" (" + opCase.arguments + ") {\n" + opCase.statement + "\nllmc.return\n}\n";
  module = parseSourceString<ModuleOp>(withElement(text, element), context.get());
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return;
  }
  program = *module->getOps<ProgramOp>().begin();
  op = &body().front();
}

HostTensor OpProgram::draw(RankedTensorType type, uint32_t seed) const {
  std::mt19937 random(seed * 7919 + 17);
  HostTensor tensor = HostTensor::zeros(type);
  for (double &value : tensor.floats)
    value = std::uniform_real_distribution<double>(opCase.low, opCase.high)(random);
  for (int64_t &value : tensor.integers)
    value = std::uniform_int_distribution<int64_t>(opCase.integerLow, opCase.integerHigh)(random);
  return tensor;
}

SmallVector<HostTensor> OpProgram::inputs() const {
  SmallVector<HostTensor> tensors;
  for (auto [i, type] : llvm::enumerate(ProgramOp(program).getArgumentTypes()))
    tensors.push_back(draw(cast<RankedTensorType>(type), uint32_t(i)));
  return tensors;
}

OpBuilder OpProgram::builderAfterOp() { return OpBuilder(body().getTerminator()); }

bool OpProgram::isValid() {
  if (succeeded(verify(*module)))
    return true;
  module->dump();
  return false;
}

void OpProgram::run(Interpreter &interpreter, ArrayRef<HostTensor> inputs) {
  for (auto [argument, tensor] : llvm::zip_equal(body().getArguments(), inputs))
    interpreter.bind(argument, tensor);
  if (failed(interpreter.run(body())))
    ADD_FAILURE() << "cannot be run";
}

void expectClose(const HostTensor &found, const HostTensor &expected, double tolerance, const std::string &what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double largest = 1;
  for (int64_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::fabs(expected.asDouble(i)));
  for (int64_t i = 0; i < expected.size(); ++i)
    ASSERT_LE(std::fabs(found.asDouble(i) - expected.asDouble(i)), tolerance * largest)
        << what << ", element " << i << ": found " << found.asDouble(i) << ", expected " << expected.asDouble(i);
}

} // namespace llmc::testing
