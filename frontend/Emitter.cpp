// Checked construction of llmc ops. Limits: no tensor of more than 2^38 elements, no constant of more than 2^26 (an
// 8192 x 8192 mask).
#include "frontend/Emitter.h"

using namespace mlir;

namespace llmc {

static constexpr int64_t kMostConstantElements = int64_t(1) << 26;
static constexpr double kMostConstantFlops = 1e9;

int64_t productOf(ArrayRef<int64_t> sizes) {
  int64_t product = 1;
  for (int64_t size : sizes)
    product *= size;
  return product;
}

std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text = "[";
  for (auto [d, size] : llvm::enumerate(shape))
    text += (d ? ", " : "") + std::to_string(size);
  return text + "]";
}

LogicalResult Emitter::error(const Twine &message) { return emitError(loc) << place << ": " << message; }

Value Emitter::fail(const Twine &message) {
  (void)error(message);
  return {};
}

RankedTensorType Emitter::type(ArrayRef<int64_t> shape, Type element) {
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0 || size > kMostElements || (size > 0 && count > kMostElements / size)) {
      (void)error("shape " + shapeText(shape) + " is negative or has more than 2^38 elements");
      return {};
    }
    count *= size;
  }
  return RankedTensorType::get(shape, element);
}

Value Emitter::constant(const HostTensor &tensor) {
  return builder.create<ConstantOp>(loc, tensor.type, tensor.toAttribute());
}

Value Emitter::scalar(double number, Type element) {
  HostTensor tensor = HostTensor::zeros(RankedTensorType::get({}, element));
  if (tensor.isFloat())
    tensor.floats[0] = number;
  else
    tensor.integers[0] = int64_t(number);
  return constant(tensor);
}

Value Emitter::integers(ArrayRef<int64_t> values) {
  HostTensor tensor = HostTensor::zeros(RankedTensorType::get({int64_t(values.size())}, i64()));
  tensor.integers.assign(values.begin(), values.end());
  return constant(tensor);
}

Value Emitter::finish(Operation *op) {
  auto resultType = typeOf(op->getResult(0));
  bool isKnown = op->getNumOperands() > 0 && llvm::all_of(op->getOperands(), isConstant);
  if (isKnown && resultType.getNumElements() > kMostConstantElements) {
    op->erase();
    return fail("a constant of shape " + shapeText(resultType.getShape()) +
                " is too large to be computed at compile time");
  }
  SmallVector<Value> results;
  if (succeeded(builder.tryFold(op, results)) && !results.empty()) {
    op->erase();
    return results.front();
  }
  auto evaluable = dyn_cast<EvaluableOpInterface>(op);
  // A product of constants that would take long is left to the kernels.
  if (!isKnown || !evaluable || mlir::cast<CostOpInterface>(op).getFlops() > kMostConstantFlops)
    return op->getResult(0);
  SmallVector<HostTensor> operands, values;
  for (Value operand : op->getOperands()) {
    FailureOr<HostTensor> value = knownValue(operand);
    if (failed(value))
      return op->getResult(0);
    operands.push_back(std::move(*value));
  }
  if (failed(evaluable.evaluate(operands, values)))
    return op->getResult(0);
  op->erase();
  return constant(values.front());
}

bool Emitter::agree(Value a, Value b) {
  if (!a || !b)
    return false;
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(shapeOf(a), shapeOf(b));
  if (failed(shape))
    (void)error("shapes " + shapeText(shapeOf(a)) + " and " + shapeText(shapeOf(b)) + " do not broadcast");
  else if (elementOf(a) != elementOf(b))
    (void)error("operands have different element types");
  else
    return bool(type(*shape, elementOf(a)));
  return false;
}

Value Emitter::select(Value condition, Value a, Value b) {
  if (!condition || !agree(a, b))
    return {};
  if (!elementOf(condition).isInteger(1))
    return fail("the condition is not boolean");
  FailureOr<SmallVector<int64_t>> values = broadcastShapes(shapeOf(a), shapeOf(b));
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(shapeOf(condition), *values);
  if (failed(shape))
    return fail("condition " + shapeText(shapeOf(condition)) + " does not broadcast with " + shapeText(*values));
  return type(*shape, elementOf(a)) ? finish(builder.create<SelectOp>(loc, condition, a, b)) : Value();
}

Value Emitter::cast(Value a, Type element) {
  if (!a || elementOf(a) == element)
    return a;
  return finish(builder.create<CastOp>(loc, RankedTensorType::get(shapeOf(a), element), a));
}

Value Emitter::reshape(Value a, ArrayRef<int64_t> shape) {
  if (!a || shapeOf(a) == shape)
    return a;
  RankedTensorType result = type(shape, elementOf(a));
  if (!result)
    return {};
  if (result.getNumElements() != typeOf(a).getNumElements())
    return fail("shape " + shapeText(shapeOf(a)) + " cannot become " + shapeText(shape));
  return finish(builder.create<ReshapeOp>(loc, result, a));
}

Value Emitter::transpose(Value a, ArrayRef<int64_t> permutation) {
  if (!a)
    return {};
  SmallVector<int64_t> sorted(permutation);
  llvm::sort(sorted);
  if (int64_t(permutation.size()) != rankOf(a) || !llvm::equal(sorted, llvm::seq<int64_t>(0, rankOf(a))))
    return fail(shapeText(permutation) + " is no permutation of " + Twine(rankOf(a)) + " dimensions");
  if (rankOf(a) > 6)
    return fail("at most six dimensions can be permuted, found " + Twine(rankOf(a)));
  return finish(builder.create<TransposeOp>(loc, a, builder.getDenseI64ArrayAttr(permutation)));
}

Value Emitter::swapDims(Value a, int64_t first, int64_t second) {
  if (!a || first == second)
    return a;
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, rankOf(a)));
  std::swap(permutation[first], permutation[second]);
  return transpose(a, permutation);
}

Value Emitter::broadcastTo(Value a, ArrayRef<int64_t> shape) {
  if (!a || shapeOf(a) == shape)
    return a;
  FailureOr<SmallVector<int64_t>> joined = broadcastShapes(shapeOf(a), shape);
  if (failed(joined) || ArrayRef<int64_t>(*joined) != shape)
    return fail("shape " + shapeText(shapeOf(a)) + " does not broadcast to " + shapeText(shape));
  RankedTensorType result = type(shape, elementOf(a));
  return result ? finish(builder.create<BroadcastToOp>(loc, result, a)) : Value();
}

Value Emitter::slice(Value a, int64_t axis, int64_t start, int64_t size, int64_t step) {
  if (!a || (start == 0 && step == 1 && size == shapeOf(a)[axis]))
    return a;
  int64_t last = start + (size - 1) * step, extent = shapeOf(a)[axis];
  if (size < 0 || (size > 0 && (start < 0 || start >= extent || last < 0 || last >= extent)))
    return fail("axis " + Twine(axis) + " of " + shapeText(shapeOf(a)) + " has no elements " + Twine(start) + " to " +
                Twine(last));
  SmallVector<int64_t> starts(rankOf(a), 0), sizes(shapeOf(a)), steps(rankOf(a), 1);
  starts[axis] = size > 0 ? start : 0;
  sizes[axis] = size;
  steps[axis] = step;
  return finish(builder.create<SliceOp>(loc, a, starts, sizes, steps));
}

Value Emitter::concat(ArrayRef<Value> parts, int64_t axis) {
  SmallVector<Value> present;
  SmallVector<int64_t> starts, shape;
  for (Value part : parts) {
    if (!part)
      return {};
    if (!present.empty() && (elementOf(part) != elementOf(present[0]) || rankOf(part) != int64_t(shape.size())))
      return fail("parts differ in element type or rank");
    if (present.empty())
      shape.assign(shapeOf(part).begin(), shapeOf(part).end());
    SmallVector<int64_t> start(shape.size(), 0);
    start[axis] = present.empty() ? 0 : shape[axis];
    for (size_t d = 0; d < shape.size(); ++d)
      if (int64_t(d) != axis && shapeOf(part)[d] != shape[d])
        return fail("parts " + shapeText(shapeOf(part)) + " and " + shapeText(shape) + " differ beside axis " +
                    Twine(axis));
    shape[axis] = start[axis] + shapeOf(part)[axis];
    starts.append(start);
    present.push_back(part);
  }
  if (present.size() == 1)
    return present.front();
  SmallVector<int64_t> steps(starts.size(), 1);
  RankedTensorType result = type(shape, elementOf(present.front()));
  return result ? finish(builder.create<PlaceOp>(loc, result, present, builder.getDenseI64ArrayAttr(starts),
                                                 builder.getDenseI64ArrayAttr(steps), builder.getF64FloatAttr(0)))
                : Value();
}

Value Emitter::pad(Value a, ArrayRef<int64_t> before, ArrayRef<int64_t> shape, double fill) {
  if (!a || shapeOf(a) == shape)
    return a;
  RankedTensorType result = type(shape, elementOf(a));
  SmallVector<int64_t> steps(rankOf(a), 1);
  return result ? finish(builder.create<PlaceOp>(loc, result, a, builder.getDenseI64ArrayAttr(before),
                                                 builder.getDenseI64ArrayAttr(steps), builder.getF64FloatAttr(fill)))
                : Value();
}

Value Emitter::embedding(Value table, Value ids) {
  if (!table || !ids)
    return {};
  if (rankOf(table) == 0 || isFloat(ids))
    return fail("a table needs a first dimension and its ids must be integers");
  SmallVector<int64_t> shape(shapeOf(ids));
  llvm::append_range(shape, shapeOf(table).drop_front());
  return type(shape, elementOf(table)) ? finish(builder.create<EmbeddingOp>(loc, table, cast(ids, i64()))) : Value();
}

Value Emitter::iota(ArrayRef<int64_t> shape, int64_t dim) {
  RankedTensorType result = type(shape, i64());
  return result ? builder.create<IotaOp>(loc, result, builder.getI64IntegerAttr(dim)).getResult() : Value();
}

Value Emitter::dropAxes(Value a, ArrayRef<int64_t> axes, bool keepDims) {
  if (!a || keepDims)
    return a;
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(shapeOf(a)))
    if (!llvm::is_contained(axes, int64_t(d)))
      shape.push_back(size);
  return reshape(a, shape);
}

Value Emitter::matmul(Value a, Value b, Value bias, bool transposeA, bool transposeB) {
  if (!a || !b)
    return {};
  int64_t rank = rankOf(a);
  if (!isFloat(a) || !isFloat(b))
    return fail("integers cannot be multiplied as matrices");
  if (rank < 2 || rank != rankOf(b) || shapeOf(a).drop_back(2) != shapeOf(b).drop_back(2) ||
      shapeOf(a)[transposeA ? rank - 2 : rank - 1] != shapeOf(b)[transposeB ? rank - 1 : rank - 2])
    return fail("matrices " + shapeText(shapeOf(a)) + (transposeA ? " (transposed)" : "") + " and " +
                shapeText(shapeOf(b)) + (transposeB ? " (transposed)" : "") + " cannot be multiplied");
  SmallVector<int64_t> shape(shapeOf(a));
  shape[rank - 2] = shapeOf(a)[transposeA ? rank - 1 : rank - 2];
  shape[rank - 1] = shapeOf(b)[transposeB ? rank - 2 : rank - 1];
  RankedTensorType result = type(shape, f32());
  return result ? finish(builder.create<MatMulOp>(loc, result, a, b, bias, /*init=*/Value(), transposeA, transposeB))
                : Value();
}

} // namespace llmc
