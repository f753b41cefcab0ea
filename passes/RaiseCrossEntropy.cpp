// Finds the cross-entropy of language models spelled out in small ops: minus the mean (or sum) of the log-softmax at
// the labels. All ops from the loss back to the selection are linear with numbers, so the loss is a number times the
// sum of what is selected; the number tells a mean from a sum, in whatever order means, sums and signs stand.
#include "passes/Match.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_RAISECROSSENTROPY
#include "passes/Passes.h.inc"

namespace {
/// The log-softmax of logits (…, V) where the index along the last dimension is the label (…, 1).
struct Selection {
  Value logits, labels;
  int64_t rows() const { return cast<RankedTensorType>(labels.getType()).getNumElements(); }
};
} // namespace

/// The logits when `value` is their log-softmax; null otherwise.
static Value logSoftmaxOf(Value value) {
  value = skipUnitReshapes(value);
  if (auto logSoftmax = value.getDefiningOp<LogSoftmaxOp>())
    return logSoftmax.getA();
  if (auto log = value.getDefiningOp<LogOp>())
    if (auto softmax = skipCasts(log.getA()).getDefiningOp<SoftmaxOp>())
      return softmax.getA();
  return {};
}

/// Whether each element of a row is its own index.
static bool isColumnIndex(Value value, int64_t cols, KnownTensors &tensors) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getRank() == 0 || type.getShape().back() != cols)
    return false;
  if (auto iota = value.getDefiningOp<IotaOp>())
    return int64_t(iota.getDim()) == type.getRank() - 1;
  const HostTensor *tensor = isRowVector(value, cols) ? tensors.of(value) : nullptr;
  if (!tensor || tensor->isFloat())
    return false;
  return llvm::equal(tensor->integers, llvm::seq<int64_t>(0, cols));
}

/// The labels when `value` is true (or one) exactly where the column is the label; null otherwise.
static Value labelsOf(Value value, RankedTensorType logits, KnownTensors &tensors) {
  if (auto cast = value.getDefiningOp<CastOp>())
    value = cast.getA();
  auto equal = value.getDefiningOp<EqualOp>();
  if (!equal)
    return {};
  SmallVector<int64_t> labelShape(logits.getShape());
  labelShape.back() = 1;
  for (auto [index, labels] : {std::pair(equal.getA(), equal.getB()), std::pair(equal.getB(), equal.getA())})
    if (isColumnIndex(index, logits.getShape().back(), tensors) && !tensors.of(labels) &&
        cast<RankedTensorType>(labels.getType()).getShape() == ArrayRef(labelShape))
      return labels;
  return {};
}

/// What is selected by label, when `value` is that and zero elsewhere.
static std::optional<Selection> matchSelection(Value value, KnownTensors &tensors) {
  Value condition, logProbabilities;
  if (auto select = value.getDefiningOp<SelectOp>(); select && knownNumber(select.getB()) == 0.0) {
    condition = select.getCondition();
    logProbabilities = select.getA();
  } else if (auto product = value.getDefiningOp<MulOp>()) {
    bool isFirst = bool(logSoftmaxOf(product.getA()));
    logProbabilities = isFirst ? product.getA() : product.getB();
    condition = isFirst ? product.getB() : product.getA();
  } else {
    return std::nullopt;
  }
  Value logits = logSoftmaxOf(logProbabilities);
  if (!logits || logProbabilities.getType() != value.getType())
    return std::nullopt;
  Value labels = labelsOf(condition, cast<RankedTensorType>(value.getType()), tensors);
  return labels ? std::optional(Selection{logits, labels}) : std::nullopt;
}

/// The number that the sum of the selection is multiplied by to give `value`, which has one element.
static std::optional<std::pair<double, Selection>> matchLoss(Value value, KnownTensors &tensors) {
  double factor = 1;
  for (;;) {
    value = skipCasts(value);
    Operation *op = value.getDefiningOp();
    if (isa_and_present<ReshapeOp, ReduceSumOp>(op)) {
      value = op->getOperand(0);
    } else if (isa_and_present<NegOp>(op)) {
      factor = -factor;
      value = op->getOperand(0);
    } else if (auto mean = dyn_cast_if_present<ReduceMeanOp>(op)) {
      factor *= double(mean.getType().getNumElements()) / double(mean.getA().getType().getNumElements());
      value = mean.getA();
    } else if (isa_and_present<MulOp, DivOp>(op) && knownNumber(op->getOperand(1))) {
      double number = *knownNumber(op->getOperand(1));
      factor *= isa<DivOp>(op) ? 1 / number : number;
      value = op->getOperand(0);
    } else if (isa_and_present<MulOp>(op) && knownNumber(op->getOperand(0))) {
      factor *= *knownNumber(op->getOperand(0));
      value = op->getOperand(1);
    } else {
      std::optional<Selection> selection = matchSelection(value, tensors);
      return selection ? std::optional(std::pair(factor, *selection)) : std::nullopt;
    }
  }
}

/// The labels, those that select nothing as `ignored`.
static Expr ignoreOutside(Expr labels, int64_t vocabulary, int64_t ignored) {
  return select(less(labels, labels.constant(0)), double(ignored),
                select(less(labels, labels.constant(double(vocabulary))), labels, double(ignored)));
}

/// A row whose label is outside of the vocabulary gives zero, and counts in the mean: so the mean is a sum of the rows
/// that count, by the number of all.
static void replace(Operation *root, const Selection &selection, bool isMean) {
  OpBuilder builder(root);
  ExprScope scope{builder, root->getLoc()};
  int64_t rows = selection.rows(), cols = cast<RankedTensorType>(selection.logits.getType()).getShape().back();
  constexpr int64_t kIgnoreIndex = -100;
  Expr logits = reshape(scope(selection.logits), {rows, cols});
  Expr labels = ignoreOutside(reshape(scope(selection.labels), {rows}), cols, kIgnoreIndex);
  Type element = logits.type().getElementType();
  auto lossType = RankedTensorType::get({}, element), lseType = RankedTensorType::get({rows, 1}, builder.getF32Type());
  auto raised = builder.create<SoftmaxCrossEntropyOp>(root->getLoc(), TypeRange{lossType, lseType}, logits, labels,
                                                      Value(), /*mean=*/false, kIgnoreIndex);
  remarkOn(raised) << "raised softmax_cross_entropy, " << (isMean ? "mean" : "sum") << " over " << rows
                   << " rows; labels outside of the vocabulary give zero" << (isMean ? " and count" : "");
  Expr loss = scope(raised.getLoss());
  if (isMean)
    loss = loss / double(rows);
  root->getResult(0).replaceAllUsesWith(reshape(loss, cast<RankedTensorType>(root->getResult(0).getType()).getShape()));
}

namespace {
struct RaiseCrossEntropy : impl::RaiseCrossEntropyBase<RaiseCrossEntropy> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    Block &body = program.getBody().front();
    // Means before sums: a mean may hold a negated sum.
    for (bool isMean : {true, false}) {
      KnownTensors tensors;
      for (Operation &op : llvm::make_early_inc_range(body))
        tryRaise(&op, isMean, tensors);
      eraseDeadOps(program);
    }
    KnownTensors tensors;
    for (Operation &op : body)
      if (isa<SelectOp, MulOp>(op) && matchSelection(op.getResult(0), tensors))
        remarkOn(&op)
            << "declined: no cross-entropy, what is selected by label is neither averaged nor summed with a minus sign";
  }

  static void tryRaise(Operation *op, bool isMean, KnownTensors &tensors) {
    if (op->getNumResults() != 1 || !isa<MulOp, DivOp, NegOp, ReduceMeanOp, ReduceSumOp>(op) ||
        cast<RankedTensorType>(op->getResult(0).getType()).getNumElements() != 1)
      return;
    auto loss = matchLoss(op->getResult(0), tensors);
    if (!loss)
      return;
    auto [factor, selection] = *loss;
    if (isClose(factor, isMean ? -1.0 / double(selection.rows()) : -1.0))
      replace(op, selection, isMean);
  }
};
} // namespace

} // namespace llmc
