// What exporters really write: every norm, activation and attention of the exported GPTs is found, in whatever small
// ops it is spelled out.
#include "frontend/OnnxImporter.h"
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"

#include <gtest/gtest.h>

using namespace mlir;

namespace llmc::testing {
namespace {

struct Fixture {
  const char *name;
  int64_t batch = 2, seq = 32;
  int layers = 2;
  const char *norm = "layer_norm", *activation = "gelu";
  int norms = 5;
  bool isPacked = true; ///< q, k and v are one tensor, the result of one contraction
};

void PrintTo(const Fixture &fixture, std::ostream *stream) { *stream << fixture.name; }

class RaiseFixtures : public ::testing::TestWithParam<Fixture> {};

TEST_P(RaiseFixtures, FindsEverything) {
  const Fixture &fixture = GetParam();
  if (!llvm::sys::fs::exists(std::string(LLMC_TEST_FIXTURES) + "/" + fixture.name))
    GTEST_SKIP() << "no fixture " << fixture.name << " in LLMC_FIXTURES, " << LLMC_TEST_FIXTURES;
  MLIRContext context(MLIRContext::Threading::DISABLED);
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler(
      [](Diagnostic &diagnostic) { return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark); });
  ImportOptions options;
  options.path = std::string(LLMC_TEST_FIXTURES) + "/" + fixture.name + "/model.onnx";
  options.asExported = true;
  options.keepDropout = false;
  options.batch = fixture.batch;
  options.seq = fixture.seq;
  FailureOr<ImportedModel> model = importOnnx(context, options);
  ASSERT_TRUE(succeeded(model));
  PassManager manager(&context);
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createRaiseNorm());
  manager.addPass(createRaiseActivation());
  manager.addPass(createRaiseAttention());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createCSEPass());
  manager.addPass(createFlattenRows());
  manager.addPass(createCanonicalizerPass());
  manager.addPass(createMergeProjections());
  ASSERT_TRUE(succeeded(manager.run(*model->module)));

  std::map<StringRef, int> counts;
  model->module->walk([&](Operation *op) {
    ++counts[op->getName().stripDialect()];
    if (auto attention = dyn_cast<AttentionOp>(op)) {
      EXPECT_EQ(attention.getInputs().size(), fixture.isPacked ? 1u : 3u);
      EXPECT_TRUE(attention.getCausal());
      EXPECT_FALSE(attention.getMask());
    }
    // The residual stream is rows, but for the embeddings' sum.
    bool isOfStream = isa<LayerNormOp, GeluOp, SiluOp>(op);
    EXPECT_TRUE(!isOfStream || cast<RankedTensorType>(op->getResult(0).getType()).getRank() == 2);
  });
  EXPECT_EQ(counts["attention"], fixture.layers);
  if (fixture.isPacked) {
    EXPECT_EQ(counts["matmul"], 4 * fixture.layers + 1);
  }
  EXPECT_EQ(counts[fixture.norm], fixture.norms);
  EXPECT_EQ(counts[fixture.activation], fixture.layers);
  for (StringRef leftOver : {"softmax", "reduce_mean", "tanh", "erf", "sigmoid", "rsqrt", "sqrt"})
    EXPECT_EQ(counts[leftOver], 0) << leftOver.str();
}

INSTANTIATE_TEST_SUITE_P(NanoGpt, RaiseFixtures,
                         ::testing::Values(Fixture{"nanogpt_loss_dynamo18"},
                                           Fixture{"nanogpt_loss_dynamo18_dropout_train"},
                                           Fixture{"nanogpt_loss_dynamo18_dynshape"},
                                           Fixture{"nanogpt_loss_dynamo18_freshinit"},
                                           Fixture{"nanogpt_loss_dynamo18_tied", 1, 16, 1, "layer_norm", "gelu", 3},
                                           Fixture{"nanogpt_loss_dynamo18_tied_unoptimized"},
                                           Fixture{"nanogpt_loss_dynamo23"}, Fixture{"nanogpt_loss_legacy17"}),
                         [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(HuggingFace, RaiseFixtures,
                         ::testing::Values(Fixture{"hf_gpt2_dynamo18"}, Fixture{"hf_gpt2_dynamo18_dynshape"},
                                           Fixture{"hf_gpt2_labels_dynamo18"}, Fixture{"hf_gpt2_legacy17_mask"},
                                           Fixture{"hf_gpt2_legacy17_mask_sdpa"}),
                         [](const auto &info) { return info.param.name; });

Fixture llama(const char *name, int norms = 5) { return {name, 2, 32, 2, "rms_norm", "silu", norms, false}; }

INSTANTIATE_TEST_SUITE_P(FromScratch, RaiseFixtures,
                         ::testing::Values(Fixture{"rasbt_gpt_defaults_freshinit"}, Fixture{"rasbt_gpt_dynamo18"},
                                           Fixture{"rasbt_gpt_dynamo18_dropout_train"},
                                           Fixture{"rasbt_gpt_dynamo18_dynshape"}, Fixture{"rasbt_gpt_dynamo23"},
                                           Fixture{"rasbt_gpt_external_weightsbin"}, Fixture{"rasbt_gpt_fp16"},
                                           Fixture{"rasbt_gpt_legacy17"}, Fixture{"rasbt_gpt_legacy17_dropout_train"},
                                           Fixture{"rasbt_gpt_legacy17_dynaxes"},
                                           Fixture{"rasbt_gpt_legacy17_freshinit"}, Fixture{"rasbt_gpt_unoptimized"}),
                         [](const auto &info) { return info.param.name; });

INSTANTIATE_TEST_SUITE_P(Llama, RaiseFixtures,
                         ::testing::Values(llama("hf_llama_dynamo18"), llama("hf_llama_dynamo23"),
                                           llama("hf_llama_legacy17_mask"), llama("hf_mistral_sw8_dynamo18"),
                                           llama("hf_qwen3_sw8_dynamo18", 9), llama("rasbt_llama2_dynamo18"),
                                           llama("rasbt_llama3_dynamo18"), llama("rasbt_llama3_bf16")),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace llmc::testing
