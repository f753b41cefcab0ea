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
  StringLiteral requiredBecause;                                        ///< "": the pass can be switched off
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
  return createFuse({llvm::is_contained(options.disabled, "fuse"), options.isGpu});
}

/// On a GPU the memory for a chunk is there, and each chunk reads and writes the head's whole gradient once more.
static constexpr int64_t kGpuLossChunks = 8;

static ArrayRef<Step> steps() {
  static const Step table[] = {
      // Shape arithmetic folds away and equal subgraphs merge before anything is recognised.
      {"canonicalize", "", createCanonicalize},
      {"cse", "", createCse},
      // Norms first: attention and cross-entropy are found between what is left of the small ops.
      {"raise-norm", "", [](const PipelineOptions &) { return createRaiseNorm(); }},
      {"raise-activation", "", [](const PipelineOptions &) { return createRaiseActivation(); }},
      {"raise-attention", "", [](const PipelineOptions &) { return createRaiseAttention(); }},
      {"raise-cross-entropy", "", [](const PipelineOptions &) { return createRaiseCrossEntropy(); }},
      {"canonicalize", "", createCanonicalize},
      {"cse", "", createCse},
      {"flatten-rows", "", [](const PipelineOptions &) { return createFlattenRows(); }},
      {"canonicalize", "", createCanonicalize},
      // Once products, biases and norms are on rows, those that share an input are seen.
      {"merge-projections", "", [](const PipelineOptions &) { return createMergeProjections(); }},
      // The step. No cse from here on: what the backward pass computes again must not become what the forward pass
      // keeps.
      {"scale-loss", "a session of several micro-batches or ranks would add up means over unequal numbers of labels",
       [](const PipelineOptions &) { return createScaleLoss(); }},
      {"build-gradients", "a training step needs gradients",
       [](const PipelineOptions &) { return createBuildGradients(); }},
      {"build-programs", "a plan consists of programs, which this pass makes of the graph and its gradients",
       createPrograms},
      // While gradients, norm and updates are still whole ops.
      {"insert-collectives", "",
       [](const PipelineOptions &options) { return createInsertCollectives({options.bucketBytes}); }},
      {"overlap-collectives", "", [](const PipelineOptions &) { return createOverlapCollectives(); }},
      {"canonicalize", "", createCanonicalize},
      // Epilogues before fusion: an add that a contraction takes is no kernel's.
      {"fuse-epilogue", "", [](const PipelineOptions &) { return createFuseEpilogue(); }},
      // Sums already start from each other, and what is cut here is cast, packed and fused like everything else.
      {"chunk-loss", "",
       [](const PipelineOptions &options) {
         ChunkLossOptions chunks;
         chunks.storedBytes = options.isBf16 ? 2 : 4;
         if (options.isGpu)
           chunks.maxChunks = kGpuLossChunks;
         return createChunkLoss(chunks);
       }},
      // The contractions are as they will run; what is elementwise still is one op that a cast can follow. On a GPU
      // each
      // cast of a parameter is a pass over memory; on a CPU it is part of a pack, which each layout needs anyway.
      {"assign-precision", "",
       [](const PipelineOptions &options) {
         return options.isBf16 ? createAssignPrecision({/*keepCopies=*/options.isGpu}) : nullptr;
       }},
      // Before fusion: a cast that only feeds a pack is no kernel. A GPU's library reads row-major.
      {"pack-operands", "",
       [](const PipelineOptions &options) { return options.isGpu ? nullptr : createPackOperands(); }},
      {"decompose", "most ops have no kernel before it", [](const PipelineOptions &) { return createDecompose(); }},
      {"fuse", "", createFuseOrSingle},
      {"materialize-constants", "kernels read constants from memory, where this pass puts them",
       [](const PipelineOptions &) { return createMaterializeConstants(); }},
      {"schedule", "", [](const PipelineOptions &) { return createSchedule(); }},
      // Needs to know where the peak is, and moves nothing. On a GPU, where elementwise kernels wait for memory, it
      // would
      // cost time for room that is there.
      {"recompute", "", [](const PipelineOptions &options) { return options.isGpu ? nullptr : createRecompute(); }},
      {"plan-memory", "a kernel is given its place in memory by it",
       [](const PipelineOptions &) { return createPlanMemory(); }},
      {"verify-plannable", "the plan's emitter relies on what it checks",
       [](const PipelineOptions &) { return createVerifyPlannable(); }},
  };
  return table;
}

void buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  for (const Step &step : steps())
    if (!step.requiredBecause.empty() || step.name == "fuse" || !llvm::is_contained(options.disabled, step.name))
      if (std::unique_ptr<Pass> pass = step.create(options))
        manager.addPass(std::move(pass));
}

StringRef whyRequired(StringRef name) {
  const Step *step = llvm::find_if(steps(), [&](const Step &step) { return step.name == name; });
  return step == steps().end() ? StringRef() : StringRef(step->requiredBecause);
}

SmallVector<StringRef> passNames() {
  SmallVector<StringRef> names;
  for (const Step &step : steps())
    if (!llvm::is_contained(names, step.name))
      names.push_back(step.name);
  return names;
}

} // namespace llmc
