// Layer norm and RMS norm over the last axis, and their gradients. On the host as loops over a row; as small ops on
// (rows, C) with statistics in two passes (the mean, then the mean of squared deviations).
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

LogicalResult verifyNorm(Operation *op) {
  // The gradients take dy and x before the parameters.
  unsigned firstParameter = isa<LayerNormGradOp, RmsNormGradOp>(op) ? 2 : 1;
  auto x = cast<RankedTensorType>(op->getOperand(firstParameter - 1).getType());
  if (x.getRank() == 0)
    return op->emitOpError() << "x must have a last dimension, found " << x;
  // norm_c1
  for (auto [i, parameter] : llvm::enumerate(op->getOperands().drop_front(firstParameter))) {
    auto type = cast<RankedTensorType>(parameter.getType());
    if (type.getShape() != x.getShape().take_back())
      return op->emitOpError() << (i == 0 ? "scale" : "bias") << " must have shape (" << x.getShape().back()
                               << "), found " << type;
  }
  return success();
}

//===-- On the host

namespace {
/// x of one row normalised: n = (x - mean) rstd; the mean is 0 for RMS norm.
struct NormalizedRow {
  std::vector<double> n;
  double rstd;
};
} // namespace

static NormalizedRow normalize(const double *x, int64_t size, bool centered, double epsilon) {
  double mean = 0, variance = 0;
  for (int64_t i = 0; centered && i < size; ++i)
    mean += x[i] / double(size);
  for (int64_t i = 0; i < size; ++i)
    variance += (x[i] - mean) * (x[i] - mean) / double(size);
  NormalizedRow row{std::vector<double>(size), 1 / std::sqrt(variance + epsilon)};
  for (int64_t i = 0; i < size; ++i)
    row.n[i] = (x[i] - mean) * row.rstd;
  return row;
}

static HostTensor normOnHost(const HostTensor &x, const HostTensor &scale, const HostTensor *bias, bool centered,
                             double epsilon) {
  HostTensor y = HostTensor::zeros(x.type);
  int64_t cols = rowSize(x.type);
  for (int64_t r = 0; r < numRows(x.type); ++r) {
    NormalizedRow row = normalize(&x.floats[r * cols], cols, centered, epsilon);
    for (int64_t i = 0; i < cols; ++i)
      y.floats[r * cols + i] = row.n[i] * scale.floats[i] + (bias ? bias->floats[i] : 0);
  }
  return y;
}

/// dx, dScale and dBias.
static std::array<HostTensor, 3> normGradientOnHost(const HostTensor &dy, const HostTensor &x, const HostTensor &scale,
                                                    bool centered, double epsilon) {
  HostTensor dx = HostTensor::zeros(x.type), dScale = HostTensor::zeros(scale.type),
             dBias = HostTensor::zeros(scale.type);
  int64_t cols = rowSize(x.type);
  for (int64_t r = 0; r < numRows(x.type); ++r) {
    NormalizedRow row = normalize(&x.floats[r * cols], cols, centered, epsilon);
    double meanG = 0, meanGn = 0;
    for (int64_t i = 0; i < cols; ++i) {
      double d = dy.floats[r * cols + i], g = d * scale.floats[i];
      meanG += g / double(cols);
      meanGn += g * row.n[i] / double(cols);
      dScale.floats[i] += d * row.n[i];
      dBias.floats[i] += d;
    }
    for (int64_t i = 0; i < cols; ++i)
      dx.floats[r * cols + i] =
          row.rstd * (dy.floats[r * cols + i] * scale.floats[i] - (centered ? meanG : 0) - row.n[i] * meanGn);
  }
  return {std::move(dx), std::move(dScale), std::move(dBias)};
}

LogicalResult LayerNormOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(normOnHost(operands[0], operands[1], getBias() ? &operands[2] : nullptr, /*centered=*/true,
                               getEpsilon().convertToDouble()));
  return success();
}

LogicalResult RmsNormOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(normOnHost(operands[0], operands[1], nullptr, /*centered=*/false, getEpsilon().convertToDouble()));
  return success();
}

LogicalResult LayerNormGradOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  for (HostTensor &gradient :
       normGradientOnHost(operands[0], operands[1], operands[2], /*centered=*/true, getEpsilon().convertToDouble()))
    results.push_back(std::move(gradient));
  return success();
}

LogicalResult RmsNormGradOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  auto [dx, dScale, dBias] =
      normGradientOnHost(operands[0], operands[1], operands[2], /*centered=*/false, getEpsilon().convertToDouble());
  results.push_back(std::move(dx));
  results.push_back(std::move(dScale));
  return success();
}

//===-- Gradients

SmallVector<Value> LayerNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  auto gradient = builder.create<LayerNormGradOp>(getLoc(), resultGradients[0], getX(), getScale(), getEpsilonAttr());
  SmallVector<Value> gradients = {gradient.getDx(), gradient.getDScale()};
  if (getBias())
    gradients.push_back(gradient.getDBias());
  return gradients;
}

SmallVector<Value> RmsNormOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  auto gradient = builder.create<RmsNormGradOp>(getLoc(), resultGradients[0], getX(), getScale(), getEpsilonAttr());
  return {gradient.getDx(), gradient.getDScale()};
}

//===-- As small ops

/// A parameter (C) as (1, C) in the type of the math.
static Expr asColumns(Expr parameter, Type elementType) {
  return castTo(reshape(parameter, {1, parameter.shape()[0]}), elementType);
}

static Expr rowMean(Expr a) { return rowSum(a) / double(rowSize(a.type())); }

/// The deviations from the mean, (rows, C), and rstd, (rows, 1).
static std::pair<Expr, Expr> rowStatistics(Expr x, bool centered, double epsilon) {
  Expr deviation = centered ? x - rowMean(x) : x;
  return {deviation, rsqrt(rowMean(deviation * deviation) + epsilon)};
}

static Value decomposeNorm(Expr x, Expr scale, Expr bias, bool centered, double epsilon) {
  RankedTensorType type = x.type();
  FloatType compute = computeType(type);
  auto [deviation, rstd] = rowStatistics(castTo(asRows(x), compute), centered, epsilon);
  Expr y = deviation * rstd * asColumns(scale, compute);
  return asType(bias.value ? y + asColumns(bias, compute) : y, type);
}

/// dx, dScale and dBias.
static SmallVector<Value> decomposeNormGradient(Expr dy, Expr x, Expr scale, bool centered, double epsilon) {
  RankedTensorType type = x.type();
  FloatType compute = computeType(type);
  auto [deviation, rstd] = rowStatistics(castTo(asRows(x), compute), centered, epsilon);
  Expr n = deviation * rstd, d = castTo(asRows(dy), compute);
  Expr g = d * asColumns(scale, compute);
  Expr inner = centered ? g - rowMean(g) - n * rowMean(g * n) : g - n * rowMean(g * n);
  SmallVector<Value> gradients = {asType(rstd * inner, type), asType(reduceSum(d * n, {0}), scale.type())};
  if (centered)
    gradients.push_back(asType(reduceSum(d, {0}), scale.type()));
  return gradients;
}

SmallVector<Value> LayerNormOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  return {decomposeNorm(scope(getX()), scope(getScale()), scope(getBias()), /*centered=*/true,
                        getEpsilon().convertToDouble())};
}

SmallVector<Value> RmsNormOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  return {decomposeNorm(scope(getX()), scope(getScale()), scope(Value()), /*centered=*/false,
                        getEpsilon().convertToDouble())};
}

SmallVector<Value> LayerNormGradOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  return decomposeNormGradient(scope(getDy()), scope(getX()), scope(getScale()), /*centered=*/true,
                               getEpsilon().convertToDouble());
}

SmallVector<Value> RmsNormGradOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  return decomposeNormGradient(scope(getDy()), scope(getX()), scope(getScale()), /*centered=*/false,
                               getEpsilon().convertToDouble());
}

} // namespace llmc
