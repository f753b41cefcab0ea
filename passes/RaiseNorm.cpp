// Finds layer norm and RMS norm spelled out in small ops. A norm is a product: the row (less its mean, for layer norm),
// one over the root of a mean of squares plus epsilon, and a scale. The product is taken apart, so that the order and
// form of its factors do not matter.
#include "passes/Match.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_RAISENORM
#include "passes/Passes.h.inc"

namespace {
/// The root of a mean of squares: of the deviations from the mean of x when `isCentered`, of x itself otherwise.
struct Deviation {
  Value x;
  bool isCentered;
  double epsilon;
};
struct Norm {
  Deviation deviation;
  Value scale; ///< (…, C)
};
} // namespace

/// x when `value` is x less its mean over the last axis; null otherwise. The mean may be computed anew each time.
static Value uncentered(Value value) {
  value = skipCasts(value);
  Value x, mean;
  if (auto sub = value.getDefiningOp<SubOp>()) {
    x = sub.getA();
    mean = sub.getB();
  } else if (auto add = value.getDefiningOp<AddOp>()) {
    bool isFirst = isa_and_present<NegOp>(add.getA().getDefiningOp());
    auto neg = (isFirst ? add.getA() : add.getB()).getDefiningOp<NegOp>();
    if (!neg)
      return {};
    x = isFirst ? add.getB() : add.getA();
    mean = neg.getA();
  } else {
    return {};
  }
  x = skipCasts(x);
  return meanOf(mean) == x && value.getType() == x.getType() ? x : Value();
}

/// What a root is taken of: mean(d * d) + epsilon.
static std::optional<Deviation> matchVariance(Value value) {
  value = skipUnitReshapes(value);
  double epsilon = 0;
  if (auto add = value.getDefiningOp<AddOp>()) {
    std::optional<double> a = knownNumber(add.getA()), b = knownNumber(add.getB());
    if (!a && !b)
      return std::nullopt;
    epsilon = a ? *a : *b;
    value = a ? add.getB() : add.getA();
  }
  Value squares = meanOf(value), d = squares ? squareRootOf(squares) : Value();
  if (!d)
    return std::nullopt;
  Value x = uncentered(d);
  return Deviation{x ? x : d, bool(x), epsilon};
}

/// The deviation whose root divides the product, and that root.
static std::optional<std::pair<Deviation, Value>> findRoot(const Product &product) {
  for (Value factor : product.numerators)
    if (auto root = skipUnitReshapes(factor).getDefiningOp<RsqrtOp>())
      if (std::optional<Deviation> deviation = matchVariance(root.getA()))
        return std::pair(*deviation, factor);
  for (Value factor : product.denominators)
    if (auto root = skipUnitReshapes(factor).getDefiningOp<SqrtOp>())
      if (std::optional<Deviation> deviation = matchVariance(root.getA()))
        return std::pair(*deviation, factor);
  return std::nullopt;
}

/// A product that is a norm. Where it has a norm's root but is none, `why` says so, keyed by the root.
static std::optional<Norm> matchNorm(Value value, DenseMap<Value, StringRef> &why) {
  std::optional<Product> product = factorize(value);
  auto found = product ? findRoot(*product) : std::nullopt;
  if (!found)
    return std::nullopt;
  auto [deviation, root] = *found;
  auto decline = [&](StringRef reason) {
    why[skipUnitReshapes(root)] = reason;
    return std::nullopt;
  };
  auto isRow = [&, &deviation = deviation](Value factor) {
    return deviation.isCentered ? uncentered(factor) == deviation.x : factor == deviation.x;
  };
  // Again, leaving the row whole: it may be a product itself.
  product = factorize(value, isRow);
  auto xType = cast<RankedTensorType>(deviation.x.getType());
  SmallVector<int64_t> rootShape(xType.getShape());
  rootShape.back() = 1;
  if (cast<RankedTensorType>(root.getType()).getShape() != ArrayRef(rootShape) || xType.getShape().back() == 1)
    return decline("the root is not one for each row");
  unsigned numRows = 0;
  Norm norm{deviation, {}};
  for (Value factor : product->numerators) {
    if (factor == root)
      continue;
    if (isRow(factor))
      ++numRows;
    else if (!norm.scale && isRowVector(factor, xType.getShape().back()))
      norm.scale = factor;
    else
      return decline("a factor is neither the row nor its scale");
  }
  if (numRows != 1 ||
      product->denominators !=
          (llvm::is_contained(product->numerators, root) ? SmallVector<Value>() : SmallVector<Value>{root}))
    return decline("what the root divides is not the row it was computed from");
  if (!norm.scale)
    return decline("there is no scale");
  if (!isClose(product->factor, 1))
    return decline("it is multiplied by a number");
  if (value.getType() != xType)
    return decline("the result has not the row's type");
  return norm;
}

static Operation *build(OpBuilder &builder, Location loc, const Norm &norm, Value bias) {
  auto [x, isCentered, epsilon] = norm.deviation;
  FloatAttr epsilonAttr = builder.getF64FloatAttr(epsilon);
  Value scale = asRowVector(builder, norm.scale);
  if (!isCentered)
    return builder.create<RmsNormOp>(loc, x.getType(), x, scale, epsilonAttr);
  return builder.create<LayerNormOp>(loc, x.getType(), x, scale, bias ? asRowVector(builder, bias) : Value(),
                                     epsilonAttr);
}

namespace {
struct RaiseNorm : impl::RaiseNormBase<RaiseNorm> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    DenseMap<Value, StringRef> why;
    Block &body = program.getBody().front();
    // A sum with a bias first: the product in it is no norm of its own.
    for (AddOp add : llvm::make_early_inc_range(body.getOps<AddOp>()))
      raiseBiased(add, why);
    eraseDeadOps(program);
    for (Operation &op : llvm::make_early_inc_range(body))
      if (isa<MulOp, DivOp>(op))
        if (std::optional<Norm> norm = matchNorm(op.getResult(0), why))
          replace(&op, *norm, Value());
    eraseDeadOps(program);
    for (Operation &op : body)
      if (op.getNumResults() == 1)
        if (auto reason = why.find(op.getResult(0)); reason != why.end())
          remarkOn(&op) << "declined: no norm, " << reason->second;
  }

  void raiseBiased(AddOp add, DenseMap<Value, StringRef> &why) {
    for (auto [product, bias] : {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
      if (product.getType() != add.getType() || !isRowVector(bias, add.getType().getShape().back()))
        continue;
      if (!isa_and_present<MulOp, DivOp>(product.getDefiningOp()))
        continue;
      std::optional<Norm> norm = matchNorm(product, why);
      if (norm && norm->deviation.isCentered)
        return replace(add, *norm, bias);
    }
  }

  void replace(Operation *root, const Norm &norm, Value bias) {
    OpBuilder builder(root);
    Operation *raised = build(builder, root->getLoc(), norm, bias);
    remarkOn(raised) << "raised " << raised->getName().stripDialect() << " over rows of "
                     << cast<RankedTensorType>(norm.scale.getType()).getShape().back();
    root->getResult(0).replaceAllUsesWith(raised->getResult(0));
    root->erase();
  }
};
} // namespace

} // namespace llmc
