// Finds GELU (by erf or tanh) and SiLU spelled out in small ops. Each is x times a gate of x: the product is taken
// apart, and what stands inside the gate is read as a polynomial of x, so that the order and form of the arithmetic do
// not matter.
#include "passes/Match.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

#include <algorithm>

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_RAISEACTIVATION
#include "passes/Passes.h.inc"

namespace {
enum class Kind { gelu, approximateGelu, silu };

/// factor * gate, where gate is 1 + erf(u), 1 + tanh(u), sigmoid(u) or, as a divisor, 1 + exp(-u).
struct Gate {
  Kind kind;
  double factor;
  Value argument;
  bool isNegated; ///< the argument is -u
};
} // namespace

/// What `value` is as a factor (or, if `isInverse`, as a divisor) of an activation.
static std::optional<Gate> matchGate(Value value, bool isInverse) {
  if (auto sigmoid = value.getDefiningOp<SigmoidOp>(); sigmoid && !isInverse)
    return Gate{Kind::silu, 1, sigmoid.getA(), false};
  auto add = value.getDefiningOp<AddOp>();
  if (!add)
    return std::nullopt;
  std::optional<double> a = knownNumber(add.getA()), b = knownNumber(add.getB());
  if (!a && !b)
    return std::nullopt;
  double constant = a ? *a : *b;
  std::optional<Product> product = factorize(a ? add.getB() : add.getA());
  if (!product || product->numerators.size() != 1 || !product->denominators.empty() ||
      !isClose(product->factor, constant))
    return std::nullopt;
  Operation *function = product->numerators[0].getDefiningOp();
  if (isInverse)
    return isa_and_present<ExpOp>(function)
               ? std::optional(Gate{Kind::silu, 1 / constant, function->getOperand(0), true})
               : std::nullopt;
  if (isa_and_present<ErfOp, TanhOp>(function))
    return Gate{isa<ErfOp>(function) ? Kind::gelu : Kind::approximateGelu, constant, function->getOperand(0), false};
  return std::nullopt;
}

/// Whether the gate's argument is, of x, what the activation wants: x / sqrt 2, sqrt(2/pi) (x + 0.044715 x^3), x.
static bool isArgumentOf(const Gate &gate, Value x) {
  std::optional<Polynomial> u = polynomialOf(gate.argument, x);
  if (!u)
    return false;
  double slope = gate.isNegated ? -(*u)[1] : (*u)[1], cube = gate.isNegated ? -(*u)[3] : (*u)[3];
  if ((*u)[0] != 0 || (*u)[2] != 0)
    return false;
  if (gate.kind == Kind::approximateGelu)
    return isClose(slope, std::sqrt(2 / std::numbers::pi), kRoundedTolerance) &&
           isClose(cube / slope, 0.044715, kRoundedTolerance);
  double wanted = gate.kind == Kind::gelu ? std::numbers::sqrt2 / 2 : 1;
  return cube == 0 && isClose(slope, wanted, kRoundedTolerance);
}

/// Every value a product tree is made of, inner products too.
static void collectFactors(Value value, unsigned depth, SmallVectorImpl<Value> &factors) {
  value = skipCasts(value);
  factors.push_back(value);
  Operation *op = value.getDefiningOp();
  if (depth == 0 || !isa_and_present<MulOp, DivOp>(op))
    return;
  collectFactors(op->getOperand(0), depth - 1, factors);
  if (isa<MulOp>(op))
    collectFactors(op->getOperand(1), depth - 1, factors);
}

/// The gate in a product, and whether it divides.
static std::optional<std::pair<Gate, Value>> findGate(const Product &product) {
  for (bool isInverse : {false, true})
    for (Value factor : isInverse ? product.denominators : product.numerators)
      if (std::optional<Gate> gate = matchGate(factor, isInverse))
        return std::pair(*gate, factor);
  return std::nullopt;
}

/// x and the kind when `root` is an activation of x.
static std::optional<std::pair<Kind, Value>> matchActivation(Operation *root) {
  Value value = root->getResult(0);
  std::optional<Product> product = factorize(value);
  auto found = product ? findGate(*product) : std::nullopt;
  if (!found)
    return std::nullopt;
  auto [gate, gateValue] = *found;
  SmallVector<Value> candidates;
  collectFactors(value, 4, candidates);
  for (Value x : ArrayRef(candidates).drop_front()) {
    if (x == gateValue || x.getType() != value.getType() || !isArgumentOf(gate, x))
      continue;
    // What remains must be x once, the gate once and the right number.
    std::optional<Product> rest =
        factorize(value, [&, gateValue = gateValue](Value v) { return v == x || v == gateValue; });
    auto isExactly = [&](ArrayRef<Value> numerators, ArrayRef<Value> denominators) {
      return std::ranges::is_permutation(rest->numerators, numerators) && ArrayRef(rest->denominators) == denominators;
    };
    bool isGateInverse = llvm::is_contained(product->denominators, gateValue);
    if (!rest || !(isGateInverse ? isExactly({x}, {gateValue}) : isExactly({x, gateValue}, {})))
      continue;
    if (isClose(rest->factor * gate.factor, gate.kind == Kind::silu ? 1 : 0.5))
      return std::pair(gate.kind, x);
  }
  return std::nullopt;
}

static Operation *build(OpBuilder &builder, Location loc, Kind kind, Value x) {
  if (kind == Kind::silu)
    return builder.create<SiluOp>(loc, x.getType(), x);
  return builder.create<GeluOp>(loc, x.getType(), x, kind == Kind::approximateGelu);
}

/// Whether `op` is the function of a gate that is still there.
static bool isLeftOver(Operation *op) {
  auto makesGate = [](Operation *user) {
    return user->getNumResults() == 1 && matchGate(user->getResult(0), /*isInverse=*/false);
  };
  return isa<ErfOp>(op) || (isa<TanhOp>(op) && llvm::any_of(op->getUsers(), makesGate));
}

namespace {
struct RaiseActivation : impl::RaiseActivationBase<RaiseActivation> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    Block &body = program.getBody().front();
    for (Operation &op : llvm::make_early_inc_range(body)) {
      if (!isa<MulOp, DivOp>(op))
        continue;
      auto activation = matchActivation(&op);
      if (!activation)
        continue;
      auto [kind, x] = *activation;
      OpBuilder builder(&op);
      Operation *raised = build(builder, op.getLoc(), kind, x);
      remarkOn(raised) << "raised " << raised->getName().stripDialect()
                       << (kind == Kind::approximateGelu ? " by tanh"
                           : kind == Kind::gelu          ? " by erf"
                                                         : "");
      op.getResult(0).replaceAllUsesWith(raised->getResult(0));
      op.erase();
    }
    eraseDeadOps(program);
    for (Operation &op : body)
      if (isLeftOver(&op))
        remarkOn(&op) << "declined: " << op.getName().stripDialect() << " is no part of a gelu";
  }
};
} // namespace

} // namespace llmc
