// Faults are planted in an optimized step before its code is generated; the check must name the node of each. Without a
// fault nothing departs, in f32 and in bf16.
#include "tools/llmc-compile/CheckNumerics.h"
#include "passes/Passes.h"
#include "runtime/Safetensors.h"
#include "tools/llmc-compile/StepValues.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"

#include <filesystem>
#include <gtest/gtest.h>
#include <random>

using namespace mlir;

namespace llmc {
namespace {

/// A file of this test alone: ctest runs several at once.
std::string temporaryFile(const std::string &ending) {
  return testing::TempDir() + "numerics-" + testing::UnitTest::GetInstance()->current_test_info()->name() + "." +
         ending;
}

/// V = 7, C = 8, two heads, B = 2, T = 3. Nodes are named; weights are filled in by fillWeights.
constexpr const char *kModel = R"(module {
  llmc.variable @wte "parameter" tensor<7x8xf32> = dense<0.0> : tensor<7x8xf32> {decays}
  llmc.variable @qkv "parameter" tensor<8x24xf32> = dense<0.0> : tensor<8x24xf32> {decays}
  llmc.variable @square "parameter" tensor<8x8xf32> = dense<0.0> : tensor<8x8xf32> {decays}
  llmc.variable @w "parameter" tensor<8x8xf32> = dense<0.0> : tensor<8x8xf32> {decays}
  llmc.variable @b "parameter" tensor<8xf32> = dense<0.0> : tensor<8xf32>
  llmc.program @graph "graph" (%ids: tensor<2x3xi64> {llmc.name = "idx", llmc.role = "tokens"},
                               %labels: tensor<2x3xi64> {llmc.name = "targets", llmc.role = "labels"})
      -> (tensor<f32> {llmc.name = "loss", llmc.role = "loss"}) {
    %wte = llmc.get @wte : tensor<7x8xf32>
    %wqkv = llmc.get @qkv : tensor<8x24xf32>
    %square = llmc.get @square : tensor<8x8xf32>
    %w = llmc.get @w : tensor<8x8xf32>
    %b = llmc.get @b : tensor<8xf32>
    %x = llmc.embedding %wte, %ids : (tensor<7x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32> loc("embedding")
    %rows = llmc.reshape %x : (tensor<2x3x8xf32>) -> tensor<6x8xf32> loc("rows")
    %q = llmc.matmul %rows, %wqkv : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32> loc("qkv")
    %packed = llmc.reshape %q : (tensor<6x24xf32>) -> tensor<2x3x24xf32> loc("packed")
    %att, %lse = llmc.attention(%packed) {heads = 2 : i64, kvHeads = 2 : i64, causal, window = 0 : i64, scale = 5.0e-01 : f64}
      : (tensor<2x3x24xf32>) -> (tensor<2x3x8xf32>, tensor<2x2x3xf32>) loc("attention")
    %flat = llmc.reshape %att : (tensor<2x3x8xf32>) -> tensor<6x8xf32> loc("flat")
    %o = llmc.matmul %flat, %square : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32> loc("projection")
    %r = llmc.add %o, %rows : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32> loc("residual")
    %h = llmc.matmul %r, %w : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32> loc("linear")
    %hb = llmc.add %h, %b : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32> loc("bias")
    %g = llmc.gelu %hb : tensor<6x8xf32> loc("gelu")
    %l = llmc.matmul %g, %wte {transposeRhs} : (tensor<6x8xf32>, tensor<7x8xf32>) -> tensor<6x7xf32> loc("head")
    %lab = llmc.reshape %labels : (tensor<2x3xi64>) -> tensor<6xi64> loc("labels")
    %loss, %logsum = llmc.softmax_cross_entropy %l, %lab {mean, ignoreIndex = -1 : i64}
      : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>) loc("loss")
    llmc.return %loss : tensor<f32>
  }
})";

class CheckNumericsTest : public ::testing::Test {
protected:
  void SetUp() override {
    context.loadDialect<LlmcDialect>();
    context.getDiagEngine().registerHandler(
        [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark); });
    imported = parseSourceString<ModuleOp>(kModel, &context);
    ASSERT_TRUE(imported);
    fillWeights();
    writeBatch(std::vector<int64_t>{1, 4, 6, 0, 2, 5});
  }

  void fillWeights() {
    std::mt19937 random(7);
    std::normal_distribution<float> normal(0, 0.5f);
    for (auto variable : imported->getOps<VariableOp>()) {
      auto type = cast<RankedTensorType>(variable.getType());
      std::vector<float> values(type.getNumElements());
      for (float &value : values)
        value = normal(random);
      variable.setValueAttr(cast<ElementsAttr>(DenseElementsAttr::get(type, ArrayRef<float>(values))));
    }
  }

  void writeBatch(std::vector<int64_t> tokens) {
    std::vector<SafetensorsInfo> tensors = {{"idx", ElementType::i64, {2, 3}}, {"targets", ElementType::i64, {2, 3}}};
    auto writer = SafetensorsWriter::create(batch, tensors);
    ASSERT_TRUE(writer.ok());
    for (int tensor = 0; tensor < 2; ++tensor)
      ASSERT_TRUE(writer->append(std::as_bytes(std::span(tokens))).ok());
    ASSERT_TRUE(writer->commit().ok());
  }

  void optimize(bool isBf16) {
    optimized = cast<ModuleOp>((*imported)->clone());
    PassManager manager(&context);
    PipelineOptions options;
    options.isBf16 = isBf16;
    buildPipeline(manager, options);
    ASSERT_TRUE(succeeded(manager.run(*optimized)));
  }

  Result<NumericsReport> check(bool isBf16) {
    FailureOr<EmittedPlan> emitted = emitPlan(*optimized, cpuIsas());
    if (failed(emitted))
      return Error{"not emitted"};
    return checkNumerics({.optimized = *optimized,
                          .emitted = *emitted,
                          .imported = *imported,
                          .isBf16 = isBf16,
                          .optimizer = "adamw",
                          .batch = batch,
                          .temporary = temporaryFile("plan")});
  }

  /// The first op of the optimized step that does it is the faulty one: fusions' bodies are looked through too.
  template <typename Op> void plant(llvm::function_ref<bool(Op)> change) {
    bool isPlanted = false;
    stepProgram(*optimized).walk([&](Op op) {
      isPlanted = change(op);
      return isPlanted ? WalkResult::interrupt() : WalkResult::advance();
    });
    ASSERT_TRUE(isPlanted);
  }

  void expectBlamed(const std::string &node, const std::string &kernel) {
    Result<NumericsReport> report = check(false);
    ASSERT_TRUE(report.ok()) << report.error().message;
    ASSERT_TRUE(report->departure) << report->text();
    EXPECT_EQ(report->departure->nodes, node) << report->text();
    EXPECT_TRUE(StringRef(report->departure->kernel).starts_with(kernel)) << report->text();
    EXPECT_TRUE(StringRef(report->text()).starts_with("numerics: '" + node + "' departs: ")) << report->text();
  }

  static bool isNamed(Operation *op, StringRef name) {
    llvm::SetVector<StringRef> names;
    collectNames(op->getLoc(), names);
    return names.contains(name);
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> imported, optimized;
  std::string batch = temporaryFile("safetensors");
};

TEST_F(CheckNumericsTest, PassesWhatIsRight) {
  for (bool isBf16 : {false, true}) {
    OwningOpRef<ModuleOp> kept = cast<ModuleOp>((*imported)->clone());
    optimize(isBf16);
    Result<NumericsReport> report = check(isBf16);
    ASSERT_TRUE(report.ok()) << report.error().message;
    EXPECT_FALSE(report->departure) << report->text();
    EXPECT_GE(report->numCompared, 5u * 3 + 2 + 8) << "variables, loss and norm, the nodes";
    EXPECT_LE(report->largestShare, 1);
    EXPECT_FALSE(std::filesystem::exists(temporaryFile("plan")));
    imported = std::move(kept);
  }
}

TEST_F(CheckNumericsTest, NamesAnAddThatSubtracts) {
  optimize(false);
  plant<AddOp>([](AddOp add) {
    if (!isa<FusionOp>(add->getParentOp()) || !isNamed(add, "residual"))
      return false;
    OpBuilder builder(add);
    add.replaceAllUsesWith(builder.create<SubOp>(add.getLoc(), add.getType(), add.getA(), add.getB()).getResult());
    add.erase();
    return true;
  });
  expectBlamed("residual", "generated");
}

TEST_F(CheckNumericsTest, NamesATransposedFactor) {
  optimize(false);
  plant<MatMulOp>([](MatMulOp matmul) {
    bool isIt = isNamed(matmul, "projection") && !matmul.getTransposeLhs() && !matmul.getTransposeRhs();
    if (isIt)
      matmul.setTransposeRhs(true);
    return isIt;
  });
  expectBlamed("projection", "matmul");
}

TEST_F(CheckNumericsTest, NamesAScaledAttention) {
  optimize(false);
  plant<AttentionOp>([](AttentionOp attention) {
    attention.setScaleAttr(FloatAttr::get(Float64Type::get(attention.getContext()), 0.9));
    return true;
  });
  expectBlamed("attention", "attention");
}

TEST_F(CheckNumericsTest, NamesALostBias) {
  optimize(false);
  plant<MatMulOp>([](MatMulOp matmul) {
    bool isIt = isNamed(matmul, "bias") && matmul.getBias();
    if (isIt)
      matmul.getBiasMutable().clear();
    return isIt;
  });
  expectBlamed("bias", "matmul");
}

/// The product of the backward pass that gives the gradient of @square.
TEST_F(CheckNumericsTest, NamesAWrongGradient) {
  optimize(false);
  plant<MatMulOp>([](MatMulOp matmul) {
    bool isIt = isNamed(matmul, "projection") && !matmul.getTransposeLhs() && matmul.getTransposeRhs();
    if (isIt)
      matmul.setTransposeRhs(false);
    return isIt;
  });
  expectBlamed("projection", "matmul");
}

TEST_F(CheckNumericsTest, RefusesABatchThatDoesNotFit) {
  optimize(false);
  writeBatch(std::vector<int64_t>{1, 4, 7, 0, 2, 5});
  Result<NumericsReport> report = check(false);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.error().message, batch + ": input 'idx': element 2 is 7: outside of the vocabulary [0, 7)");
  EXPECT_FALSE(std::filesystem::exists(temporaryFile("plan")));
}

} // namespace
} // namespace llmc
