// Operators that give elements another shape or repeat them: reshape and its kin, transpose, expand, tile.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

static LogicalResult importIdentity(OnnxNode &node) {
  auto sequence = node.has(0) ? node.state.sequences.find(node.inputName(0)) : node.state.sequences.end();
  if (sequence == node.state.sequences.end())
    return node.set(node.input(0));
  SmallVector<Value> parts = sequence->second;
  node.state.sequences[node.outputName(0)] = std::move(parts);
  return success();
}

/// 0 keeps the operand's size (unless allowzero), -1 is what remains.
static LogicalResult importReshape(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<SmallVector<int64_t>> shape = node.knownInts(1);
  if (!a || failed(shape))
    return failure();
  bool allowZero = node.attribute("allowzero", int64_t(0)) != 0;
  int64_t unknown = -1, product = 1, count = typeOf(a).getNumElements();
  for (auto [d, size] : llvm::enumerate(*shape)) {
    if (size == 0 && !allowZero) {
      if (int64_t(d) >= rankOf(a))
        return node.error("shape " + shapeText(*shape) + " keeps a dimension that " + shapeText(shapeOf(a)) +
                          " does not have");
      size = shapeOf(a)[d];
    }
    if (size == -1 && unknown < 0) {
      unknown = int64_t(d);
      continue;
    }
    if (size < 0 || (size > 0 && product > std::max<int64_t>(count, 1) / size))
      return node.error("shape " + shapeText(shapeOf(a)) + " cannot become " + shapeText(*shape));
    product *= size;
  }
  if (unknown >= 0) {
    if (product == 0 || count % product != 0)
      return node.error("shape " + shapeText(shapeOf(a)) + " cannot become " + shapeText(*shape));
    (*shape)[unknown] = count / product;
  }
  return node.set(node.reshape(a, *shape));
}

static LogicalResult importFlatten(OnnxNode &node) {
  Value a = node.input(0);
  if (!a)
    return failure();
  int64_t axis = node.attribute("axis", int64_t(1)), rank = rankOf(a);
  if (axis < -rank || axis > rank)
    return node.error("axis " + Twine(axis) + " is none of " + Twine(rank) + " dimensions");
  axis = axis < 0 ? axis + rank : axis;
  return node.set(node.reshape(a, {productOf(shapeOf(a).take_front(axis)), productOf(shapeOf(a).drop_front(axis))}));
}

static LogicalResult importSqueeze(OnnxNode &node) {
  Value a = node.input(0);
  auto given = node.intsInputOrAttribute(1, "axes", 13);
  if (!a || failed(given))
    return failure();
  FailureOr<SmallVector<int64_t>> axes = node.axes(*given ? **given : SmallVector<int64_t>(), rankOf(a));
  if (failed(axes))
    return failure();
  SmallVector<int64_t> shape;
  for (auto [d, size] : llvm::enumerate(shapeOf(a))) {
    bool drops = *given ? llvm::is_contained(*axes, int64_t(d)) : size == 1;
    if (drops && size != 1)
      return node.error("dimension " + Twine(d) + " of " + shapeText(shapeOf(a)) + " is not 1");
    if (!drops)
      shape.push_back(size);
  }
  return node.set(node.reshape(a, shape));
}

static LogicalResult importUnsqueeze(OnnxNode &node) {
  Value a = node.input(0);
  auto given = node.intsInputOrAttribute(1, "axes", 13);
  if (!a || failed(given))
    return failure();
  if (!*given)
    return node.error("has no axes");
  FailureOr<SmallVector<int64_t>> axes = node.axes(**given, rankOf(a) + int64_t((*given)->size()));
  if (failed(axes))
    return failure();
  SmallVector<int64_t> shape(shapeOf(a));
  for (int64_t axis : *axes) // in rising order, so each lands at its final place
    shape.insert(shape.begin() + axis, 1);
  return node.set(node.reshape(a, shape));
}

static LogicalResult importTranspose(OnnxNode &node) {
  Value a = node.input(0);
  if (!a)
    return failure();
  auto permutation = node.intsAttribute("perm");
  return node.set(
      node.transpose(a, permutation ? *permutation : llvm::to_vector(llvm::reverse(llvm::seq<int64_t>(0, rankOf(a))))));
}

static LogicalResult importExpand(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<SmallVector<int64_t>> shape = node.knownInts(1);
  if (!a || failed(shape))
    return failure();
  FailureOr<SmallVector<int64_t>> joined = broadcastShapes(shapeOf(a), *shape);
  if (failed(joined))
    return node.error("shape " + shapeText(shapeOf(a)) + " does not expand to " + shapeText(*shape));
  return node.set(node.broadcastTo(a, *joined));
}

/// A repeated dimension becomes two, (repeats, size), of which the first is broadcast.
static LogicalResult importTile(OnnxNode &node) {
  Value a = node.input(0);
  FailureOr<SmallVector<int64_t>> repeats = node.knownInts(1);
  if (!a || failed(repeats))
    return failure();
  if (int64_t(repeats->size()) != rankOf(a))
    return node.error("needs one repeat for each of " + Twine(rankOf(a)) + " dimensions");
  SmallVector<int64_t> split, repeated, shape;
  for (auto [size, repeat] : llvm::zip_equal(shapeOf(a), *repeats)) {
    if (repeat < 0 || repeat > kMostElements / std::max<int64_t>(size, 1))
      return node.error("repeats " + shapeText(*repeats) + " are negative or too many");
    if (repeat != 1) {
      split.push_back(1);
      repeated.push_back(repeat);
    }
    split.push_back(size);
    repeated.push_back(size);
    shape.push_back(size * repeat);
  }
  return node.set(node.reshape(node.broadcastTo(node.reshape(a, split), repeated), shape));
}

static constexpr OnnxOp kOps[] = {
    {"Identity", 1, kNewestOpset, importIdentity},   {"Reshape", 5, kNewestOpset, importReshape},
    {"Flatten", 1, kNewestOpset, importFlatten},     {"Squeeze", 1, kNewestOpset, importSqueeze},
    {"Unsqueeze", 1, kNewestOpset, importUnsqueeze}, {"Transpose", 1, kNewestOpset, importTranspose},
    {"Expand", 8, kNewestOpset, importExpand},       {"Tile", 6, kNewestOpset, importTile},
};

ArrayRef<OnnxOp> onnxShapeOps() { return kOps; }

} // namespace llmc
