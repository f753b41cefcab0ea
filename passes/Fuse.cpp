// Gathers elementwise ops and reductions into generated kernels: first along the values that flow between them, then
// beside each other where they read the same large value.
#include "passes/FusionBuilder.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_FUSE
#include "passes/Passes.h.inc"

/// Ops that make the operands of `op`, seeing through free ops.
static void collectProducers(Operation *op, const FusibleOps &fusible, llvm::SetVector<Operation *> &producers) {
  for (Value operand : op->getOperands()) {
    Operation *producer = operand.getDefiningOp();
    if (!producer)
      continue;
    if (fusible.isFree(producer))
      collectProducers(producer, fusible, producers);
    else
      producers.insert(producer);
  }
}

namespace {
struct Fuse : impl::FuseBase<Fuse> {
  using FuseBase::FuseBase;

  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnBlock(program.getBody().front());
  }

  void runOnBlock(Block &block) {
    FusibleOps fusible(block);
    FusionClusters clusters(block, fusible);
    if (!single) {
      for (Operation &op : block)
        if (fusible.isFusible(&op))
          mergeWithProducers(clusters, fusible, &op);
      for (Operation &op : block)
        if (fusible.isFusible(&op))
          mergeWithSiblings(clusters, fusible, &op);
    }
    rebuild(block, fusible, clusters);
  }

  /// " of 'node'", after an op that is not where the remark stands.
  static std::string nodeText(Operation *op) {
    if (auto name = dyn_cast<NameLoc>(op->getLoc()))
      return " of '" + name.getName().str() + "'";
    return "";
  }

  void mergeWithProducers(FusionClusters &clusters, const FusibleOps &fusible, Operation *op) {
    llvm::SetVector<Operation *> producers;
    collectProducers(op, fusible, producers);
    for (Operation *producer : llvm::reverse(producers)) {
      if (!fusible.isFusible(producer))
        continue;
      if (std::string reason = clusters.tryMerge(producer, op); !reason.empty())
        remarkOn(op) << "declined: fusing " << op->getName().stripDialect() << " with "
                     << producer->getName().stripDialect() << nodeText(producer) << ": " << reason;
    }
  }

  /// Two kernels that read the same value of the whole iteration space read it once together.
  void mergeWithSiblings(FusionClusters &clusters, const FusibleOps &fusible, Operation *op) {
    for (Value operand : op->getOperands()) {
      if (cast<RankedTensorType>(operand.getType()).getShape() != iterationShape(op))
        continue;
      for (Operation *sibling : operand.getUsers())
        if (sibling != op && sibling->isBeforeInBlock(op) && fusible.isFusible(sibling))
          (void)clusters.tryMerge(sibling, op);
    }
  }

  /// Puts every node where it can run, clusters as fusions. Variables are read first and written last; the schedule
  /// moves them.
  void rebuild(Block &block, const FusibleOps &fusible, const FusionClusters &clusters) {
    Operation *terminator = block.getTerminator();
    for (const FusionNode &node : clusters.nodes()) {
      if (!node.isFusible) {
        node.ops.front()->moveBefore(terminator);
        continue;
      }
      OpBuilder builder(terminator);
      FusionOp fusion = buildFusion(builder, node, fusible, gpu);
      if (node.ops.size() > 1)
        remarkOn(fusion) << "fused " << node.ops.size() << " ops over " << fusion.getRows() << " x "
                         << fusion.getCols();
      // What forward and backward pass both compute (a norm's statistics) is computed once, now that it is one kernel.
      IRRewriter rewriter(builder);
      DominanceInfo dominance(fusion);
      eliminateCommonSubExpressions(rewriter, dominance, fusion);
    }
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
    SmallVector<Operation *> reads, writes;
    for (auto get : block.getOps<GetOp>())
      reads.push_back(get);
    for (auto set : block.getOps<SetOp>())
      writes.push_back(set);
    for (Operation *read : llvm::reverse(reads))
      read->moveBefore(&block, block.begin());
    for (Operation *write : writes)
      write->moveBefore(terminator);
    sortTopologically(&block);
  }
};
} // namespace
} // namespace llmc
