// Replaces ops that are no kernel of their own by the small ops the fusion pass gathers, and brings reductions over any
// axes to the two forms a generated kernel has: along rows (the last axis) or along columns (all axes but the last).
#include "passes/Passes.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_DECOMPOSE
#include "passes/Passes.h.inc"

/// Along rows; sums also along columns.
template <typename ReduceOp> static bool isKernelForm(ReduceOp op) {
  ArrayRef<int64_t> axes = op.getAxes();
  int64_t rank = op.getA().getType().getRank();
  if (axes.size() == 1 && axes[0] == rank - 1)
    return true;
  return std::is_same_v<ReduceOp, ReduceSumOp> && rank >= 2 && int64_t(axes.size()) == rank - 1 &&
         axes.back() == rank - 2;
}

/// `a` with reduced axes moved behind the others when they are in the middle; then as a matrix with the reduced axes as
/// one dimension. A reduction of everything goes along rows first.
template <typename ReduceOp> static Value reduceAsMatrix(OpBuilder &builder, ReduceOp op) {
  ExprScope scope{builder, op.getLoc()};
  Expr a = scope(op.getA());
  SmallVector<int64_t> axes(op.getAxes()), kept;
  int64_t reducedSize = 1, keptSize = 1;
  for (int64_t d = 0; d < a.rank(); ++d) {
    bool isReduced = llvm::is_contained(axes, d);
    (isReduced ? reducedSize : keptSize) *= a.shape()[d];
    if (!isReduced)
      kept.push_back(d);
  }
  if (kept.empty()) {
    Expr rows = scope(builder.create<ReduceOp>(op.getLoc(), a, builder.getDenseI64ArrayAttr({a.rank() - 1})));
    auto all = builder.create<ReduceOp>(op.getLoc(), reshape(rows, {1, rows.type().getNumElements()}),
                                        builder.getDenseI64ArrayAttr({1}));
    return reshape(scope(all), op.getType().getShape());
  }
  bool leading = std::is_same_v<ReduceOp, ReduceSumOp> && axes.back() == int64_t(axes.size()) - 1;
  if (!leading) {
    SmallVector<int64_t> permutation(kept);
    permutation.append(axes);
    a = transpose(a, permutation);
  }
  Expr matrix = leading ? reshape(a, {reducedSize, keptSize}) : reshape(a, {keptSize, reducedSize});
  auto reduced = builder.create<ReduceOp>(op.getLoc(), matrix, builder.getDenseI64ArrayAttr({leading ? 0 : 1}));
  return reshape(scope(reduced), op.getType().getShape());
}

namespace {
struct Decompose : impl::DecomposeBase<Decompose> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    // Ops that a decomposition makes may be decomposed in turn; they stand before the op they replace, so a work list
    // serves.
    SmallVector<Operation *> worklist;
    for (Operation &op : program.getBody().front())
      worklist.push_back(&op);
    std::reverse(worklist.begin(), worklist.end());
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      OpBuilder builder(op);
      Operation *before = op->getPrevNode();
      SmallVector<Value> replacements = replacementsOf(builder, op);
      if (replacements.empty())
        continue;
      SmallVector<Operation *> made;
      for (Operation *at = op->getPrevNode(); at != before; at = at->getPrevNode())
        made.push_back(at);
      op->replaceAllUsesWith(replacements);
      op->erase();
      worklist.append(made.begin(), made.end());
    }
  }

  SmallVector<Value> replacementsOf(OpBuilder &builder, Operation *op) {
    if (auto decomposable = dyn_cast<DecomposableOpInterface>(op))
      return decomposable.decompose(builder);
    if (auto mean = dyn_cast<ReduceMeanOp>(op)) {
      int64_t count = mean.getA().getType().getNumElements() / std::max<int64_t>(1, mean.getType().getNumElements());
      return {reduceSum(ExprScope{builder, mean.getLoc()}(mean.getA()), mean.getAxes()) * (1.0 / double(count))};
    }
    if (auto sum = dyn_cast<ReduceSumOp>(op); sum && !isKernelForm(sum))
      return {reduceAsMatrix(builder, sum)};
    if (auto maximum = dyn_cast<ReduceMaxOp>(op); maximum && !isKernelForm(maximum))
      return {reduceAsMatrix(builder, maximum)};
    return {};
  }
};
} // namespace
} // namespace llmc
