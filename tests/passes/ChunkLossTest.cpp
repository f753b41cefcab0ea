// A loss in chunks and its gradients are those of the whole, on the host in f64: tied and untied, with a bias, chunks
// that do not divide the rows, ignored labels.
#include "ir/Interpreter.h"
#include "passes/Passes.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace mlir;

namespace llmc {
namespace {

/// Logits of x (100, 5) and w as (7, 5) or (5, 7), with a bias; its gradients to all three, w's summed into a start.
constexpr const char *kProgram = R"(
llmc.program @step "step" (%x: tensor<100x5xf64>, %w: tensor<WxREST>, %b: tensor<7xf64>, %start: tensor<WxREST>, %scale: tensor<f64>, %labels: tensor<100xi64>)
    -> (tensor<f64>, tensor<100x5xf64>, tensor<WxREST>, tensor<1x7xf64>) {
  %logits = llmc.matmul %x, %w bias %b FORWARD : (tensor<100x5xf64>, tensor<WxREST>, tensor<7xf64>) -> tensor<100x7xf64>
  %loss, %lse = llmc.softmax_cross_entropy %logits, %labels scale %scale {ignoreIndex = 3 : i64} : (tensor<100x7xf64>, tensor<100xi64>, tensor<f64>) -> (tensor<f64>, tensor<100x1xf64>)
  %d = llmc.softmax_cross_entropy_grad %scale, %logits, %labels, %lse {ignoreIndex = 3 : i64} : (tensor<f64>, tensor<100x7xf64>, tensor<100xi64>, tensor<100x1xf64>) -> tensor<100x7xf64>
  %dx = llmc.matmul %d, %w BACKWARD : (tensor<100x7xf64>, tensor<WxREST>) -> tensor<100x5xf64>
  %dw = llmc.matmul %FIRST, %SECOND init %start {transposeLhs} : (tensor<100xFIRSTxf64>, tensor<100xSECONDxf64>, tensor<WxREST>) -> tensor<WxREST>
  %db = llmc.reduce_sum %d {axes = array<i64: 0>} : (tensor<100x7xf64>) -> tensor<1x7xf64>
  llmc.return %loss, %dx, %dw, %db : tensor<f64>, tensor<100x5xf64>, tensor<WxREST>, tensor<1x7xf64>
}
)";

std::string replaced(std::string text, const std::string &word, const std::string &by) {
  for (size_t at; (at = text.find(word)) != std::string::npos;)
    text.replace(at, word.size(), by);
  return text;
}

std::string programText(bool isRowMajor) {
  std::string text = replaced(kProgram, "xFIRSTx", isRowMajor ? "x7x" : "x5x");
  text = replaced(text, "xSECONDx", isRowMajor ? "x5x" : "x7x");
  text = replaced(text, "%FIRST", isRowMajor ? "%d" : "%x");
  text = replaced(text, "%SECOND", isRowMajor ? "%x" : "%d");
  text = replaced(text, "WxREST", isRowMajor ? "7x5xf64" : "5x7xf64");
  text = replaced(text, "FORWARD", isRowMajor ? "{transposeRhs}" : "");
  return replaced(text, "BACKWARD", isRowMajor ? "" : "{transposeRhs}");
}

std::vector<HostTensor> run(ModuleOp module) {
  ProgramOp program = *module.getOps<ProgramOp>().begin();
  SmallVector<HostTensor> inputs;
  for (Type type : program.getArgumentTypes()) {
    HostTensor &input = inputs.emplace_back(HostTensor::zeros(cast<RankedTensorType>(type)));
    for (size_t i = 0; i < input.floats.size(); ++i)
      input.floats[i] = std::sin(double(i * 37 + inputs.size() * 11));
    for (size_t i = 0; i < input.integers.size(); ++i)
      input.integers[i] = int64_t(i * 5 % 7);
  }
  Interpreter interpreter;
  FailureOr<SmallVector<HostTensor>> results = interpreter.run(program, inputs);
  return failed(results) ? std::vector<HostTensor>() : std::vector<HostTensor>(results->begin(), results->end());
}

TEST(ChunkLoss, KeepsLossAndGradients) {
  MLIRContext context;
  context.loadDialect<LlmcDialect>();
  for (bool isRowMajor : {true, false}) {
    auto module = parseSourceString<ModuleOp>(programText(isRowMajor), &context);
    ASSERT_TRUE(module);
    std::vector<HostTensor> whole = run(*module);
    PassManager manager(&context);
    ChunkLossOptions options;
    options.chunkBytes = 32 * 7 * 8; // 32 rows: three chunks and one of four rows
    manager.addPass(createChunkLoss(options));
    ASSERT_TRUE(succeeded(manager.run(*module)));
    size_t numChunks = 0;
    module->walk([&](SoftmaxCrossEntropyGradOp) { ++numChunks; });
    EXPECT_EQ(numChunks, 4u);
    std::vector<HostTensor> chunked = run(*module);
    ASSERT_EQ(whole.size(), 4u);
    ASSERT_EQ(chunked.size(), 4u);
    for (size_t i = 0; i < whole.size(); ++i)
      for (size_t j = 0; j < whole[i].floats.size(); ++j)
        ASSERT_NEAR(chunked[i].floats[j], whole[i].floats[j], 1e-12) << "result " << i << " element " << j;
  }
}

} // namespace
} // namespace llmc
