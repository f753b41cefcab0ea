// Softmax cross-entropy over the vocabulary and its gradient. A row whose label is ignored contributes exactly nothing,
// whatever its logits hold: its term is selected away, never multiplied by zero.
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

LogicalResult verifyLoss(Operation *op) {
  bool isGradient = isa<SoftmaxCrossEntropyGradOp>(op);
  Value logitsValue = op->getOperand(isGradient ? 1 : 0), labelsValue = op->getOperand(isGradient ? 2 : 1);
  Value lse = isGradient ? op->getOperand(3) : op->getResult(1),
        loss = isGradient ? op->getOperand(0) : op->getResult(0);
  auto logits = cast<RankedTensorType>(logitsValue.getType()), labels = cast<RankedTensorType>(labelsValue.getType());
  // loss_c1
  if (logits.getRank() != 2)
    return op->emitOpError() << "logits must be (rows, vocabulary), found " << logits;
  int64_t rows = logits.getDimSize(0);
  if (labels.getShape() != ArrayRef({rows}) && labels.getShape() != ArrayRef({rows, int64_t(1)}))
    return op->emitOpError() << "labels must have one entry per row of logits, " << rows << ", found " << labels;
  if (cast<RankedTensorType>(lse.getType()).getShape() != ArrayRef({rows, int64_t(1)}))
    return op->emitOpError() << "lse must have shape (" << rows << ", 1), found " << lse.getType();
  if (cast<RankedTensorType>(loss.getType()).getRank() != 0)
    return op->emitOpError() << (isGradient ? "dLoss" : "loss") << " must have rank 0, found " << loss.getType();
  auto scale = isGradient ? Value() : cast<SoftmaxCrossEntropyOp>(op).getScale();
  if (scale && cast<RankedTensorType>(scale.getType()).getRank() != 0)
    return op->emitOpError() << "scale must have rank 0, found " << scale.getType();
  if (isGradient && op->getResult(0).getType() != logits)
    return op->emitOpError() << "dLogits must have the type of logits " << logits << ", found "
                             << op->getResult(0).getType();
  return success();
}

//===-- On the host

/// Whether every label is ignored or a column of the logits.
static bool labelsFit(const HostTensor &labels, int64_t columns, int64_t ignoreIndex) {
  return llvm::all_of(labels.integers,
                      [&](int64_t label) { return label == ignoreIndex || (label >= 0 && label < columns); });
}

static double numValid(const HostTensor &labels, int64_t ignoreIndex) {
  return double(llvm::count_if(labels.integers, [&](int64_t label) { return label != ignoreIndex; }));
}

LogicalResult SoftmaxCrossEntropyOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &logits = operands[0], &labels = operands[1];
  int64_t rows = logits.type.getDimSize(0), cols = logits.type.getDimSize(1), ignored = int64_t(getIgnoreIndex());
  if (!labelsFit(labels, cols, ignored))
    return failure();
  HostTensor loss = HostTensor::zeros(getLoss().getType()), lse = HostTensor::zeros(getLse().getType());
  for (int64_t row = 0; row < rows; ++row) {
    const double *x = &logits.floats[row * cols];
    double largest = *std::max_element(x, x + cols), sum = 0;
    for (int64_t i = 0; i < cols; ++i)
      sum += exp(x[i] - largest);
    lse.floats[row] = largest + log(sum);
    if (labels.integers[row] != ignored)
      loss.floats[0] += lse.floats[row] - x[labels.integers[row]];
  }
  if (getMean())
    loss.floats[0] /= numValid(labels, ignored);
  if (getScale())
    loss.floats[0] *= operands[2].floats[0];
  results.push_back(std::move(loss));
  results.push_back(std::move(lse));
  return success();
}

LogicalResult SoftmaxCrossEntropyGradOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &dLoss = operands[0], &logits = operands[1], &labels = operands[2], &lse = operands[3];
  int64_t rows = logits.type.getDimSize(0), cols = logits.type.getDimSize(1), ignored = int64_t(getIgnoreIndex());
  if (!labelsFit(labels, cols, ignored))
    return failure();
  double factor = dLoss.floats[0] / (getMean() ? numValid(labels, ignored) : 1);
  HostTensor dLogits = HostTensor::zeros(logits.type);
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; labels.integers[row] != ignored && i < cols; ++i)
      dLogits.floats[row * cols + i] =
          factor * (exp(logits.floats[row * cols + i] - lse.floats[row]) - (labels.integers[row] == i ? 1 : 0));
  results.push_back(std::move(dLogits));
  return success();
}

//===-- Gradient

SmallVector<Value> SoftmaxCrossEntropyOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  SmallVector<Value> gradients(getNumOperands());
  assert(!resultGradients[1] && "lse is for the gradient alone");
  if (!resultGradients[0])
    return gradients;
  ExprScope scope{builder, getLoc()};
  Expr dLoss = scope(resultGradients[0]);
  if (getScale())
    dLoss = dLoss * scope(getScale());
  gradients[0] = builder.create<SoftmaxCrossEntropyGradOp>(getLoc(), getLogits().getType(), dLoss, getLogits(),
                                                           getLabels(), getLse(), getMeanAttr(), getIgnoreIndexAttr());
  return gradients;
}

//===-- As small ops

namespace {
/// The labels against the vocabulary.
struct LabelExprs {
  Expr isLabel; ///< (N, V): the column is the row's label
  Expr isValid; ///< (N, 1): the row counts
};
} // namespace

static LabelExprs compareLabels(ExprScope scope, Value labels, int64_t columns, int64_t ignoreIndex) {
  Type i64 = scope.builder.getI64Type();
  Expr column = iota(scope, RankedTensorType::get({1, columns}, i64), 1);
  Expr label = scope(labels);
  label = castTo(reshape(label, {label.type().getNumElements(), 1}), i64);
  return {equal(column, label), logicalNot(equal(label, label.constant(double(ignoreIndex))))};
}

/// The sum of (N, 1), as (1, 1).
static Expr sumOfColumn(Expr column) { return rowSum(reshape(column, {1, column.shape()[0]})); }

SmallVector<Value> SoftmaxCrossEntropyOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  RankedTensorType type = getLogits().getType();
  FloatType compute = computeType(type);
  auto [isLabel, isValid] = compareLabels(scope, getLabels(), type.getDimSize(1), int64_t(getIgnoreIndex()));
  Expr x = castTo(scope(getLogits()), compute);
  Expr largest = reduceMax(x, {1});
  Expr lse = largest + log(rowSum(exp(x - largest)));
  Expr loss = sumOfColumn(select(isValid, lse - rowSum(select(isLabel, x, 0.0)), 0.0));
  if (getMean())
    loss = loss / sumOfColumn(cast(isValid, compute));
  if (getScale())
    loss = loss * castTo(reshape(scope(getScale()), {1, 1}), compute);
  return {asType(loss, getLoss().getType()), asType(lse, getLse().getType())};
}

SmallVector<Value> SoftmaxCrossEntropyGradOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  RankedTensorType type = getLogits().getType();
  FloatType compute = computeType(type);
  auto [isLabel, isValid] = compareLabels(scope, getLabels(), type.getDimSize(1), int64_t(getIgnoreIndex()));
  Expr p = exp(castTo(scope(getLogits()), compute) - castTo(scope(getLse()), compute));
  Expr factor = castTo(reshape(scope(getDLoss()), {1, 1}), compute);
  if (getMean())
    factor = factor / sumOfColumn(cast(isValid, compute));
  return {asType(select(isValid, factor * select(isLabel, p - 1.0, p), 0.0), type)};
}

} // namespace llmc
