// Operators that give constants: stored ones, shapes, ranges.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// A constant from any of the attributes that Constant has had.
static LogicalResult importConstant(OnnxNode &node) {
  if (const onnx::AttributeProto *value = node.find("value")) {
    std::string reason;
    FailureOr<HostTensor> tensor = node.state.reader.attributeConstant(value->t(), reason);
    return succeeded(tensor) ? node.set(node.constant(*tensor)) : node.error("value: " + reason);
  }
  if (node.hasAttribute("value_float"))
    return node.set(node.scalar(node.attribute("value_float", 0.0), node.f32()));
  if (const onnx::AttributeProto *value = node.find("value_int"))
    return node.set(node.reshape(node.integers({value->i()}), {}));
  if (auto values = node.intsAttribute("value_ints"))
    return node.set(node.integers(*values));
  if (const onnx::AttributeProto *value = node.find("value_floats")) {
    HostTensor tensor = HostTensor::zeros(RankedTensorType::get({value->floats_size()}, node.f32()));
    tensor.floats.assign(value->floats().begin(), value->floats().end());
    return node.set(node.constant(tensor));
  }
  return node.error("holds a string or sparse tensor, which is not supported");
}

static LogicalResult importConstantOfShape(OnnxNode &node) {
  FailureOr<SmallVector<int64_t>> shape = node.knownInts(0);
  if (failed(shape))
    return failure();
  Value splat = node.scalar(0, node.f32());
  if (const onnx::AttributeProto *value = node.find("value")) {
    std::string reason;
    FailureOr<HostTensor> tensor = node.state.reader.attributeConstant(value->t(), reason);
    if (failed(tensor))
      return node.error("value: " + reason);
    splat = node.reshape(node.constant(*tensor), {});
  }
  return node.set(node.broadcastTo(splat, *shape));
}

static LogicalResult importShape(OnnxNode &node) {
  Value a = node.input(0);
  if (!a)
    return failure();
  int64_t rank = rankOf(a);
  auto border = [&](int64_t value) { return std::clamp<int64_t>(value < 0 ? value + rank : value, 0, rank); };
  int64_t start = border(node.attribute("start", int64_t(0))), end = border(node.attribute("end", rank));
  return node.set(node.integers(shapeOf(a).slice(start, std::max<int64_t>(end - start, 0))));
}

static LogicalResult importSize(OnnxNode &node) {
  Value a = node.input(0);
  return a ? node.set(node.reshape(node.integers({typeOf(a).getNumElements()}), {})) : failure();
}

/// start, start + delta, … before limit.
static LogicalResult importRange(OnnxNode &node) {
  FailureOr<HostTensor> start = node.known(0), limit = node.known(1), delta = node.known(2);
  if (failed(start) || failed(limit) || failed(delta))
    return failure();
  if (start->size() != 1 || limit->size() != 1 || delta->size() != 1 || delta->asDouble(0) == 0)
    return node.error("needs one start, limit and delta that is not 0");
  double count = std::ceil((limit->asDouble(0) - start->asDouble(0)) / delta->asDouble(0));
  if (!(count <= double(1 << 26)))
    return node.error("has too many elements");
  HostTensor result =
      HostTensor::zeros(RankedTensorType::get({std::max<int64_t>(int64_t(count), 0)}, start->type.getElementType()));
  for (int64_t i = 0; i < result.size(); ++i) {
    if (result.isFloat())
      result.floats[i] = start->floats[0] + double(i) * delta->asDouble(0);
    else
      result.integers[i] = WrappingInt(start->integers[0]) + WrappingInt(i) * WrappingInt(int64_t(delta->asDouble(0)));
  }
  return node.set(node.constant(result));
}

static constexpr OnnxOp kOps[] = {
    {"Constant", 1, kNewestOpset, importConstant}, {"ConstantOfShape", 9, kNewestOpset, importConstantOfShape},
    {"Shape", 1, kNewestOpset, importShape},       {"Size", 1, kNewestOpset, importSize},
    {"Range", 11, kNewestOpset, importRange},
};

ArrayRef<OnnxOp> onnxConstantOps() { return kOps; }

} // namespace llmc
