// Sequences, which exporters make where PyTorch splits a tensor and takes the parts apart. They exist at compile time
// only: a name that stands for several values.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// Parts of the sizes given, or of one size, or single elements (whose axis goes unless keepdims).
static LogicalResult importSplitToSequence(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<int64_t> axis = node.axisAttribute(a, 0);
  if (failed(axis))
    return failure();
  int64_t size = shapeOf(a)[*axis];
  SmallVector<int64_t> sizes;
  if (node.has(1)) {
    FailureOr<SmallVector<int64_t>> given = node.knownInts(1);
    if (failed(given))
      return failure();
    sizes = *given;
  }
  bool isOneSize = !node.has(1) || rankOf(node.input(1)) == 0;
  if (isOneSize) {
    int64_t each = node.has(1) ? sizes.front() : 1;
    if (each < 1)
      return node.error("cannot split into parts of " + Twine(each));
    sizes.clear();
    for (int64_t rest = size; rest > 0; rest -= sizes.back())
      sizes.push_back(std::min(each, rest));
  }
  SmallVector<Value> parts;
  int64_t start = 0;
  for (int64_t part : sizes) {
    Value value = node.slice(a, *axis, start, part);
    if (value && !node.has(1) && !node.attribute("keepdims", int64_t(1))) {
      SmallVector<int64_t> shape(shapeOf(value));
      shape.erase(shape.begin() + *axis);
      value = node.reshape(value, shape);
    }
    if (!value)
      return failure();
    parts.push_back(value);
    start += part;
  }
  if (start != size)
    return node.error("parts " + shapeText(sizes) + " do not add up to " + Twine(size));
  node.state.sequences[node.outputName(0)] = std::move(parts);
  return success();
}

static LogicalResult importSequenceAt(OnnxNode &node) {
  auto sequence = node.has(0) ? node.state.sequences.find(node.inputName(0)) : node.state.sequences.end();
  FailureOr<int64_t> given = node.knownInt(1);
  if (failed(given))
    return failure();
  if (sequence == node.state.sequences.end())
    return node.error("its sequence is none that SplitToSequence gives");
  FailureOr<int64_t> position = node.axis(*given, int64_t(sequence->second.size()));
  return succeeded(position) ? node.set(sequence->second[*position]) : failure();
}

static constexpr OnnxOp kOps[] = {
    {"SplitToSequence", 11, kNewestOpset, importSplitToSequence},
    {"SequenceAt", 11, kNewestOpset, importSequenceAt},
};

ArrayRef<OnnxOp> onnxSequenceOps() { return kOps; }

} // namespace llmc
