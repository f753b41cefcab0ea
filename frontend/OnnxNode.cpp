// What handlers ask a node: inputs, attributes, values known at compile time.
#include "frontend/OnnxError.h"
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

static std::string placeOf(const GraphState &state, const onnx::NodeProto &node) {
  std::string place = state.file.path + ": node ";
  if (!node.name().empty())
    place += inQuotes(node.name()) + " ";
  place += "(" + node.op_type() + ")";
  if (node.name().empty() && node.output_size() > 0)
    place += " of output " + inQuotes(node.output(0));
  return place;
}

OnnxNode::OnnxNode(GraphState &state, const onnx::NodeProto &proto, Location loc, int64_t opset)
    : Emitter(state.builder, loc, placeOf(state, proto)), state(state), proto(proto), opset(opset) {}

Value OnnxNode::input(int i) {
  if (!has(i))
    return fail("input " + Twine(i) + " is missing");
  auto found = state.values.find(proto.input(i));
  if (found != state.values.end())
    return found->second;
  auto reason = state.notImported.find(proto.input(i));
  return fail("input " + inQuotes(proto.input(i)) +
              (reason != state.notImported.end() ? " " + reason->second
                                                 : std::string(" is no tensor that an earlier node gives")));
}

FailureOr<SmallVector<Value>> OnnxNode::inputs() {
  SmallVector<Value> values;
  for (int i = 0; i < numInputs(); ++i)
    values.push_back(input(i));
  if (llvm::is_contained(values, Value()))
    return failure();
  if (values.empty())
    return error("has no inputs");
  return values;
}

const onnx::AttributeProto *OnnxNode::find(StringRef name) const {
  for (const onnx::AttributeProto &attribute : proto.attribute())
    if (attribute.name() == name)
      return &attribute;
  return nullptr;
}

int64_t OnnxNode::attribute(StringRef name, int64_t otherwise) const {
  const onnx::AttributeProto *attribute = find(name);
  return attribute ? attribute->i() : otherwise;
}
double OnnxNode::attribute(StringRef name, double otherwise) const {
  const onnx::AttributeProto *attribute = find(name);
  return attribute ? double(attribute->f()) : otherwise;
}
std::string OnnxNode::attribute(StringRef name, const char *otherwise) const {
  const onnx::AttributeProto *attribute = find(name);
  return attribute ? attribute->s() : otherwise;
}
std::optional<SmallVector<int64_t>> OnnxNode::intsAttribute(StringRef name) const {
  const onnx::AttributeProto *attribute = find(name);
  if (!attribute)
    return std::nullopt;
  return SmallVector<int64_t>(attribute->ints().begin(), attribute->ints().end());
}

FailureOr<HostTensor> OnnxNode::known(int i) {
  Value value = input(i);
  if (!value)
    return failure();
  ElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)))
    return error("input " + inQuotes(proto.input(i)) + " must be known when the model is compiled");
  return HostTensor::fromAttribute(elements);
}

FailureOr<SmallVector<int64_t>> OnnxNode::knownInts(int i) {
  FailureOr<HostTensor> tensor = known(i);
  if (failed(tensor))
    return failure();
  if (tensor->isFloat())
    return error("input " + inQuotes(proto.input(i)) + " must hold integers");
  return SmallVector<int64_t>(tensor->integers.begin(), tensor->integers.end());
}

FailureOr<int64_t> OnnxNode::knownInt(int i) {
  FailureOr<SmallVector<int64_t>> values = knownInts(i);
  if (failed(values))
    return failure();
  if (values->size() != 1)
    return error("input " + inQuotes(proto.input(i)) + " must hold one number, found " + Twine(values->size()));
  return values->front();
}

FailureOr<std::optional<SmallVector<int64_t>>> OnnxNode::intsInputOrAttribute(int i, StringRef name, int64_t since) {
  if (opset < since)
    return intsAttribute(name);
  if (!has(i))
    return std::optional<SmallVector<int64_t>>();
  FailureOr<SmallVector<int64_t>> values = knownInts(i);
  if (failed(values))
    return failure();
  return std::optional(*values);
}

FailureOr<int64_t> OnnxNode::axis(int64_t value, int64_t rank) {
  if (value < -rank || value >= rank)
    return error("axis " + Twine(value) + " is none of " + Twine(rank) + " dimensions");
  return value < 0 ? value + rank : value;
}

FailureOr<int64_t> OnnxNode::axisAttribute(Value of, int64_t otherwise) {
  if (!of)
    return failure();
  return axis(attribute("axis", otherwise), rankOf(of));
}

FailureOr<SmallVector<int64_t>> OnnxNode::axes(ArrayRef<int64_t> values, int64_t rank) {
  SmallVector<int64_t> result;
  for (int64_t value : values) {
    FailureOr<int64_t> one = axis(value, rank);
    if (failed(one))
      return failure();
    if (llvm::is_contained(result, *one))
      return error("axis " + Twine(value) + " appears twice");
    result.push_back(*one);
  }
  llvm::sort(result);
  return result;
}

LogicalResult OnnxNode::set(int i, Value value) {
  if (!value)
    return failure();
  if (!wants(i))
    return success();
  // Nothing can be trained through an empty tensor; empty shapes and index lists are constants.
  if (typeOf(value).getNumElements() == 0 && !isConstant(value))
    return error("result " + shapeText(shapeOf(value)) + " is empty");
  state.values[proto.output(i)] = value;
  return success();
}

void OnnxNode::refuse(int from, StringRef why) {
  for (int i = from; i < numOutputs(); ++i)
    if (wants(i))
      state.notImported[proto.output(i)] = why.str();
}

SmallVector<OnnxOp> allOnnxOps() {
  SmallVector<OnnxOp> rows;
  for (ArrayRef<OnnxOp> family :
       {onnxMathOps(), onnxReductionOps(), onnxShapeOps(), onnxSliceOps(), onnxIndexOps(), onnxConstantOps(),
        onnxMatMulOps(), onnxLossOps(), onnxAttentionOps(), onnxSequenceOps()})
    rows.append(family.begin(), family.end());
  return rows;
}

} // namespace llmc
