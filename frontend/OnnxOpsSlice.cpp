// Operators that cut tensors up and put them together: slice, split, concat, pad.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

/// One axis of a Slice: starts and ends beyond the tensor stop at its border, as Python's do.
static Value sliceAxis(OnnxNode &node, Value a, int64_t axis, int64_t start, int64_t end, int64_t step) {
  int64_t size = shapeOf(a)[axis];
  if (size == 0)
    return a;
  auto clamp = [&](int64_t index, int64_t low, int64_t high) {
    return std::clamp(index < 0 ? index + size : index, low, high);
  };
  if (step > 0) {
    start = clamp(start, 0, size);
    end = clamp(end, 0, size);
    return node.slice(a, axis, start, end > start ? (end - start - 1) / step + 1 : 0, step);
  }
  start = clamp(start, 0, size - 1);
  end = end < -size ? -1 : clamp(end, -1, size - 1);
  // -(INT64_MIN) is no number; any step beyond the size takes one element.
  int64_t stride = step < -size ? std::max<int64_t>(size, 1) : -step;
  return node.slice(a, axis, start, start > end ? (start - end - 1) / stride + 1 : 0, -stride);
}

static LogicalResult importSlice(OnnxNode &node) {
  Value a = node.input(0);
  auto starts = node.intsInputOrAttribute(1, "starts", 10), ends = node.intsInputOrAttribute(2, "ends", 10);
  auto axes = node.intsInputOrAttribute(3, "axes", 10);
  auto steps = node.intsInputOrAttribute(4, "steps", 10);
  if (!a || failed(starts) || failed(ends) || failed(axes) || failed(steps))
    return failure();
  size_t count = *starts ? (*starts)->size() : 0;
  if (!*starts || !*ends || (*ends)->size() != count || (*axes && (*axes)->size() != count) ||
      (*steps && (*steps)->size() != count))
    return node.error("starts, ends, axes and steps differ in number");
  for (size_t i = 0; i < count; ++i) {
    FailureOr<int64_t> axis = node.axis(*axes ? (**axes)[i] : int64_t(i), rankOf(a));
    int64_t step = *steps ? (**steps)[i] : 1;
    if (failed(axis) || step == 0)
      return failed(axis) ? failure() : node.error("a step is 0");
    a = sliceAxis(node, a, *axis, (**starts)[i], (**ends)[i], step);
    if (!a)
      return failure();
  }
  return node.set(a);
}

/// The sizes of the parts: given, or equal ones, the last smaller when the operator counts its outputs.
static FailureOr<SmallVector<int64_t>> splitSizes(OnnxNode &node, int64_t size) {
  auto given = node.intsInputOrAttribute(1, "split", 13);
  if (failed(given))
    return failure();
  int64_t count = node.attribute("num_outputs", int64_t(node.numOutputs()));
  if (*given)
    count = int64_t((*given)->size());
  if (count != node.numOutputs())
    return node.error("has " + Twine(node.numOutputs()) + " outputs for " + Twine(count) + " parts");
  SmallVector<int64_t> sizes = *given ? **given : SmallVector<int64_t>(count, (size + count - 1) / count);
  if (!*given)
    sizes.back() = size - (count - 1) * sizes.front();
  int64_t total = 0;
  for (int64_t part : sizes) {
    if (part < 0 || part > size - total)
      return node.error("parts " + shapeText(sizes) + " do not add up to " + Twine(size));
    total += part;
  }
  if (total != size)
    return node.error("parts " + shapeText(sizes) + " do not add up to " + Twine(size));
  return sizes;
}
static LogicalResult importSplit(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<int64_t> axis = node.axisAttribute(a, 0);
  if (failed(axis))
    return failure();
  FailureOr<SmallVector<int64_t>> sizes = splitSizes(node, shapeOf(a)[*axis]);
  if (failed(sizes))
    return failure();
  int64_t start = 0;
  for (auto [i, size] : llvm::enumerate(*sizes)) {
    if (failed(node.set(int(i), node.slice(a, *axis, start, size))))
      return failure();
    start += size;
  }
  return success();
}

static LogicalResult importConcat(OnnxNode &node) {
  FailureOr<SmallVector<Value>> parts = node.inputs();
  if (failed(parts))
    return failure();
  FailureOr<int64_t> axis = node.axis(node.attribute("axis", int64_t(0)), rankOf(parts->front()));
  return succeeded(axis) ? node.set(node.concat(*parts, *axis)) : failure();
}

/// The number that Pad fills with.
static FailureOr<double> padValue(OnnxNode &node) {
  if (node.opset < 11)
    return node.attribute("value", 0.0);
  if (!node.has(2))
    return 0.0;
  FailureOr<HostTensor> value = node.known(2);
  if (failed(value))
    return failure();
  if (value->size() != 1)
    return node.error("must have one value to fill with");
  return value->asDouble(0);
}
static LogicalResult importPad(OnnxNode &node) {
  Value a = node.input(0);
  auto pads = node.intsInputOrAttribute(1, "pads", 11);
  auto given = node.intsInputOrAttribute(3, "axes", 18);
  FailureOr<double> fill = padValue(node);
  if (!a || failed(pads) || failed(given) || failed(fill))
    return failure();
  if (node.attribute("mode", "constant") != "constant")
    return node.error("mode " + node.attribute("mode", "") + " is not supported");
  SmallVector<int64_t> axes = node.has(3) && *given ? **given : llvm::to_vector(llvm::seq<int64_t>(0, rankOf(a)));
  if (!*pads || (*pads)->size() != 2 * axes.size())
    return node.error("needs two pads for each of " + Twine(axes.size()) + " axes");
  SmallVector<int64_t> before(rankOf(a), 0), shape(shapeOf(a));
  for (auto [i, value] : llvm::enumerate(axes)) {
    FailureOr<int64_t> axis = node.axis(value, rankOf(a));
    if (failed(axis))
      return failure();
    int64_t low = (**pads)[i], high = (**pads)[axes.size() + i], size = shapeOf(a)[*axis];
    if (low < -size || high < -size || low + high < -size || std::max(low, high) > kMostElements)
      return node.error("pads " + Twine(low) + " and " + Twine(high) + " do not fit dimension " + Twine(size));
    // Negative pads take elements away.
    a = node.slice(a, *axis, std::max<int64_t>(-low, 0), size + std::min<int64_t>(low, 0) + std::min<int64_t>(high, 0));
    if (!a)
      return failure();
    before[*axis] = std::max<int64_t>(low, 0);
    shape[*axis] = size + low + high;
  }
  return node.set(node.pad(a, before, shape, *fill));
}

static constexpr OnnxOp kOps[] = {
    {"Slice", 1, kNewestOpset, importSlice},
    {"Split", 2, kNewestOpset, importSplit},
    {"Concat", 4, kNewestOpset, importConcat},
    {"Pad", 2, kNewestOpset, importPad},
};

ArrayRef<OnnxOp> onnxSliceOps() { return kOps; }

} // namespace llmc
