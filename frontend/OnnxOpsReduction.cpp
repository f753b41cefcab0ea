// Reductions over axes, softmax, and norms over the last axes.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// The axes of a reduction; nothing when the operator does nothing. Given as an input from opset `since` on.
static FailureOr<std::optional<SmallVector<int64_t>>> reducedAxes(OnnxNode &node, int64_t rank, int64_t since) {
  auto given = node.intsInputOrAttribute(1, "axes", since);
  if (failed(given))
    return failure();
  if (!*given || (*given)->empty()) {
    if (node.opset >= since && node.attribute("noop_with_empty_axes", int64_t(0)))
      return std::optional<SmallVector<int64_t>>();
    return std::optional(llvm::to_vector(llvm::seq<int64_t>(0, rank)));
  }
  FailureOr<SmallVector<int64_t>> axes = node.axes(**given, rank);
  if (failed(axes))
    return failure();
  return std::optional(*axes);
}

template <typename Op, int64_t axesAreInputSince> static LogicalResult importReduce(OnnxNode &node) {
  Value a = node.input(0);
  if (!a)
    return failure();
  auto axes = reducedAxes(node, rankOf(a), axesAreInputSince);
  if (failed(axes))
    return failure();
  if (!*axes)
    return node.set(a);
  if (typeOf(a).getNumElements() == 0)
    return node.error("reduces an empty tensor");
  return node.set(node.reduce<Op>(a, **axes, node.attribute("keepdims", int64_t(1)) != 0));
}

static LogicalResult importReduceMin(OnnxNode &node) {
  Value a = node.input(0);
  if (!a)
    return failure();
  auto axes = reducedAxes(node, rankOf(a), 18);
  if (failed(axes) || !*axes)
    return failed(axes) ? failure() : node.set(a);
  if (typeOf(a).getNumElements() == 0)
    return node.error("reduces an empty tensor");
  bool keepDims = node.attribute("keepdims", int64_t(1)) != 0;
  if (elementOf(a).isInteger(1))
    return node.set(node.unary<NotOp>(node.reduce<ReduceMaxOp>(node.unary<NotOp>(a), **axes, keepDims)));
  return node.set(node.unary<NegOp>(node.reduce<ReduceMaxOp>(node.unary<NegOp>(a), **axes, keepDims)));
}

/// The product of integers known at compile time: the number of elements of a shape.
static LogicalResult importReduceProd(OnnxNode &node) {
  FailureOr<SmallVector<int64_t>> values = node.knownInts(0);
  if (failed(values))
    return failure();
  Value a = node.input(0);
  auto axes = reducedAxes(node, rankOf(a), 18);
  if (failed(axes) || !*axes)
    return failed(axes) ? failure() : node.set(a);
  if (int64_t((*axes)->size()) != rankOf(a))
    return node.error("is supported over all axes only");
  WrappingInt product = 1;
  for (int64_t value : *values)
    product = product * WrappingInt(value);
  SmallVector<int64_t> shape(node.attribute("keepdims", int64_t(1)) ? rankOf(a) : 0, 1);
  return node.set(node.reshape(node.cast(node.integers({int64_t(product)}), elementOf(a)), shape));
}

template <typename Op> static LogicalResult importSoftmax(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<int64_t> axis = node.axisAttribute(a, -1);
  if (failed(axis))
    return failure();
  if (!isFloat(a))
    return node.error("expects a float tensor");
  return node.set(node.alongAxis<Op>(a, *axis));
}

/// Before opset 13: over all dimensions from the axis on, taken together.
template <typename Op> static LogicalResult importFlatSoftmax(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<int64_t> axis = node.axisAttribute(a, 1);
  if (failed(axis))
    return failure();
  if (!isFloat(a))
    return node.error("expects a float tensor");
  int64_t rows = productOf(shapeOf(a).take_front(*axis)), columns = productOf(shapeOf(a).drop_front(*axis));
  return node.set(node.reshape(node.unary<Op>(node.reshape(a, {rows, columns})), shapeOf(a)));
}

/// Where a norm works: over the dimensions of x from its axis on, taken as one.
struct NormRows {
  Value x;
  SmallVector<int64_t> normalized; ///< the sizes of those dimensions
};
static FailureOr<NormRows> normRows(OnnxNode &node) {
  Value x = node.input(0);
  FailureOr<int64_t> axis = node.axisAttribute(x, -1);
  if (failed(axis))
    return failure();
  if (!isFloat(x))
    return node.error("expects a float tensor");
  SmallVector<int64_t> shape(shapeOf(x).take_front(*axis)), normalized(shapeOf(x).drop_front(*axis));
  shape.push_back(productOf(normalized));
  return NormRows{node.reshape(x, shape), normalized};
}
/// A norm's scale or bias as (C).
static Value rowVector(OnnxNode &node, int input, const NormRows &rows) {
  Value vector = node.input(input);
  return node.reshape(node.broadcastTo(vector, rows.normalized), {productOf(rows.normalized)});
}

static LogicalResult importLayerNorm(OnnxNode &node) {
  FailureOr<NormRows> rows = normRows(node);
  if (failed(rows))
    return failure();
  Value scale = rowVector(node, 1, *rows), bias = node.has(2) ? rowVector(node, 2, *rows) : Value();
  if (!rows->x || !scale || (node.has(2) && !bias))
    return failure();
  node.refuse(1, "is a statistic of a LayerNormalization, which is not stored");
  APFloat epsilon(node.attribute("epsilon", double(1e-5f)));
  Value y = node.finish(node.builder.create<LayerNormOp>(node.loc, rows->x.getType(), rows->x, scale, bias, epsilon));
  return node.set(node.reshape(y, shapeOf(node.input(0))));
}

static LogicalResult importRmsNorm(OnnxNode &node) {
  FailureOr<NormRows> rows = normRows(node);
  if (failed(rows))
    return failure();
  Value scale = rowVector(node, 1, *rows);
  if (!rows->x || !scale)
    return failure();
  APFloat epsilon(node.attribute("epsilon", double(1e-5f)));
  Value y = node.finish(node.builder.create<RmsNormOp>(node.loc, rows->x.getType(), rows->x, scale, epsilon));
  return node.set(node.reshape(y, shapeOf(node.input(0))));
}

static constexpr OnnxOp kOps[] = {
    {"ReduceSum", 1, kNewestOpset, importReduce<ReduceSumOp, 13>},
    {"ReduceMean", 1, kNewestOpset, importReduce<ReduceMeanOp, 18>},
    {"ReduceMax", 1, kNewestOpset, importReduce<ReduceMaxOp, 18>},
    {"ReduceMin", 1, kNewestOpset, importReduceMin},
    {"ReduceProd", 1, kNewestOpset, importReduceProd},
    {"Softmax", 1, 12, importFlatSoftmax<SoftmaxOp>},
    {"Softmax", 13, kNewestOpset, importSoftmax<SoftmaxOp>},
    {"LogSoftmax", 1, 12, importFlatSoftmax<LogSoftmaxOp>},
    {"LogSoftmax", 13, kNewestOpset, importSoftmax<LogSoftmaxOp>},
    {"LayerNormalization", 17, kNewestOpset, importLayerNorm},
    {"RMSNormalization", 23, kNewestOpset, importRmsNorm},
};

ArrayRef<OnnxOp> onnxReductionOps() { return kOps; }

} // namespace llmc
