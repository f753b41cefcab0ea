// Elementwise operators: arithmetic, functions, comparison, logic, selection, conversion.
#include "frontend/OnnxOps.h"

using namespace mlir;

namespace llmc {

template <typename Op> static LogicalResult importUnary(OnnxNode &node) {
  return node.set(node.unary<Op>(node.input(0)));
}
template <typename Op> static LogicalResult importBinary(OnnxNode &node) {
  return node.set(node.binary<Op>(node.input(0), node.input(1)));
}
/// a > b is b < a.
template <typename Op> static LogicalResult importSwapped(OnnxNode &node) {
  return node.set(node.binary<Op>(node.input(1), node.input(0)));
}

/// A function of a float; integers are no numbers it is defined for.
template <typename Op> static LogicalResult importFloatUnary(OnnxNode &node) {
  Value a = node.input(0);
  if (a && !isFloat(a))
    return node.error("expects a float tensor");
  return node.set(node.unary<Op>(a));
}

template <typename Op> static FailureOr<Value> joined(OnnxNode &node) {
  FailureOr<SmallVector<Value>> inputs = node.inputs();
  if (failed(inputs))
    return failure();
  Value result = inputs->front();
  for (Value next : llvm::drop_begin(*inputs))
    result = node.binary<Op>(result, next);
  return result;
}
template <typename Op> static LogicalResult importVariadic(OnnxNode &node) {
  FailureOr<Value> result = joined<Op>(node);
  return succeeded(result) ? node.set(*result) : failure();
}
static LogicalResult importMean(OnnxNode &node) {
  FailureOr<Value> sum = joined<AddOp>(node);
  if (failed(sum) || !*sum)
    return failure();
  return node.set(node.binary<DivOp>(*sum, node.scalar(node.numInputs(), elementOf(*sum))));
}

static LogicalResult importReciprocal(OnnxNode &node) {
  Value a = node.input(0);
  return a ? node.set(node.binary<DivOp>(node.scalar(1, elementOf(a)), a)) : failure();
}

/// Base and exponent may differ in type; the result has the base's.
static LogicalResult importPow(OnnxNode &node) {
  Value base = node.input(0), exponent = node.input(1);
  if (!base)
    return failure();
  return node.set(
      node.cast(node.binary<PowOp>(node.cast(base, node.f32()), node.cast(exponent, node.f32())), elementOf(base)));
}

static LogicalResult requireBooleans(OnnxNode &node) {
  FailureOr<SmallVector<Value>> inputs = node.inputs();
  if (failed(inputs))
    return failure();
  if (llvm::any_of(*inputs, [](Value input) { return !elementOf(input).isInteger(1); }))
    return node.error("expects booleans");
  return success();
}
template <typename Op> static LogicalResult importLogic(OnnxNode &node) {
  return succeeded(requireBooleans(node)) ? importBinary<Op>(node) : failure();
}
static LogicalResult importNot(OnnxNode &node) {
  return succeeded(requireBooleans(node)) ? importUnary<NotOp>(node) : failure();
}
static LogicalResult importXor(OnnxNode &node) {
  if (failed(requireBooleans(node)))
    return failure();
  return node.set(node.unary<NotOp>(node.binary<EqualOp>(node.input(0), node.input(1))));
}

static LogicalResult importIsNan(OnnxNode &node) {
  Value a = node.input(0);
  if (a && !isFloat(a))
    return node.error("expects a float tensor");
  return node.set(a ? node.finish(node.builder.create<IsNanOp>(node.loc, a)) : Value());
}

static LogicalResult importWhere(OnnxNode &node) {
  return node.set(node.select(node.input(0), node.input(1), node.input(2)));
}

static LogicalResult importClip(OnnxNode &node) {
  Value a = node.input(0);
  if (!a)
    return failure();
  Value low = node.opset < 11 && node.hasAttribute("min") ? node.scalar(node.attribute("min", 0.0), elementOf(a))
                                                          : node.optionalInput(1);
  Value high = node.opset < 11 && node.hasAttribute("max") ? node.scalar(node.attribute("max", 0.0), elementOf(a))
                                                           : node.optionalInput(2);
  if (low)
    a = node.binary<MaxOp>(a, low);
  if (high)
    a = node.binary<MinOp>(a, high);
  return node.set(a);
}

static LogicalResult importGelu(OnnxNode &node) {
  Value a = node.input(0);
  std::string approximate = node.attribute("approximate", "none");
  if (!a || !isFloat(a) || (approximate != "none" && approximate != "tanh"))
    return a ? node.error("expects a float tensor and approximate 'none' or 'tanh'") : failure();
  return node.set(node.finish(node.builder.create<GeluOp>(node.loc, a.getType(), a, approximate == "tanh")));
}

/// x sigmoid(alpha x).
static LogicalResult importSwish(OnnxNode &node) {
  Value a = node.input(0);
  double alpha = node.attribute("alpha", 1.0);
  if (!a || alpha == 1)
    return importFloatUnary<SiluOp>(node);
  return node.set(
      node.binary<MulOp>(a, node.unary<SigmoidOp>(node.binary<MulOp>(a, node.scalar(alpha, elementOf(a))))));
}

/// Every float is f32 in the graph, so casts among floats fall away.
static LogicalResult importCast(OnnxNode &node) {
  int64_t to = node.attribute("to", int64_t(0));
  Type element = graphElementType(node.builder.getContext(), int(to));
  if (!element)
    return node.error("casts to " + onnxTypeName(int(to)) + ", which is not supported");
  return node.set(node.cast(node.input(0), element));
}
static LogicalResult importCastLike(OnnxNode &node) {
  Value like = node.input(1);
  return like ? node.set(node.cast(node.input(0), elementOf(like))) : failure();
}

/// a mod b with the sign of b (integers), or of a (fmod). Only shape arithmetic has it.
static LogicalResult importMod(OnnxNode &node) {
  FailureOr<HostTensor> a = node.known(0), b = node.known(1);
  if (failed(a) || failed(b))
    return failure();
  if (a->isFloat() || b->isFloat() || llvm::is_contained(b->integers, 0))
    return node.error("expects integers and no division by zero");
  Value quotient = node.binary<DivOp>(node.input(0), node.input(1));
  Value rest = node.binary<SubOp>(node.input(0), node.binary<MulOp>(quotient, node.input(1)));
  if (!rest || node.attribute("fmod", int64_t(0)))
    return node.set(rest);
  Value zero = node.scalar(0, elementOf(rest));
  Value differs = node.binary<LessOp>(node.binary<MulOp>(rest, node.input(1)), zero);
  return node.set(node.select(differs, node.binary<AddOp>(rest, node.input(1)), rest));
}

static LogicalResult importDropout(OnnxNode &node) {
  Value a = node.input(0);
  int64_t number = node.state.numDropouts++;
  node.refuse(1, "is the mask of a Dropout, which is never stored");
  // Before opset 12, and without the input training_mode, the operator is for inference: the identity.
  if (!a || !node.has(2) || !node.state.keepDropout)
    return node.set(a);
  FailureOr<HostTensor> training = node.known(2);
  if (failed(training))
    return failure();
  double rate = 0.5;
  if (node.has(1)) {
    FailureOr<HostTensor> ratio = node.known(1);
    if (failed(ratio))
      return failure();
    rate = ratio->size() == 1 ? ratio->asDouble(0) : -1;
  }
  if (!(rate >= 0 && rate < 1) || training->size() != 1 || !isFloat(a))
    return node.error("expects a float tensor, a rate in [0, 1) and one training mode");
  if (rate == 0 || training->asDouble(0) == 0)
    return node.set(a);
  constexpr StringLiteral names[] = {"seed_lo", "seed_hi", "step"};
  for (auto [name, value] : llvm::zip_equal(names, node.state.dropoutSeed))
    if (!value)
      value = node.builder.create<ScalarOp>(node.loc, RankedTensorType::get({}, node.builder.getI32Type()), name);
  auto [low, high, step] = node.state.dropoutSeed;
  return node.set(
      node.builder.create<DropoutOp>(node.loc, a.getType(), a, low, high, step, APFloat(rate), uint64_t(number)));
}

static constexpr OnnxOp kOps[] = {
    {"Add", 7, kNewestOpset, importBinary<AddOp>},
    {"Sub", 7, kNewestOpset, importBinary<SubOp>},
    {"Mul", 7, kNewestOpset, importBinary<MulOp>},
    {"Div", 7, kNewestOpset, importBinary<DivOp>},
    {"Pow", 7, kNewestOpset, importPow},
    {"Mod", 10, kNewestOpset, importMod},
    {"Neg", 6, kNewestOpset, importUnary<NegOp>},
    {"Abs", 6, kNewestOpset, importUnary<AbsOp>},
    {"Reciprocal", 6, kNewestOpset, importReciprocal},
    {"Min", 8, kNewestOpset, importVariadic<MinOp>},
    {"Max", 8, kNewestOpset, importVariadic<MaxOp>},
    {"Sum", 8, kNewestOpset, importVariadic<AddOp>},
    {"Mean", 8, kNewestOpset, importMean},
    {"Round", 11, kNewestOpset, importFloatUnary<RoundOp>},
    {"Floor", 6, kNewestOpset, importFloatUnary<FloorOp>},
    {"Exp", 6, kNewestOpset, importFloatUnary<ExpOp>},
    {"Log", 6, kNewestOpset, importFloatUnary<LogOp>},
    {"Sqrt", 6, kNewestOpset, importFloatUnary<SqrtOp>},
    {"Tanh", 6, kNewestOpset, importFloatUnary<TanhOp>},
    {"Erf", 9, kNewestOpset, importFloatUnary<ErfOp>},
    {"Sigmoid", 6, kNewestOpset, importFloatUnary<SigmoidOp>},
    {"Sin", 7, kNewestOpset, importFloatUnary<SinOp>},
    {"Cos", 7, kNewestOpset, importFloatUnary<CosOp>},
    {"Relu", 6, kNewestOpset, importFloatUnary<ReluOp>},
    {"Gelu", 20, kNewestOpset, importGelu},
    {"Swish", 24, kNewestOpset, importSwish},
    {"Clip", 6, kNewestOpset, importClip},
    {"Equal", 7, kNewestOpset, importBinary<EqualOp>},
    {"Less", 7, kNewestOpset, importBinary<LessOp>},
    {"LessOrEqual", 12, kNewestOpset, importBinary<LessEqualOp>},
    {"Greater", 7, kNewestOpset, importSwapped<LessOp>},
    {"GreaterOrEqual", 12, kNewestOpset, importSwapped<LessEqualOp>},
    {"And", 7, kNewestOpset, importLogic<AndOp>},
    {"Or", 7, kNewestOpset, importLogic<OrOp>},
    {"Xor", 7, kNewestOpset, importXor},
    {"Not", 1, kNewestOpset, importNot},
    {"IsNaN", 9, kNewestOpset, importIsNan},
    {"Where", 9, kNewestOpset, importWhere},
    {"Cast", 9, kNewestOpset, importCast},
    {"CastLike", 15, kNewestOpset, importCastLike},
    {"Dropout", 7, kNewestOpset, importDropout},
};

ArrayRef<OnnxOp> onnxMathOps() { return kOps; }

} // namespace llmc
