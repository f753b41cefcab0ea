// Attention and rotary embedding of opset 23. ONNX gives heads a dimension, (B, H, T, D), or keeps them side by side,
// (B, T, H*D); llmc's attention reads the latter.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

namespace {
/// One of q, k, v as (B, T, H*D).
struct Heads {
  Value value;
  int64_t count = 0, size = 0; ///< H and D
};
} // namespace

static Heads readHeads(OnnxNode &node, int input, StringRef headsAttribute) {
  Value value = node.input(input);
  if (!value)
    return {};
  ArrayRef<int64_t> shape = shapeOf(value);
  if (shape.size() == 4)
    return {node.reshape(node.swapDims(value, 1, 2), {shape[0], shape[2], shape[1] * shape[3]}), shape[1], shape[3]};
  int64_t count = node.attribute(headsAttribute, int64_t(0));
  if (shape.size() != 3 || count < 1 || shape[2] % count != 0) {
    (void)node.error("input " + Twine(input) + " must be (B, H, T, D), or (B, T, H*D) with " + headsAttribute +
                     ", found " + shapeText(shape));
    return {};
  }
  return {value, count, shape[2] / count};
}

/// The mask as numbers to add: booleans say which keys are seen.
static FailureOr<Value> readMask(OnnxNode &node, ArrayRef<int64_t> scores) {
  Value mask = node.optionalInput(3);
  if (!mask)
    return node.has(3) ? FailureOr<Value>(failure()) : FailureOr<Value>(Value());
  if (elementOf(mask).isInteger(1))
    mask = node.select(mask, node.scalar(0, node.f32()),
                       node.scalar(-std::numeric_limits<double>::infinity(), node.f32()));
  if (!mask)
    return failure();
  FailureOr<SmallVector<int64_t>> shape = broadcastShapes(shapeOf(mask), scores);
  if (!isFloat(mask) || failed(shape) || ArrayRef<int64_t>(*shape) != scores)
    return node.error("mask " + shapeText(shapeOf(mask)) +
                      " does not broadcast to (B, H, T, S) = " + shapeText(scores));
  return mask;
}

static LogicalResult importAttention(OnnxNode &node) {
  Heads q = readHeads(node, 0, "q_num_heads"), k = readHeads(node, 1, "kv_num_heads"),
        v = readHeads(node, 2, "kv_num_heads");
  if (!q.value || !k.value || !v.value)
    return failure();
  for (int i = 4; i < node.numInputs(); ++i)
    if (node.has(i))
      return node.error("input " + Twine(i) + " (past keys and values) is not supported in training");
  if (node.attribute("softcap", 0.0) != 0)
    return node.error("softcap is not supported");
  node.refuse(1, "is an output of Attention that is not supported");
  if (q.size != k.size || k.size != v.size || k.count != v.count || q.count % k.count != 0 ||
      shapeOf(q.value)[0] != shapeOf(k.value)[0] || shapeOf(k.value) != shapeOf(v.value))
    return node.error("q " + shapeText(shapeOf(q.value)) + ", k " + shapeText(shapeOf(k.value)) + " and v " +
                      shapeText(shapeOf(v.value)) + " do not fit together");
  int64_t batch = shapeOf(q.value)[0], queries = shapeOf(q.value)[1], keys = shapeOf(k.value)[1];
  bool isCausal = node.attribute("is_causal", int64_t(0)) != 0;
  // ONNX aligns the causal mask to the first query, llmc to the last.
  if (isCausal && queries != keys)
    return node.error("causal attention of " + Twine(queries) + " queries over " + Twine(keys) +
                      " keys is not supported");
  int64_t left = node.attribute("left_window_size", int64_t(-1)),
          right = node.attribute("right_window_size", int64_t(-1));
  isCausal |= right == 0 && queries == keys;
  if (!isCausal && (left >= 0 || right >= 0))
    return node.error("a window of " + Twine(left) + " keys to the left and " + Twine(right) +
                      " to the right is supported with causal attention only");
  FailureOr<Value> mask = readMask(node, {batch, q.count, queries, keys});
  if (failed(mask))
    return failure();
  double scale = node.hasAttribute("scale") ? node.attribute("scale", 1.0) : 1 / std::sqrt(double(q.size));
  auto attention = node.builder.create<AttentionOp>(
      node.loc, TypeRange{q.value.getType(), RankedTensorType::get({batch, q.count, queries}, node.f32())},
      ValueRange{q.value, k.value, v.value}, *mask, uint64_t(q.count), uint64_t(k.count), isCausal,
      uint64_t(left >= 0 ? left + 1 : 0), APFloat(scale));
  Value out = attention.getOut();
  if (rankOf(node.input(0)) == 4)
    out = node.swapDims(node.reshape(out, {batch, queries, q.count, q.size}), 1, 2);
  return node.set(out);
}

/// A table of cosines or sines as (B or 1, 1, T, D/2) or (B or 1, T, 1, D/2): what multiplies half of a head.
static Value rotaryTable(OnnxNode &node, int input, Value x, int64_t timeDim, int64_t half) {
  Value table = node.input(input);
  if (table && node.has(3))
    table = node.embedding(table, node.input(3)); // (positions, D/2) picked to (B, T, D/2)
  if (!table)
    return {};
  ArrayRef<int64_t> shape = shapeOf(table);
  if (shape.size() != 3 || (shape[0] != 1 && shape[0] != shapeOf(x)[0]) || shape[1] != shapeOf(x)[timeDim] ||
      shape[2] != half)
    return node.fail("table " + shapeText(shape) + " must be (B, T, D/2) for x " + shapeText(shapeOf(x)));
  SmallVector<int64_t> spread{shape[0], 1, 1, half};
  spread[timeDim] = shape[1];
  return node.reshape(table, spread);
}

/// x as (x1, x2), halves or even and odd elements: (cos x1 - sin x2, sin x1 + cos x2).
static LogicalResult importRotaryEmbedding(OnnxNode &node) {
  Value original = node.input(0), x = original;
  if (!x)
    return failure();
  int64_t timeDim = 2;
  if (rankOf(x) == 3) {
    int64_t count = node.attribute("num_heads", int64_t(0));
    if (count < 1 || shapeOf(x)[2] % count != 0)
      return node.error("needs num_heads that divides " + Twine(shapeOf(x)[2]));
    x = node.reshape(x, {shapeOf(x)[0], shapeOf(x)[1], count, shapeOf(x)[2] / count});
    timeDim = 1;
  }
  int64_t size = rankOf(x) == 4 ? shapeOf(x)[3] : 0, rotated = node.attribute("rotary_embedding_dim", int64_t(0));
  rotated = rotated == 0 ? size : rotated;
  if (size == 0 || rotated < 2 || rotated > size || rotated % 2 != 0)
    return node.error("expects x (B, H, T, D) with an even part of D to rotate, found " + shapeText(shapeOf(x)));
  int64_t half = rotated / 2;
  bool interleaved = node.attribute("interleaved", int64_t(0)) != 0;
  Value cosines = rotaryTable(node, 1, x, timeDim, half), sines = rotaryTable(node, 2, x, timeDim, half);
  Value x1 = interleaved ? node.slice(x, 3, 0, half, 2) : node.slice(x, 3, 0, half);
  Value x2 = interleaved ? node.slice(x, 3, 1, half, 2) : node.slice(x, 3, half, half);
  Value y1 = node.binary<SubOp>(node.binary<MulOp>(x1, cosines), node.binary<MulOp>(x2, sines));
  Value y2 = node.binary<AddOp>(node.binary<MulOp>(x1, sines), node.binary<MulOp>(x2, cosines));
  if (!y1 || !y2)
    return failure();
  Value y;
  if (interleaved) {
    SmallVector<int64_t> pairs(shapeOf(y1)), flat(shapeOf(y1));
    pairs.push_back(1);
    flat.back() = rotated;
    y = node.reshape(node.concat({node.reshape(y1, pairs), node.reshape(y2, pairs)}, 4), flat);
  } else {
    y = node.concat({y1, y2}, 3);
  }
  if (rotated < size)
    y = node.concat({y, node.slice(x, 3, rotated, size - rotated)}, 3);
  return node.set(node.reshape(y, shapeOf(original)));
}

static constexpr OnnxOp kOps[] = {
    {"Attention", 23, kNewestOpset, importAttention},
    {"RotaryEmbedding", 23, kNewestOpset, importRotaryEmbedding},
};

ArrayRef<OnnxOp> onnxAttentionOps() { return kOps; }

} // namespace llmc
