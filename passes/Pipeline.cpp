// The order of the passes and the reason for it.
#include "passes/Passes.h"

#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"

#include <functional>

using namespace mlir;

namespace llmc {

namespace {
struct Step {
  StringLiteral name;
  bool isOptional;
  std::function<std::unique_ptr<Pass>(const PipelineOptions &)> create; ///< null where the options do not ask for it
};
} // namespace

static std::unique_ptr<Pass> createCanonicalize(const PipelineOptions &) { return createCanonicalizerPass(); }
static std::unique_ptr<Pass> createCse(const PipelineOptions &) { return createCSEPass(); }
static std::unique_ptr<Pass> createPrograms(const PipelineOptions &options) {
  return createBuildPrograms({options.optimizer});
}

/// Without fusion every op is a kernel of its own: the pass still runs.
static std::unique_ptr<Pass> createFuseOrSingle(const PipelineOptions &options) {
  return createFuse({llvm::is_contained(options.disabled, "fuse")});
}

static ArrayRef<Step> steps() {
  static const Step table[] = {
      // Shape arithmetic folds away and equal subgraphs merge before anything is recognised.
      {"canonicalize", true, createCanonicalize},
      {"cse", true, createCse},
      // Norms first: attention and cross-entropy are found between what is left of the small ops.
      {"raise-norm", true, [](const PipelineOptions &) { return createRaiseNorm(); }},
      {"raise-activation", true, [](const PipelineOptions &) { return createRaiseActivation(); }},
      {"raise-attention", true, [](const PipelineOptions &) { return createRaiseAttention(); }},
      {"raise-cross-entropy", true, [](const PipelineOptions &) { return createRaiseCrossEntropy(); }},
      {"canonicalize", true, createCanonicalize},
      {"cse", true, createCse},
      {"flatten-rows", true, [](const PipelineOptions &) { return createFlattenRows(); }},
      {"canonicalize", true, createCanonicalize},
      // Once products, biases and norms are on rows, those that share an input are seen.
      {"merge-projections", true, [](const PipelineOptions &) { return createMergeProjections(); }},
      // The step. No cse from here on: what the backward pass computes again must not become what the forward pass
      // keeps.
      {"scale-loss", false, [](const PipelineOptions &) { return createScaleLoss(); }},
      {"build-gradients", false, [](const PipelineOptions &) { return createBuildGradients(); }},
      {"build-programs", false, createPrograms},
      // While gradients, norm and updates are still whole ops.
      {"insert-collectives", true,
       [](const PipelineOptions &options) { return createInsertCollectives({options.bucketBytes}); }},
      {"overlap-collectives", true, [](const PipelineOptions &) { return createOverlapCollectives(); }},
      {"canonicalize", true, createCanonicalize},
      // Epilogues before fusion: an add that a contraction takes is no kernel's.
      {"fuse-epilogue", true, [](const PipelineOptions &) { return createFuseEpilogue(); }},
      // Sums already start from each other, and what is cut here is cast, packed and fused like everything else.
      {"chunk-loss", true,
       [](const PipelineOptions &options) {
         ChunkLossOptions chunks;
         chunks.storedBytes = options.isBf16 ? 2 : 4;
         return createChunkLoss(chunks);
       }},
      // The contractions are as they will run; what is elementwise still is one op that a cast can follow.
      {"assign-precision", false,
       [](const PipelineOptions &options) { return options.isBf16 ? createAssignPrecision() : nullptr; }},
      // Before fusion: a cast that only feeds a pack is no kernel.
      {"pack-operands", true, [](const PipelineOptions &) { return createPackOperands(); }},
      {"decompose", false, [](const PipelineOptions &) { return createDecompose(); }},
      {"fuse", true, createFuseOrSingle},
      {"materialize-constants", false, [](const PipelineOptions &) { return createMaterializeConstants(); }},
      {"schedule", true, [](const PipelineOptions &) { return createSchedule(); }},
      // Needs to know where the peak is, and moves nothing.
      {"recompute", true, [](const PipelineOptions &) { return createRecompute(); }},
      {"plan-memory", false, [](const PipelineOptions &) { return createPlanMemory(); }},
      {"verify-plannable", false, [](const PipelineOptions &) { return createVerifyPlannable(); }},
  };
  return table;
}

void buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  for (const Step &step : steps())
    if (!step.isOptional || step.name == "fuse" || !llvm::is_contained(options.disabled, step.name))
      if (std::unique_ptr<Pass> pass = step.create(options))
        manager.addPass(std::move(pass));
}

bool isOptionalPass(StringRef name) {
  return llvm::any_of(steps(), [&](const Step &step) { return step.name == name && step.isOptional; });
}

SmallVector<StringRef> passNames() {
  SmallVector<StringRef> names;
  for (const Step &step : steps())
    if (!llvm::is_contained(names, step.name))
      names.push_back(step.name);
  return names;
}

} // namespace llmc
