// Reductions over axes, and softmax along the last. What a reduction does to each element is one accumulate function on
// the host; its gradient is a broadcast.
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

LogicalResult verifyAxes(Operation *op, ArrayRef<int64_t> axes, RankedTensorType type) {
  // reduction_c1
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (axis < 0 || axis >= type.getRank())
      return op->emitOpError() << "axes must be dimensions of " << type << ", found " << axis;
    if (i > 0 && axis <= axes[i - 1])
      return op->emitOpError() << "axes must rise, found " << axis << " after " << axes[i - 1];
  }
  return success();
}

LogicalResult inferReduction(Type operand, ArrayRef<int64_t> axes, SmallVectorImpl<Type> &types) {
  auto type = dyn_cast<RankedTensorType>(operand);
  if (!type)
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  for (int64_t axis : axes) {
    if (axis < 0 || axis >= type.getRank())
      return failure();
    shape[axis] = 1;
  }
  types.push_back(type.clone(shape));
  return success();
}

/// Calls accumulate(source index, result index) for each element.
static void forEachReduced(RankedTensorType type, RankedTensorType resultType,
                           function_ref<void(int64_t, int64_t)> accumulate) {
  std::vector<int64_t> resultIndices = broadcastIndices(type.getShape(), resultType.getShape());
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    accumulate(i, resultIndices[i]);
}

static int64_t reducedCount(RankedTensorType type, ArrayRef<int64_t> axes) {
  int64_t count = 1;
  for (int64_t axis : axes)
    count *= type.getDimSize(axis);
  return count;
}

static HostTensor sumOnHost(const HostTensor &a, RankedTensorType resultType) {
  HostTensor sum = HostTensor::zeros(resultType);
  forEachReduced(a.type, resultType, [&](int64_t from, int64_t to) {
    if (a.isFloat())
      sum.floats[to] += a.floats[from];
    else
      sum.integers[to] = WrappingInt(sum.integers[to]) + WrappingInt(a.integers[from]);
  });
  return sum;
}

//===-- reduce_sum

LogicalResult ReduceSumOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(sumOnHost(operands[0], getResult().getType()));
  return success();
}

SmallVector<Value> ReduceSumOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  ExprScope scope{builder, getLoc()};
  return {broadcastTo(scope(resultGradients[0]), getA().getType().getShape())};
}

//===-- reduce_max

LogicalResult ReduceMaxOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  const HostTensor &a = operands[0];
  if (reducedCount(a.type, getAxes()) == 0)
    return failure();
  HostTensor largest = HostTensor::zeros(getResult().getType());
  std::vector<bool> seen(largest.size(), false);
  forEachReduced(a.type, largest.type, [&](int64_t from, int64_t to) {
    if (a.isFloat())
      largest.floats[to] = seen[to] ? max(largest.floats[to], a.floats[from]) : a.floats[from];
    else
      largest.integers[to] = seen[to] ? max(largest.integers[to], a.integers[from]) : a.integers[from];
    seen[to] = true;
  });
  results.push_back(std::move(largest));
  return success();
}

SmallVector<Value> ReduceMaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  ExprScope scope{builder, getLoc()};
  Expr a = scope(getA()), y = scope(getResult()), dy = scope(resultGradients[0]);
  Expr isLargest = equal(a, y);
  Expr numLargest = reduceSum(cast(isLargest, a.type().getElementType()), getAxes());
  return {select(isLargest, dy / numLargest, 0.0)};
}

//===-- reduce_mean

LogicalResult ReduceMeanOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor mean = sumOnHost(operands[0], getResult().getType());
  int64_t count = reducedCount(operands[0].type, getAxes());
  if (count == 0)
    return failure();
  for (double &value : mean.floats)
    value /= double(count);
  for (int64_t &value : mean.integers)
    value /= count;
  results.push_back(std::move(mean));
  return success();
}

SmallVector<Value> ReduceMeanOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  ExprScope scope{builder, getLoc()};
  RankedTensorType type = getA().getType();
  return {broadcastTo(scope(resultGradients[0]) / double(reducedCount(type, getAxes())), type.getShape())};
}

SmallVector<Value> ReduceMeanOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  return {reduceSum(scope(getA()), getAxes()) / double(reducedCount(getA().getType(), getAxes()))};
}

//===-- softmax and log_softmax

/// The logarithm of the sum of e^x over a row, without overflow.
static double logSumExp(const double *row, int64_t size) {
  double largest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t i = 0; i < size; ++i)
    largest = max(largest, row[i]);
  for (int64_t i = 0; i < size; ++i)
    sum += exp(row[i] - largest);
  return largest + log(sum);
}

/// log softmax on rows.
static HostTensor logSoftmaxOnHost(const HostTensor &a) {
  HostTensor y = a;
  int64_t cols = rowSize(a.type);
  for (int64_t row = 0; row < numRows(a.type); ++row) {
    double lse = logSumExp(&a.floats[row * cols], cols);
    for (int64_t i = row * cols; i < (row + 1) * cols; ++i)
      y.floats[i] = a.floats[i] - lse;
  }
  return y;
}

LogicalResult SoftmaxOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor y = logSoftmaxOnHost(operands[0]);
  for (double &value : y.floats)
    value = exp(value);
  results.push_back(std::move(y));
  return success();
}

SmallVector<Value> SoftmaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  ExprScope scope{builder, getLoc()};
  Expr y = scope(getResult()), dy = scope(resultGradients[0]);
  return {y * (dy - rowSum(dy * y))};
}

SmallVector<Value> SoftmaxOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  RankedTensorType type = getType();
  Expr a = castTo(asRows(scope(getA())), computeType(type));
  Expr e = exp(a - reduceMax(a, {1}));
  return {asType(e / rowSum(e), type)};
}

LogicalResult LogSoftmaxOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(logSoftmaxOnHost(operands[0]));
  return success();
}

SmallVector<Value> LogSoftmaxOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  ExprScope scope{builder, getLoc()};
  Expr y = scope(getResult()), dy = scope(resultGradients[0]);
  return {dy - exp(y) * rowSum(dy)};
}

SmallVector<Value> LogSoftmaxOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  RankedTensorType type = getType();
  Expr a = castTo(asRows(scope(getA())), computeType(type));
  Expr shifted = a - reduceMax(a, {1});
  return {asType(shifted - log(rowSum(exp(shifted))), type)};
}

} // namespace llmc
