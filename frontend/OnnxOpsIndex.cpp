// Operators that pick elements by index. What exporters index with numbers known at compile time becomes slices; ids of
// a table stay lookups.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// Indices made non-negative, in a dimension of `size`; fails when one lies outside.
static LogicalResult normalize(OnnxNode &node, HostTensor &indices, int64_t size) {
  if (indices.isFloat())
    return node.error("indices must be integers");
  for (int64_t &index : indices.integers) {
    if (index < -size || index >= size)
      return node.error("index " + Twine(index) + " lies outside a dimension of " + Twine(size));
    index = index < 0 ? index + size : index;
  }
  return success();
}

/// The step of evenly spaced indices; nothing when they are not.
static std::optional<int64_t> evenStep(const HostTensor &indices) {
  if (indices.size() == 1)
    return 1;
  if (indices.size() == 0 || indices.integers[0] == indices.integers[1])
    return std::nullopt;
  int64_t step = indices.integers[1] - indices.integers[0];
  for (int64_t i = 1; i < indices.size(); ++i)
    if (indices.integers[i] - indices.integers[i - 1] != step)
      return std::nullopt;
  return step;
}

/// Picks rows along an axis by ids of any shape, which takes the axis's place.
static Value gatherByIds(OnnxNode &node, Value a, Value ids, int64_t axis) {
  if (!ids)
    return {};
  if (!isFloat(a) && !(isConstant(a) && isConstant(ids)))
    return node.fail("looks up integers by ids that are not known when the model is compiled");
  // (axis, others…) picked to (ids…, others…), then the ids' dimensions moved back to the axis's place.
  SmallVector<int64_t> toFront{axis}, back;
  for (int64_t d = 0; d < rankOf(a); ++d)
    if (d != axis)
      toFront.push_back(d);
  int64_t idsRank = rankOf(ids), rank = rankOf(a) - 1 + idsRank;
  for (int64_t d = 0; d < axis; ++d)
    back.push_back(idsRank + d);
  for (int64_t d = 0; d < idsRank; ++d)
    back.push_back(d);
  for (int64_t d = idsRank + axis; d < rank; ++d)
    back.push_back(d);
  if (axis == 0)
    return node.embedding(a, ids);
  return node.transpose(node.embedding(node.transpose(a, toFront), ids), back);
}

static LogicalResult importGather(OnnxNode &node) {
  Value a = node.input(0), ids = node.input(1);
  FailureOr<int64_t> axis = node.axisAttribute(a, 0);
  if (failed(axis) || !ids)
    return failure();
  if (!isConstant(ids))
    return node.set(gatherByIds(node, a, ids, *axis));
  FailureOr<HostTensor> indices = node.known(1);
  if (failed(indices) || failed(normalize(node, *indices, shapeOf(a)[*axis])))
    return failure();
  std::optional<int64_t> step = evenStep(*indices);
  if (!step)
    return node.set(gatherByIds(node, a, node.constant(*indices), *axis));
  SmallVector<int64_t> shape(shapeOf(a).take_front(*axis));
  llvm::append_range(shape, indices->type.getShape());
  llvm::append_range(shape, shapeOf(a).drop_front(*axis + 1));
  return node.set(node.reshape(node.slice(a, *axis, indices->integers[0], indices->size(), *step), shape));
}

/// Elements of a constant in the order of `places`.
static Value picked(OnnxNode &node, const HostTensor &data, RankedTensorType type, ArrayRef<int64_t> places) {
  HostTensor result = HostTensor::zeros(type);
  for (auto [i, place] : llvm::enumerate(places)) {
    if (data.isFloat())
      result.floats[i] = data.floats[place];
    else
      result.integers[i] = data.integers[place];
  }
  return node.constant(result);
}

/// data (b…, d1…dk, rest…), indices (b…, i…, k): result (b…, i…, rest…). On constants: masks of exporters with dynamic
/// shapes.
static LogicalResult importGatherNd(OnnxNode &node) {
  FailureOr<HostTensor> data = node.known(0), indices = node.known(1);
  int64_t batchDims = node.attribute("batch_dims", int64_t(0));
  if (failed(data) || failed(indices))
    return failure();
  ArrayRef<int64_t> dataShape = data->type.getShape(), indexShape = indices->type.getShape();
  int64_t depth = indexShape.empty() ? 0 : indexShape.back();
  if (indices->isFloat() || indexShape.empty() || batchDims < 0 || batchDims >= int64_t(indexShape.size()) ||
      depth < 1 || depth > int64_t(dataShape.size()) - batchDims ||
      dataShape.take_front(batchDims) != indexShape.take_front(batchDims))
    return node.error("data " + shapeText(dataShape) + " and indices " + shapeText(indexShape) + " do not fit");
  ArrayRef<int64_t> indexed = dataShape.slice(batchDims, depth), rest = dataShape.drop_front(batchDims + depth);
  SmallVector<int64_t> shape(indexShape.drop_back()), strides = rowMajorStrides(indexed);
  llvm::append_range(shape, rest);
  RankedTensorType type = node.type(shape, data->type.getElementType());
  if (!type)
    return failure();
  int64_t restSize = productOf(rest), numTuples = productOf(indexShape.drop_back());
  int64_t perBatch = std::max<int64_t>(1, productOf(indexShape.drop_front(batchDims).drop_back()));
  std::vector<int64_t> places;
  for (int64_t tuple = 0; tuple < numTuples; ++tuple) {
    int64_t place = tuple / perBatch * productOf(indexed);
    for (int64_t k = 0; k < depth; ++k) {
      int64_t index = indices->integers[tuple * depth + k];
      if (index < -indexed[k] || index >= indexed[k])
        return node.error("index " + Twine(index) + " lies outside a dimension of " + Twine(indexed[k]));
      place += (index < 0 ? index + indexed[k] : index) * strides[k];
    }
    for (int64_t i = 0; i < restSize; ++i)
      places.push_back(place * restSize + i);
  }
  return node.set(picked(node, *data, type, places));
}

/// The upper or lower triangle of the last two dimensions, zero elsewhere: element (i, j) stays when j - i >= k, or <=
/// k.
static LogicalResult importTrilu(OnnxNode &node) {
  Value a = node.input(0);
  int64_t k = 0;
  if (node.has(1)) {
    FailureOr<int64_t> given = node.knownInt(1);
    if (failed(given))
      return failure();
    k = *given;
  }
  if (!a || rankOf(a) < 2)
    return a ? node.error("needs two dimensions") : failure();
  ArrayRef<int64_t> shape = shapeOf(a).take_back(2);
  Value row = node.iota({shape[0], 1}, 0), column = node.iota({1, shape[1]}, 1);
  if (isConstant(a)) {
    row = node.finish(row.getDefiningOp());
    column = node.finish(column.getDefiningOp());
  }
  Value diagonal = node.binary<AddOp>(row, node.integers({std::clamp(k, -shape[0], shape[1])}));
  bool upper = node.attribute("upper", int64_t(1)) != 0;
  Value keeps = upper ? node.binary<LessEqualOp>(diagonal, column) : node.binary<LessEqualOp>(column, diagonal);
  return node.set(node.select(keeps, a, node.scalar(0, elementOf(a))));
}

static LogicalResult importCumSum(OnnxNode &node) {
  FailureOr<HostTensor> data = node.known(0);
  FailureOr<int64_t> given = node.knownInt(1);
  if (failed(data) || failed(given))
    return failure();
  FailureOr<int64_t> axis = node.axis(*given, data->type.getRank());
  if (failed(axis))
    return failure();
  ArrayRef<int64_t> shape = data->type.getShape();
  bool exclusive = node.attribute("exclusive", int64_t(0)) != 0, reverse = node.attribute("reverse", int64_t(0)) != 0;
  int64_t size = shape[*axis], inner = productOf(shape.drop_front(*axis + 1)),
          outer = productOf(shape.take_front(*axis));
  HostTensor result = HostTensor::zeros(data->type);
  auto sum = [&](const auto &from, auto &to) {
    for (int64_t line = 0; line < outer * inner; ++line) {
      std::decay_t<decltype(to[0])> total = 0;
      for (int64_t i = 0; i < size; ++i) {
        int64_t at = (line / inner * size + (reverse ? size - 1 - i : i)) * inner + line % inner;
        auto next = std::is_same_v<decltype(total), double>
                        ? decltype(total)(total + from[at])
                        : decltype(total)(WrappingInt(int64_t(total)) + WrappingInt(int64_t(from[at])));
        to[at] = exclusive ? total : next;
        total = next;
      }
    }
  };
  if (data->isFloat())
    sum(data->floats, result.floats);
  else
    sum(data->integers, result.integers);
  return node.set(node.constant(result));
}

/// The indices of elements that are not zero, one row for each dimension.
static LogicalResult importNonZero(OnnxNode &node) {
  FailureOr<HostTensor> data = node.known(0);
  if (failed(data))
    return failure();
  int64_t rank = data->type.getRank();
  std::vector<int64_t> places;
  for (int64_t i = 0; i < data->size(); ++i)
    if (data->asDouble(i) != 0)
      places.push_back(i);
  HostTensor result = HostTensor::zeros(RankedTensorType::get({rank, int64_t(places.size())}, node.i64()));
  SmallVector<int64_t> strides = rowMajorStrides(data->type.getShape());
  for (int64_t d = 0; d < rank; ++d)
    for (auto [i, place] : llvm::enumerate(places))
      result.integers[d * int64_t(places.size()) + int64_t(i)] = place / strides[d] % data->type.getDimSize(d);
  return node.set(node.constant(result));
}

static LogicalResult refuseArgMax(OnnxNode &node) { return node.error("has no gradient and is not supported"); }

static constexpr OnnxOp kOps[] = {
    {"Gather", 1, kNewestOpset, importGather},   {"GatherND", 11, kNewestOpset, importGatherNd},
    {"Trilu", 14, kNewestOpset, importTrilu},    {"CumSum", 11, kNewestOpset, importCumSum},
    {"NonZero", 9, kNewestOpset, importNonZero}, {"ArgMax", 1, kNewestOpset, refuseArgMax},
};

ArrayRef<OnnxOp> onnxIndexOps() { return kOps; }

} // namespace llmc
