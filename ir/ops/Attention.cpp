// Scaled dot-product attention and its gradient. Where q, k and v lie in the inputs, three tensors or one packed, is
// worked out once into an AttentionLayout; host evaluation and the launch read it alike.
#include "ir/ops/Rows.h"

using namespace mlir;

namespace llmc {

namespace {
/// Where one of q, k, v lies in its input: element (b, t, h, d) is at offset + (b * tokens + t) * rowStride + h *
/// headSize + d.
struct TokenView {
  unsigned input;
  int64_t tokens, rowStride, offset;
  int64_t at(int64_t b, int64_t t, int64_t column) const { return offset + (b * tokens + t) * rowStride + column; }
};

struct AttentionLayout {
  int64_t batch, queries, keys, heads, kvHeads, headSize, window;
  bool causal;
  double scale;
  TokenView q, k, v;
  std::array<int64_t, 4> maskStrides{}; ///< batch, head, query, key; 0 where the mask is broadcast or absent

  /// The column of a query head's keys and values.
  int64_t kvColumn(int64_t head) const { return head / (heads / kvHeads) * headSize; }
  bool sees(int64_t query, int64_t key) const {
    int64_t last = query + keys - queries;
    return (!causal || key <= last) && (window <= 0 || key > last - window);
  }
};
} // namespace

/// Strides of the mask in (B, H, T, S), 0 where it has size 1 or no such dimension.
static std::array<int64_t, 4> broadcastStrides(ArrayRef<int64_t> mask) {
  std::array<int64_t, 4> strides{};
  SmallVector<int64_t> dense = rowMajorStrides(mask);
  for (size_t d = 0; d < mask.size(); ++d)
    strides[4 - mask.size() + d] = mask[d] == 1 ? 0 : dense[d];
  return strides;
}

/// Of a verified op.
template <typename Op> static AttentionLayout layoutOf(Op op) {
  auto shapeOf = [&](unsigned input) { return cast<RankedTensorType>(op.getInputs()[input].getType()).getShape(); };
  bool packed = op.getInputs().size() == 1;
  AttentionLayout layout;
  layout.batch = shapeOf(0)[0];
  layout.queries = shapeOf(0)[1];
  layout.keys = packed ? layout.queries : shapeOf(1)[1];
  layout.heads = op.getHeads();
  layout.kvHeads = op.getKvHeads();
  layout.headSize = shapeOf(0)[2] / (packed ? layout.heads + 2 * layout.kvHeads : layout.heads);
  layout.window = int64_t(op.getWindow());
  layout.causal = op.getCausal();
  layout.scale = op.getScale().convertToDouble();
  int64_t qWidth = layout.heads * layout.headSize, kvWidth = layout.kvHeads * layout.headSize;
  if (packed) {
    int64_t width = qWidth + 2 * kvWidth;
    layout.q = {0, layout.queries, width, 0};
    layout.k = {0, layout.keys, width, qWidth};
    layout.v = {0, layout.keys, width, qWidth + kvWidth};
  } else {
    layout.q = {0, layout.queries, qWidth, 0};
    layout.k = {1, layout.keys, kvWidth, 0};
    layout.v = {2, layout.keys, kvWidth, 0};
  }
  if (op.getMask())
    layout.maskStrides = broadcastStrides(op.getMask().getType().getShape());
  return layout;
}

//===-- Rules

static LogicalResult verifyHeads(Operation *op, int64_t heads, int64_t kvHeads) {
  // attention_c2
  if (heads < 1 || heads > std::numeric_limits<int32_t>::max() || kvHeads < 1 || heads % kvHeads != 0)
    return op->emitOpError() << "heads must be a multiple of kvHeads, found " << heads << " and " << kvHeads;
  return success();
}

static LogicalResult verifyInputs(Operation *op, ValueRange inputs, int64_t heads, int64_t kvHeads) {
  // attention_c1
  if (inputs.size() != 1 && inputs.size() != 3)
    return op->emitOpError() << "inputs must be q, k and v, or one packed, found " << inputs.size();
  SmallVector<RankedTensorType> types;
  for (Value input : inputs)
    types.push_back(cast<RankedTensorType>(input.getType()));
  for (RankedTensorType type : types)
    if (type.getRank() != 3)
      return op->emitOpError() << "inputs must be (batch, tokens, columns), found " << type;
  int64_t columns = types[0].getDimSize(2), sharing = types.size() == 1 ? heads + 2 * kvHeads : heads;
  if (columns == 0 || columns % sharing != 0)
    return op->emitOpError() << "the columns of input 0 must be a multiple of " << sharing << ", found " << types[0];
  if (types.size() == 1)
    return success();
  auto expected = RankedTensorType::get({types[0].getDimSize(0), types[1].getDimSize(1), columns / heads * kvHeads},
                                        types[0].getElementType());
  for (unsigned i : {1u, 2u})
    if (types[i] != expected)
      return op->emitOpError() << "input " << i << " must be " << expected << ", found " << types[i];
  return success();
}

template <typename Op>
static LogicalResult verifyShape(Op op, StringRef name, Value value, ArrayRef<int64_t> expected) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() != expected)
    return op.emitOpError() << name << " must have shape (" << expected << "), found " << type;
  return success();
}

/// What the forward and the gradient share: heads, inputs, mask, out and lse.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  int64_t heads = op.getHeads(), kvHeads = op.getKvHeads();
  if (failed(verifyHeads(op, heads, kvHeads)) || failed(verifyInputs(op, op.getInputs(), heads, kvHeads)))
    return failure();
  // attention_c3
  if (op.getMask() && op.getMask().getType().getRank() > 4)
    return op.emitOpError() << "mask must have at most four dimensions, found " << op.getMask().getType();
  AttentionLayout layout = layoutOf(op);
  if (op.getMask()) {
    SmallVector<int64_t, 4> scores = {layout.batch, layout.heads, layout.queries, layout.keys};
    FailureOr<SmallVector<int64_t>> shape = broadcastShapes(scores, op.getMask().getType().getShape());
    if (failed(shape) || ArrayRef(*shape) != ArrayRef(scores))
      return op.emitOpError() << "mask must broadcast to (" << scores << "), found " << op.getMask().getType();
  }
  // attention_c1
  if (failed(verifyShape(op, "out", op.getOut(), {layout.batch, layout.queries, layout.heads * layout.headSize})))
    return failure();
  return verifyShape(op, "lse", op.getLse(), {layout.batch, layout.heads, layout.queries});
}

LogicalResult AttentionOp::verify() { return verifyAttention(*this); }

LogicalResult AttentionGradOp::verify() {
  if (failed(verifyAttention(*this)) || failed(verifyShape(*this, "dOut", getDOut(), getOut().getType().getShape())))
    return failure();
  // attention_c1
  if (getGradients().getTypes() != getInputs().getTypes())
    return emitOpError() << "results must have the inputs' types";
  return success();
}

//===-- On the host

/// Scaled and masked scores of one query over all keys; -inf where it does not see.
static std::vector<double> scoresOf(const AttentionLayout &layout, const HostTensor &q, const HostTensor &k,
                                    const HostTensor *mask, int64_t b, int64_t h, int64_t t) {
  std::vector<double> scores(layout.keys, -std::numeric_limits<double>::infinity());
  for (int64_t s = 0; s < layout.keys; ++s) {
    if (!layout.sees(t, s))
      continue;
    double dot = 0;
    for (int64_t d = 0; d < layout.headSize; ++d)
      dot += q.floats[layout.q.at(b, t, h * layout.headSize + d)] * k.floats[layout.k.at(b, s, layout.kvColumn(h) + d)];
    scores[s] = dot * layout.scale;
    auto [batchStride, headStride, queryStride, keyStride] = layout.maskStrides;
    if (mask)
      scores[s] += mask->floats[b * batchStride + h * headStride + t * queryStride + s * keyStride];
  }
  return scores;
}

/// e^(scores - lse); zeros when the query sees no key.
static std::vector<double> probabilities(std::vector<double> scores, double lse) {
  for (double &score : scores)
    score = std::isinf(lse) ? 0 : exp(score - lse);
  return scores;
}

static double logSumExp(const std::vector<double> &scores) {
  double largest = *std::max_element(scores.begin(), scores.end()), sum = 0;
  if (std::isinf(largest))
    return largest;
  for (double score : scores)
    sum += exp(score - largest);
  return largest + log(sum);
}

/// Calls visit(b, h, t, index of (b, h, t) in lse) for each query of each head.
static void forEachQuery(const AttentionLayout &layout, function_ref<void(int64_t, int64_t, int64_t, int64_t)> visit) {
  for (int64_t b = 0; b < layout.batch; ++b)
    for (int64_t h = 0; h < layout.heads; ++h)
      for (int64_t t = 0; t < layout.queries; ++t)
        visit(b, h, t, (b * layout.heads + h) * layout.queries + t);
}

LogicalResult AttentionOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  AttentionLayout layout = layoutOf(*this);
  const HostTensor *mask = getMask() ? &operands.back() : nullptr;
  const HostTensor &q = operands[layout.q.input], &k = operands[layout.k.input], &v = operands[layout.v.input];
  HostTensor out = HostTensor::zeros(getOut().getType()), lse = HostTensor::zeros(getLse().getType());
  int64_t width = layout.heads * layout.headSize;
  forEachQuery(layout, [&](int64_t b, int64_t h, int64_t t, int64_t query) {
    std::vector<double> scores = scoresOf(layout, q, k, mask, b, h, t);
    lse.floats[query] = logSumExp(scores);
    std::vector<double> p = probabilities(scores, lse.floats[query]);
    for (int64_t s = 0; s < layout.keys; ++s)
      for (int64_t d = 0; layout.sees(t, s) && d < layout.headSize; ++d)
        out.floats[(b * layout.queries + t) * width + h * layout.headSize + d] +=
            p[s] * v.floats[layout.v.at(b, s, layout.kvColumn(h) + d)];
  });
  results.push_back(std::move(out));
  results.push_back(std::move(lse));
  return success();
}

LogicalResult AttentionGradOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  AttentionLayout layout = layoutOf(*this);
  const HostTensor *mask = getMask() ? &operands[getInputs().size()] : nullptr;
  const HostTensor &q = operands[layout.q.input], &k = operands[layout.k.input], &v = operands[layout.v.input];
  ArrayRef<HostTensor> last = operands.take_back(3);
  const HostTensor &out = last[0], &lse = last[1], &dOut = last[2];
  for (Type type : getGradients().getTypes())
    results.push_back(HostTensor::zeros(cast<RankedTensorType>(type)));
  HostTensor &dq = results[layout.q.input], &dk = results[layout.k.input], &dv = results[layout.v.input];
  int64_t headSize = layout.headSize;
  forEachQuery(layout, [&](int64_t b, int64_t h, int64_t t, int64_t query) {
    std::vector<double> p = probabilities(scoresOf(layout, q, k, mask, b, h, t), lse.floats[query]);
    int64_t outAt = ((b * layout.queries + t) * layout.heads + h) * headSize, kvColumn = layout.kvColumn(h);
    double delta = 0;
    for (int64_t d = 0; d < headSize; ++d)
      delta += dOut.floats[outAt + d] * out.floats[outAt + d];
    for (int64_t s = 0; s < layout.keys; ++s) {
      if (!layout.sees(t, s))
        continue;
      double dp = 0;
      for (int64_t d = 0; d < headSize; ++d)
        dp += dOut.floats[outAt + d] * v.floats[layout.v.at(b, s, kvColumn + d)];
      double ds = p[s] * (dp - delta) * layout.scale;
      for (int64_t d = 0; d < headSize; ++d) {
        dv.floats[layout.v.at(b, s, kvColumn + d)] += p[s] * dOut.floats[outAt + d];
        dq.floats[layout.q.at(b, t, h * headSize + d)] += ds * k.floats[layout.k.at(b, s, kvColumn + d)];
        dk.floats[layout.k.at(b, s, kvColumn + d)] += ds * q.floats[layout.q.at(b, t, h * headSize + d)];
      }
    }
  });
  return success();
}

//===-- Gradient, precision and cost

SmallVector<Value> AttentionOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  SmallVector<Value> gradients(getNumOperands());
  assert(!resultGradients[1] && "lse is for the gradient alone");
  if (!resultGradients[0])
    return gradients;
  auto gradient = builder.create<AttentionGradOp>(getLoc(), getInputs().getTypes(), getInputs(), getMask(), getOut(),
                                                  getLse(), resultGradients[0], getHeadsAttr(), getKvHeadsAttr(),
                                                  getCausalAttr(), getWindowAttr(), getScaleAttr());
  llvm::copy(gradient.getGradients(), gradients.begin());
  return gradients;
}

/// All but the mask and lse: one kernel type for inputs, out and their gradients.
template <typename Op> static PrecisionPolicy operandPrecision(Op op, unsigned operand) {
  Value value = op->getOperand(operand);
  return value == op.getMask() || value == op.getLse() ? PrecisionPolicy::keepF32 : PrecisionPolicy::bf16;
}

PrecisionPolicy AttentionOp::getOperandPrecision(unsigned operand) { return operandPrecision(*this, operand); }
PrecisionPolicy AttentionGradOp::getOperandPrecision(unsigned operand) { return operandPrecision(*this, operand); }
PrecisionPolicy AttentionOp::getResultPrecision(unsigned result) {
  return result == 0 ? PrecisionPolicy::bf16 : PrecisionPolicy::keepF32;
}
PrecisionPolicy AttentionGradOp::getResultPrecision(unsigned) { return PrecisionPolicy::bf16; }

/// Two products of the forward; a causal query sees half of the keys.
static double forwardFlops(const AttentionLayout &layout) {
  double flops = 4.0 * double(layout.batch * layout.heads) * double(layout.queries) * double(layout.keys) *
                 double(layout.headSize);
  return layout.causal ? flops / 2 : flops;
}

double AttentionOp::getFlops() { return forwardFlops(layoutOf(*this)); }
/// Five products where the forward has two.
double AttentionGradOp::getFlops() { return 2.5 * forwardFlops(layoutOf(*this)); }

//===-- Launches

template <typename Op> static AttentionLayout describeShared(Op op, LaunchDescription &launch) {
  AttentionLayout layout = layoutOf(op);
  auto elementType = cast<RankedTensorType>(op.getInputs()[0].getType()).getElementType();
  launch.operands = {op.getInputs()[layout.q.input],
                     op.getInputs()[layout.k.input],
                     op.getInputs()[layout.v.input],
                     op.getMask(),
                     op.getOut(),
                     op.getLse()};
  launch.ints = {{"batch", layout.batch},
                 {"queries", layout.queries},
                 {"keys", layout.keys},
                 {"heads", layout.heads},
                 {"kvHeads", layout.kvHeads},
                 {"headSize", layout.headSize},
                 {"causal", layout.causal},
                 {"window", layout.window},
                 {"type", elementTypeNumber(elementType)},
                 {"qRowStride", layout.q.rowStride},
                 {"qOffset", layout.q.offset},
                 {"kRowStride", layout.k.rowStride},
                 {"kOffset", layout.k.offset},
                 {"vRowStride", layout.v.rowStride},
                 {"vOffset", layout.v.offset},
                 {"maskBatchStride", layout.maskStrides[0]},
                 {"maskHeadStride", layout.maskStrides[1]},
                 {"maskQueryStride", layout.maskStrides[2]},
                 {"maskKeyStride", layout.maskStrides[3]}};
  launch.floats = {{"scale", layout.scale}};
  return layout;
}

void AttentionOp::describeLaunch(LaunchDescription &launch) {
  launch.kernel = "attention";
  describeShared(*this, launch);
  launch.operands.push_back(/*workspace=*/Value());
}

void AttentionGradOp::describeLaunch(LaunchDescription &launch) {
  launch.kernel = "attention_grad";
  AttentionLayout layout = describeShared(*this, launch);
  launch.operands.append({getDOut(), getGradients()[layout.q.input], getGradients()[layout.k.input],
                          getGradients()[layout.v.input],
                          /*workspace=*/Value()});
  launch.ints["dqRowStride"] = layout.q.rowStride;
  launch.ints["dqOffset"] = layout.q.offset;
  launch.ints["dkRowStride"] = layout.k.rowStride;
  launch.ints["dkOffset"] = layout.k.offset;
  launch.ints["dvRowStride"] = layout.v.rowStride;
  launch.ints["dvOffset"] = layout.v.offset;
}

} // namespace llmc
