// Elementwise ops: the rules they share, and the few whose math is no formula (cast, iota, dropout, broadcast_to).
#include "ir/Dialect.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace llmc {

std::string elementwiseShardingRule(Operation *op) {
  // Dimensions are aligned at the right; a broadcast dimension of size one cannot be split.
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  auto letters = [&](RankedTensorType type) {
    std::string text;
    for (int64_t d = 0; d < type.getRank(); ++d) {
      int64_t at = result.getRank() - type.getRank() + d;
      text += type.getDimSize(d) == result.getDimSize(at) ? char('a' + at) : '1';
    }
    return text;
  };
  std::string rule;
  for (Value operand : op->getOperands())
    rule += (rule.empty() ? "" : ",") + letters(cast<RankedTensorType>(operand.getType()));
  return rule + "->" + letters(result);
}

LogicalResult verifyElementwise(Operation *op) {
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  SmallVector<int64_t> shape;
  Type floatType;
  for (Value operand : op->getOperands()) {
    auto type = cast<RankedTensorType>(operand.getType());
    FailureOr<SmallVector<int64_t>> joined = broadcastShapes(result.getShape(), type.getShape());
    if (failed(joined) || ArrayRef<int64_t>(*joined) != result.getShape()) // elementwise_c1
      return op->emitOpError("operand ") << type << " does not broadcast to the result " << result;
    if (!isa<FloatType>(type.getElementType()))
      continue;
    if (floatType && floatType != type.getElementType()) // elementwise_c2
      return op->emitOpError("float operands must have one element type, found ")
             << floatType << " and " << type.getElementType();
    floatType = type.getElementType();
  }
  return success();
}

std::optional<double> constantSplat(Value value) {
  ElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) || elements.getNumElements() == 0)
    return std::nullopt;
  if (elements.getNumElements() > 1 && !elements.isSplat())
    return std::nullopt;
  auto dense = dyn_cast<DenseElementsAttr>(elements);
  if (!dense)
    return std::nullopt;
  DenseElementsAttr one = dense.isSplat() ? dense.resizeSplat(RankedTensorType::get({}, dense.getElementType()))
                                          : dense.reshape(RankedTensorType::get({}, dense.getElementType()));
  FailureOr<HostTensor> scalar = HostTensor::fromAttribute(one);
  return failed(scalar) ? std::nullopt : std::optional(scalar->asDouble(0));
}

namespace {
/// x^n by what is exact and fast: products for small integers, roots for halves.
struct PowByProducts : OpRewritePattern<PowOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(PowOp op, PatternRewriter &rewriter) const override {
    std::optional<double> exponent = constantSplat(op.getB());
    if (!exponent || op.getA().getType() != op.getType())
      return rewriter.notifyMatchFailure(op, "exponent is not one number");
    Expr a = ExprScope{rewriter, op.getLoc()}(op.getA());
    double magnitude = std::fabs(*exponent);
    Expr power = a;
    if (magnitude == 0.5)
      power = sqrt(a);
    else if (magnitude >= 1 && magnitude <= 8 && magnitude == std::floor(magnitude))
      for (int i = 1; i < int(magnitude); ++i)
        power = power * a;
    else
      return rewriter.notifyMatchFailure(op, "exponent is neither a half nor an integer from one to eight");
    rewriter.replaceOp(op, *exponent < 0 ? (1.0 / power).value : power.value);
    return success();
  }
};
} // namespace

void PowOp::getCanonicalizationPatterns(RewritePatternSet &patterns, MLIRContext *context) {
  patterns.add<PowByProducts>(context);
}

//===-- cast

Lanes CastOp::emitLanes(LaneScope &, ArrayRef<Lanes> x) {
  Type target = getType().getElementType();
  // In a kernel all floats are f32 whatever their storage.
  return x[0].castTo(isa<FloatType>(target) ? Float32Type::get(getContext()) : target);
}
double CastOp::evaluateFloat(ArrayRef<double> x) {
  Type target = getType().getElementType();
  if (isa<FloatType>(target))
    return x[0];
  if (target.isInteger(1))
    return x[0] != 0;
  return std::isnan(x[0]) || std::fabs(x[0]) >= 9.2e18 ? 0 : std::trunc(x[0]);
}
int64_t CastOp::evaluateInteger(ArrayRef<int64_t> x) {
  return getType().getElementType().isInteger(1) ? x[0] != 0 : x[0];
}
SmallVector<Value> CastOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  if (!isa<FloatType>(getA().getType().getElementType()))
    return {Value()};
  return {cast(ExprScope{builder, getLoc()}(resultGradients[0]), getA().getType().getElementType())};
}

//===-- iota

Lanes IotaOp::emitLanes(LaneScope &scope, ArrayRef<Lanes>) {
  return scope.index(getOperation(), getDim()).castTo(getType().getElementType());
}
double IotaOp::evaluateFloat(ArrayRef<double>) { llvm_unreachable("iota has no operands"); }
int64_t IotaOp::evaluateInteger(ArrayRef<int64_t>) { llvm_unreachable("iota has no operands"); }
LogicalResult IotaOp::evaluate(ArrayRef<HostTensor>, SmallVectorImpl<HostTensor> &results) {
  HostTensor result = HostTensor::zeros(getType());
  int64_t stride = rowMajorStrides(getType().getShape())[getDim()];
  for (int64_t i = 0; i < result.size(); ++i)
    result.integers[i] = i / stride % getType().getDimSize(getDim());
  results.push_back(std::move(result));
  return success();
}

//===-- dropout

namespace {
/// 32-bit words of generated code, with the operators the generator needs.
struct WordLanes {
  Lanes lanes;
  template <typename Op> WordLanes apply(WordLanes b) const {
    return {lanes.with(lanes.builder->create<Op>(lanes.loc, lanes.value, b.lanes.value))};
  }
  WordLanes word(uint32_t bits) const { return {lanes.constant(double(int32_t(bits)))}; }
};
WordLanes operator^(WordLanes a, WordLanes b) { return a.apply<arith::XOrIOp>(b); }
WordLanes operator+(WordLanes a, WordLanes b) { return a.apply<arith::AddIOp>(b); }
WordLanes operator*(WordLanes a, uint32_t b) { return a.apply<arith::MulIOp>(a.word(b)); }
WordLanes operator>>(WordLanes a, int bits) { return a.apply<arith::ShRUIOp>(a.word(uint32_t(bits))); }
} // namespace

/// A bijection of 32-bit words that spreads every input bit over the output (constants by C. Wellons' search,
/// "lowbias32").
template <typename Word> static Word mix(Word x) {
  x = (x ^ (x >> 16)) * 0x7feb352du;
  x = (x ^ (x >> 15)) * 0x846ca68bu;
  return x ^ (x >> 16);
}

/// 32 random bits for one element: its index under a key of seed, step and node.
template <typename Word>
static Word drawBits(Word indexLow, Word indexHigh, Word seedLow, Word seedHigh, Word step, Word node) {
  Word key = mix(seedLow + mix(seedHigh + mix(step + mix(node))));
  return mix(mix(indexLow ^ key) + (indexHigh ^ (key * 0x9e3779b1u)));
}

/// The draws below this are dropped.
static uint32_t dropThreshold(double rate) { return uint32_t(std::min(4294967295.0, std::round(rate * 4294967296.0))); }

Lanes DropoutOp::emitLanes(LaneScope &scope, ArrayRef<Lanes> x) {
  Type i32 = scope.builder().getI32Type();
  Lanes index = scope.linearIndex(getOperation());
  Lanes high = index.with(index.builder->create<arith::ShRUIOp>(index.loc, index.value, index.constant(32).value));
  WordLanes low{index.castTo(i32)};
  WordLanes bits = drawBits<WordLanes>(low, {high.castTo(i32)}, {x[1]}, {x[2]}, {x[3]}, low.word(uint32_t(getNode())));
  Value keep = scope.builder().create<arith::CmpIOp>(scope.loc(), arith::CmpIPredicate::uge, bits.lanes.value,
                                                     low.word(dropThreshold(getRate().convertToDouble())).lanes.value);
  double rate = getRate().convertToDouble();
  return select(x[0].with(keep), x[0] * (rate < 1 ? 1 / (1 - rate) : 0.0), 0.0);
}
double DropoutOp::evaluateFloat(ArrayRef<double>) { llvm_unreachable("dropout depends on the index"); }
int64_t DropoutOp::evaluateInteger(ArrayRef<int64_t>) { llvm_unreachable("dropout depends on the index"); }
LogicalResult DropoutOp::evaluate(ArrayRef<HostTensor> operands, SmallVectorImpl<HostTensor> &results) {
  HostTensor result = operands[0];
  double rate = getRate().convertToDouble();
  auto word = [&](int k) { return uint32_t(operands[k].integers[0]); };
  for (int64_t i = 0; i < result.size(); ++i) {
    uint32_t bits =
        drawBits<uint32_t>(uint32_t(i), uint32_t(uint64_t(i) >> 32), word(1), word(2), word(3), uint32_t(getNode()));
    result.floats[i] = bits >= dropThreshold(rate) && rate < 1 ? result.floats[i] / (1 - rate) : 0.0;
  }
  results.push_back(std::move(result));
  return success();
}
SmallVector<Value> DropoutOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  Value gradient = builder.create<DropoutOp>(getLoc(), getType(), resultGradients[0], getSeedLow(), getSeedHigh(),
                                             getStep(), getRateAttr(), getNodeAttr());
  return {gradient, Value(), Value(), Value()};
}

//===-- broadcast_to

Lanes BroadcastToOp::emitLanes(LaneScope &, ArrayRef<Lanes> x) { return x[0]; }
double BroadcastToOp::evaluateFloat(ArrayRef<double> x) { return x[0]; }
int64_t BroadcastToOp::evaluateInteger(ArrayRef<int64_t> x) { return x[0]; }
SmallVector<Value> BroadcastToOp::buildGradient(OpBuilder &builder, ArrayRef<Value> resultGradients) {
  return {sumTo(ExprScope{builder, getLoc()}(resultGradients[0]), getA().getType().getShape())};
}

} // namespace llmc
