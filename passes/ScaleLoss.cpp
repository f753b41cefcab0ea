// Divides the loss by the session's count of labels. A batch's own mean would be wrong as soon as a step has several
// micro-batches or ranks: their labels count together. So the compiled loss is a sum, times a scalar that the session
// writes.
#include "ir/LabelPath.h"
#include "passes/Passes.h"
#include "passes/ProgramResults.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_SCALELOSS
#include "passes/Passes.h.inc"

namespace {
struct ScaleLoss : impl::ScaleLossBase<ScaleLoss> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (program.getKind() == "graph" && failed(scale(program)))
        return signalPassFailure();
  }

  LogicalResult scale(ProgramOp program) {
    std::optional<unsigned> index = lossResult(program);
    if (!index)
      return program.emitError("no result has the role \"loss\": nothing to train");
    auto terminator = cast<ReturnOp>(program.getBody().front().getTerminator());
    Value loss = terminator.getOperand(*index);
    OpBuilder builder(terminator);
    Value scale =
        builder.create<ScalarOp>(loss.getLoc(), RankedTensorType::get({}, builder.getF32Type()), "loss_scale");

    Value unshaped = loss;
    while (auto reshape = unshaped.getDefiningOp<ReshapeOp>())
      unshaped = reshape.getA();
    if (auto crossEntropy = unshaped.getDefiningOp<SoftmaxCrossEntropyOp>();
        crossEntropy && crossEntropy.getMean() && !crossEntropy.getScale()) {
      std::optional<LabelPath> path = labelPathOf(crossEntropy.getLabels(), int64_t(crossEntropy.getIgnoreIndex()));
      BlockArgument labels = path ? path->input : BlockArgument();
      auto role = path ? program.getArgAttrOfType<StringAttr>(labels.getArgNumber(), "llmc.role") : StringAttr();
      // The session counts labels by the role: it must be what the graph does.
      if (role && role.getValue() == (path->isShifted ? "labels_unshifted" : "labels")) {
        scale.getDefiningOp()->moveBefore(crossEntropy);
        crossEntropy.getScaleMutable().assign(scale);
        crossEntropy.setMean(false);
        program.setArgAttr(labels.getArgNumber(), "llmc.ignore_index", crossEntropy.getIgnoreIndexAttr());
        program.setArgAttr(labels.getArgNumber(), "llmc.vocabulary",
                           builder.getI64IntegerAttr(crossEntropy.getLogits().getType().getShape().back()));
        getOperation()->setAttr("llmc.token_mean", builder.getUnitAttr());
        remarkOn(crossEntropy) << "the loss is divided by the labels of all micro-batches and ranks together";
        return success();
      }
    }
    Expr scaled = ExprScope{builder, loss.getLoc()}(loss)*Expr{&builder, loss.getLoc(), scale};
    terminator.setOperand(*index, scaled);
    remarkAt(loss.getLoc(), program)
        << "the loss is no mean cross-entropy of a labels input: it is averaged over micro-batches and ranks";
    return success();
  }
};
} // namespace
} // namespace llmc
