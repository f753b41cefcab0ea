// Ops that move elements: their folds, gradients, and lowering to strided copies.
#include "ir/Dialect.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace llmc {

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }
LogicalResult ConstantOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &results) {
  FailureOr<HostTensor> value = HostTensor::fromAttribute(getValue());
  if (failed(value))
    return failure();
  results.push_back(std::move(*value));
  return success();
}

FailureOr<HostTensor> knownValue(Value value) {
  ElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)))
    return HostTensor::fromAttribute(elements);
  auto get = value.getDefiningOp<GetOp>();
  if (!get)
    return failure();
  auto variable = SymbolTable::lookupNearestSymbolFrom<VariableOp>(get, get.getVariableAttr());
  if (!variable || !variable.getValueAttr())
    return failure();
  return HostTensor::fromAttribute(variable.getValueAttr());
}

/// A tensor of `type` whose element i is the operand's element indices[i].
static HostTensor gathered(const HostTensor &operand, RankedTensorType type, ArrayRef<int64_t> indices) {
  HostTensor result = HostTensor::zeros(type);
  for (int64_t i = 0; i < result.size(); ++i) {
    if (result.isFloat())
      result.floats[i] = operand.floats[indices[i]];
    else
      result.integers[i] = operand.integers[indices[i]];
  }
  return result;
}

/// For each element of a box of `shape` in order: offset + sum over d of index[d] * strides[d].
static std::vector<int64_t> stridedIndices(ArrayRef<int64_t> shape, int64_t offset, ArrayRef<int64_t> strides) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  std::vector<int64_t> indices(count);
  SmallVector<int64_t> dense = rowMajorStrides(shape);
  for (size_t i = 0; i < indices.size(); ++i) {
    int64_t at = offset;
    for (size_t d = 0; d < shape.size(); ++d)
      at += int64_t(i) / dense[d] % shape[d] * strides[d];
    indices[i] = at;
  }
  return indices;
}

/// Offset and strides of the elements starts + i * steps of a dense tensor.
static std::pair<int64_t, SmallVector<int64_t>> stridedPart(ArrayRef<int64_t> shape, ArrayRef<int64_t> starts,
                                                            ArrayRef<int64_t> steps) {
  SmallVector<int64_t> strides = rowMajorStrides(shape);
  int64_t offset = 0;
  for (size_t d = 0; d < shape.size(); ++d) {
    offset += starts[d] * strides[d];
    strides[d] *= steps[d];
  }
  return {offset, strides};
}

/// Fills a copy launch: a box of `shape` from strided source to strided destination. Neighbouring dimensions that are
/// one run are merged.
static void describeCopy(LaunchDescription &launch, Type element, ArrayRef<int64_t> shape, int64_t srcOffset,
                         ArrayRef<int64_t> srcStrides, int64_t dstOffset, ArrayRef<int64_t> dstStrides) {
  SmallVector<int64_t> sizes, src, dst;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == 1)
      continue;
    if (!sizes.empty() && src.back() == srcStrides[d] * shape[d] && dst.back() == dstStrides[d] * shape[d]) {
      sizes.back() *= shape[d];
      src.back() = srcStrides[d];
      dst.back() = dstStrides[d];
      continue;
    }
    sizes.push_back(shape[d]);
    src.push_back(srcStrides[d]);
    dst.push_back(dstStrides[d]);
  }
  assert(sizes.size() <= 6 && "the verifier bounds the dimensions of a copy");
  launch.kernel = "copy";
  launch.ints["bytes"] = std::max(1u, element.getIntOrFloatBitWidth() / 8);
  launch.ints["srcOffset"] = srcOffset;
  launch.ints["dstOffset"] = dstOffset;
  size_t missing = 6 - sizes.size();
  for (size_t d = 0; d < 6; ++d) {
    std::string at = std::to_string(d);
    launch.ints["size" + at] = d < missing ? 1 : sizes[d - missing];
    launch.ints["srcStride" + at] = d < missing ? 0 : src[d - missing];
    launch.ints["dstStride" + at] = d < missing ? 0 : dst[d - missing];
  }
}

//===-- reshape

LogicalResult ReshapeOp::verify() {
  if (getA().getType().getNumElements() != getType().getNumElements()) // reshape_c1
    return emitOpError("operand ") << getA().getType() << " and result " << getType()
                                   << " differ in their number of elements";
  if (getA().getType().getElementType() != getType().getElementType()) // reshape_c2
    return emitOpError("operand ") << getA().getType() << " and result " << getType()
                                   << " differ in their element type";
  return success();
}
OpFoldResult ReshapeOp::foldTrivial() {
  if (getA().getType() == getType())
    return getA();
  if (auto inner = getA().getDefiningOp<ReshapeOp>()) {
    if (inner.getA().getType() == getType())
      return inner.getA();
    getAMutable().assign(inner.getA());
    return getResult();
  }
  return {};
}
LogicalResult ReshapeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(operands[0]);
  results.back().type = getType();
  return success();
}
SmallVector<Value> ReshapeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  return {reshape(ExprScope{builder, getLoc()}(resultGradients[0]), getA().getType().getShape())};
}

//===-- transpose

LogicalResult TransposeOp::verify() {
  SmallVector<int64_t> sorted(getPermutation());
  llvm::sort(sorted);
  if (int64_t(sorted.size()) != getA().getType().getRank() ||
      !llvm::equal(sorted, llvm::seq<int64_t>(0, sorted.size()))) // transpose_c1
    return emitOpError("permutation is not one of the ")
           << getA().getType().getRank() << " dimensions of " << getA().getType();
  if (getA().getType().getRank() > 6) // transpose_c2
    return emitOpError("at most six dimensions can be permuted, found ") << getA().getType();
  return success();
}
LogicalResult TransposeOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getA().getType());
  if (int64_t(adaptor.getPermutation().size()) != type.getRank())
    return emitOptionalError(location, "permutation is not one of the ", type.getRank(), " dimensions of ", type);
  SmallVector<int64_t> shape;
  for (int64_t d : adaptor.getPermutation()) {
    if (d < 0 || d >= type.getRank())
      return emitOptionalError(location, "permutation is not one of the ", type.getRank(), " dimensions of ", type);
    shape.push_back(type.getDimSize(d));
  }
  types.push_back(RankedTensorType::get(shape, type.getElementType()));
  return success();
}
OpFoldResult TransposeOp::foldTrivial() {
  if (llvm::equal(getPermutation(), llvm::seq<int64_t>(0, getPermutation().size())))
    return getA();
  auto inner = getA().getDefiningOp<TransposeOp>();
  if (!inner)
    return {};
  SmallVector<int64_t> composed;
  for (int64_t d : getPermutation())
    composed.push_back(inner.getPermutation()[d]);
  if (llvm::equal(composed, llvm::seq<int64_t>(0, composed.size())))
    return inner.getA();
  return {};
}
/// Strides in the operand of each result dimension.
static SmallVector<int64_t> transposedStrides(TransposeOp op) {
  SmallVector<int64_t> strides = rowMajorStrides(op.getA().getType().getShape()), permuted;
  for (int64_t d : op.getPermutation())
    permuted.push_back(strides[d]);
  return permuted;
}
LogicalResult TransposeOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(
      gathered(operands[0], getType(), stridedIndices(getType().getShape(), 0, transposedStrides(*this))));
  return success();
}
SmallVector<Value> TransposeOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  SmallVector<int64_t> inverse(getPermutation().size());
  for (auto [i, d] : llvm::enumerate(getPermutation()))
    inverse[d] = i;
  return {transpose(ExprScope{builder, getLoc()}(resultGradients[0]), inverse)};
}
void TransposeOp::describeLaunch(LaunchDescription &launch) {
  launch.operands = {getA(), getResult()};
  ArrayRef<int64_t> shape = getType().getShape();
  describeCopy(launch, getType().getElementType(), shape, 0, transposedStrides(*this), 0, rowMajorStrides(shape));
}

//===-- slice

LogicalResult SliceOp::inferReturnTypes(MLIRContext *, std::optional<Location> location, Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  types.push_back(
      RankedTensorType::get(adaptor.getSizes(), cast<RankedTensorType>(adaptor.getA().getType()).getElementType()));
  return success();
}
LogicalResult SliceOp::verify() {
  RankedTensorType type = getA().getType();
  size_t rank = type.getRank();
  if (getStarts().size() != rank || getSizes().size() != rank || getSteps().size() != rank) // slice_c1
    return emitOpError("needs one start, size and step for each of the ") << rank << " dimensions of " << type;
  for (size_t d = 0; d < rank; ++d) {
    int64_t first = getStarts()[d], last = first + (getSizes()[d] - 1) * getSteps()[d], size = type.getDimSize(d);
    if (getSteps()[d] == 0 ||
        (getSizes()[d] > 0 && (first < 0 || first >= size || last < 0 || last >= size))) // slice_c2
      return emitOpError("dimension ") << d << " of " << type << " has no elements " << first << " to " << last
                                       << " in steps of " << getSteps()[d];
  }
  return success();
}
OpFoldResult SliceOp::foldTrivial() {
  if (getA().getType() == getType() && llvm::all_of(getSteps(), [](int64_t step) { return step == 1; }))
    return getA();
  return {};
}
LogicalResult SliceOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  auto [offset, strides] = stridedPart(getA().getType().getShape(), getStarts(), getSteps());
  results.push_back(gathered(operands[0], getType(), stridedIndices(getType().getShape(), offset, strides)));
  return success();
}
SmallVector<Value> SliceOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  return {builder.create<PlaceOp>(getLoc(), getA().getType(), resultGradients[0], getStartsAttr(), getStepsAttr(),
                                  builder.getF64FloatAttr(0))};
}
void SliceOp::describeLaunch(LaunchDescription &launch) {
  launch.operands = {getA(), getResult()};
  auto [offset, strides] = stridedPart(getA().getType().getShape(), getStarts(), getSteps());
  ArrayRef<int64_t> shape = getType().getShape();
  describeCopy(launch, getType().getElementType(), shape, offset, strides, 0, rowMajorStrides(shape));
}
// A view when the elements are one run of memory that starts where buffers may start (64 bytes).
bool SliceOp::isView() {
  bool whole = true; // all dimensions after d are taken whole
  for (int64_t d = getType().getRank() - 1; d >= 0; --d) {
    if (getSizes()[d] != 1 && (getSteps()[d] != 1 || !whole))
      return false;
    whole &= getSizes()[d] == getA().getType().getDimSize(d);
    if (!whole && d > 0 && llvm::any_of(getSizes().take_front(d), [](int64_t size) { return size != 1; }))
      return false;
  }
  return getViewOffsetBytes() % 64 == 0;
}
int64_t SliceOp::getViewOffsetBytes() {
  return stridedPart(getA().getType().getShape(), getStarts(), getSteps()).first *
         std::max(1u, getType().getElementTypeBitWidth() / 8);
}

//===-- place, empty, place_into

static LogicalResult verifyInside(Operation *op, RankedTensorType part, RankedTensorType whole,
                                  ArrayRef<int64_t> starts, ArrayRef<int64_t> steps) {
  for (int64_t d = 0; d < whole.getRank(); ++d) {
    int64_t first = starts[d], last = first + (part.getDimSize(d) - 1) * steps[d], size = whole.getDimSize(d);
    if (part.getDimSize(d) > 0 && (steps[d] == 0 || std::min(first, last) < 0 || std::max(first, last) >= size))
      return op->emitOpError("part ") << part << " reaches from " << first << " to " << last << " along dimension " << d
                                      << " of " << whole;
  }
  return success();
}
LogicalResult PlaceOp::verify() {
  size_t rank = getType().getRank();
  if (getStarts().size() != rank * getParts().size() || getSteps().size() != rank * getParts().size()) // place_c1
    return emitOpError("needs one start and step per operand and dimension, ")
           << rank * getParts().size() << ", found " << getStarts().size() << " and " << getSteps().size();
  for (auto [k, part] : llvm::enumerate(getParts())) {
    auto type = cast<RankedTensorType>(part.getType());
    if (type.getRank() != int64_t(rank) || type.getElementType() != getType().getElementType()) // place_c2
      return emitOpError("operand ") << type << " is no part of " << getType();
    if (failed(verifyInside(*this, type, getType(), getStarts().slice(k * rank, rank),
                            getSteps().slice(k * rank, rank)))) // place_c2
      return failure();
  }
  return success();
}
bool PlaceOp::coversResult() {
  int64_t covered = 0;
  for (Value part : getParts())
    covered += cast<RankedTensorType>(part.getType()).getNumElements();
  return covered == getType().getNumElements();
}
OpFoldResult PlaceOp::foldTrivial() {
  if (getParts().size() == 1 && getParts()[0].getType() == getType() &&
      llvm::all_of(getSteps(), [](int64_t step) { return step == 1; }))
    return getParts()[0];
  return {};
}
static void placePart(HostTensor &result, const HostTensor &part, ArrayRef<int64_t> starts, ArrayRef<int64_t> steps) {
  auto [offset, strides] = stridedPart(result.type.getShape(), starts, steps);
  for (auto [i, at] : llvm::enumerate(stridedIndices(part.type.getShape(), offset, strides))) {
    if (result.isFloat())
      result.floats[at] = part.floats[i];
    else
      result.integers[at] = part.integers[i];
  }
}
LogicalResult PlaceOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor result = HostTensor::zeros(getType());
  std::ranges::fill(result.floats, getFill().convertToDouble());
  std::ranges::fill(result.integers, int64_t(getFill().convertToDouble()));
  size_t rank = getType().getRank();
  for (auto [k, part] : llvm::enumerate(operands))
    placePart(result, part, getStarts().slice(k * rank, rank), getSteps().slice(k * rank, rank));
  results.push_back(std::move(result));
  return success();
}
SmallVector<Value> PlaceOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  SmallVector<Value> gradients;
  size_t rank = getType().getRank();
  for (auto [k, part] : llvm::enumerate(getParts()))
    gradients.push_back(builder.create<SliceOp>(getLoc(), resultGradients[0], getStarts().slice(k * rank, rank),
                                                cast<RankedTensorType>(part.getType()).getShape(),
                                                getSteps().slice(k * rank, rank)));
  return gradients;
}
SmallVector<Value> PlaceOp::decompose(OpBuilder &builder) {
  Value result;
  if (coversResult()) {
    result = builder.create<EmptyOp>(getLoc(), getType());
  } else {
    HostTensor fill = HostTensor::zeros(RankedTensorType::get({}, getType().getElementType()));
    (fill.isFloat() ? fill.floats.assign(1, getFill().convertToDouble())
                    : fill.integers.assign(1, int64_t(getFill().convertToDouble())));
    Value scalar = builder.create<ConstantOp>(getLoc(), fill.type, fill.toAttribute());
    result = builder.create<BroadcastToOp>(getLoc(), getType(), scalar);
  }
  size_t rank = getType().getRank();
  for (auto [k, part] : llvm::enumerate(getParts()))
    result = builder.create<PlaceIntoOp>(getLoc(), part, result, getStarts().slice(k * rank, rank),
                                         getSteps().slice(k * rank, rank));
  return {result};
}

LogicalResult PlaceIntoOp::verify() {
  auto part = getPart().getType();
  if (part.getRank() != getType().getRank() || int64_t(getStarts().size()) != part.getRank() ||
      int64_t(getSteps().size()) != part.getRank())
    return emitOpError("needs one start and step for each of the ")
           << getType().getRank() << " dimensions of " << getType();
  return verifyInside(*this, part, getType(), getStarts(), getSteps()); // place_into_c1
}
LogicalResult PlaceIntoOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  results.push_back(operands[1]);
  placePart(results.back(), operands[0], getStarts(), getSteps());
  return success();
}
void PlaceIntoOp::describeLaunch(LaunchDescription &launch) {
  launch.operands = {getPart(), getResult()};
  ArrayRef<int64_t> shape = getPart().getType().getShape();
  auto [offset, strides] = stridedPart(getType().getShape(), getStarts(), getSteps());
  describeCopy(launch, getType().getElementType(), shape, 0, rowMajorStrides(shape), offset, strides);
}
int PlaceIntoOp::getTiedOperand(unsigned) { return 1; }

} // namespace llmc
