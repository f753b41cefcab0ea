// Folding and evaluation on the host, for all ops alike.
#include "ir/Dialect.h"

using namespace mlir;

namespace llmc {

LogicalResult evaluateElementwise(Operation *op, ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  auto lane = cast<LaneOpInterface>(op);
  HostTensor result = HostTensor::zeros(cast<RankedTensorType>(op->getResult(0).getType()));
  bool isFloat = result.isFloat() || llvm::any_of(operands, [](const HostTensor &t) { return t.isFloat(); });
  SmallVector<std::vector<int64_t>> indices;
  for (const HostTensor &operand : operands)
    indices.push_back(broadcastIndices(result.type.getShape(), operand.type.getShape()));
  SmallVector<double> floats(operands.size());
  SmallVector<int64_t> integers(operands.size());
  for (int64_t i = 0, n = result.size(); i < n; ++i) {
    for (auto [k, operand] : llvm::enumerate(operands)) {
      if (isFloat)
        floats[k] = operand.asDouble(indices[k][i]);
      else
        integers[k] = operand.integers[indices[k][i]];
    }
    if (result.isFloat())
      result.floats[i] = lane.evaluateFloat(floats);
    else
      result.integers[i] = isFloat ? int64_t(lane.evaluateFloat(floats)) : lane.evaluateInteger(integers);
  }
  results.push_back(std::move(result));
  return success();
}

OpFoldResult foldByEvaluation(Operation *op, ArrayRef<Attribute> operands) {
  SmallVector<HostTensor> values, results;
  for (Attribute operand : operands) {
    auto elements = dyn_cast_if_present<ElementsAttr>(operand);
    if (!elements)
      return {};
    FailureOr<HostTensor> value = HostTensor::fromAttribute(elements);
    if (failed(value))
      return {};
    values.push_back(std::move(*value));
  }
  if (failed(cast<EvaluableOpInterface>(op).evaluate(values, results)))
    return {};
  return Attribute(results.front().toAttribute());
}

LogicalResult inferBroadcast(std::optional<Location> location, ValueRange operands, bool isPredicate,
                             SmallVectorImpl<Type> &types) {
  SmallVector<int64_t> shape;
  for (Value operand : operands) {
    FailureOr<SmallVector<int64_t>> joined =
        broadcastShapes(shape, cast<RankedTensorType>(operand.getType()).getShape());
    if (failed(joined))
      return emitOptionalError(location, "operand shapes do not broadcast: ", operands.front().getType(), " and ",
                               operand.getType());
    shape = std::move(*joined);
  }
  Type element = getElementTypeOrSelf(operands.front().getType());
  types.push_back(RankedTensorType::get(shape, isPredicate ? IntegerType::get(element.getContext(), 1) : element));
  return success();
}

LogicalResult inferSelect(std::optional<Location> location, ValueRange operands, SmallVectorImpl<Type> &types) {
  SmallVector<Type> all;
  if (failed(inferBroadcast(location, operands, /*isPredicate=*/false, all)))
    return failure();
  types.push_back(RankedTensorType::get(cast<RankedTensorType>(all.front()).getShape(),
                                        getElementTypeOrSelf(operands[1].getType())));
  return success();
}

} // namespace llmc
