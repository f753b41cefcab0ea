// Graph expressions: each operation builds one llmc op. Constants fold by the ops' own folders.
#include "ir/Dialect.h"

using namespace mlir;

namespace llmc {

template <typename Op, typename... Args> static Expr build(Expr a, Args &&...args) {
  return a.with(a.builder->createOrFold<Op>(a.loc, std::forward<Args>(args)...));
}

Expr Expr::constant(double number) const {
  HostTensor scalar = HostTensor::zeros(RankedTensorType::get({}, type().getElementType()));
  if (scalar.isFloat())
    scalar.floats[0] = number;
  else
    scalar.integers[0] = int64_t(number);
  return with(builder->create<ConstantOp>(loc, scalar.type, scalar.toAttribute()));
}

Expr operator+(Expr a, Expr b) { return build<AddOp>(a, a.value, b.value); }
Expr operator-(Expr a, Expr b) { return build<SubOp>(a, a.value, b.value); }
Expr operator*(Expr a, Expr b) { return build<MulOp>(a, a.value, b.value); }
Expr operator/(Expr a, Expr b) { return build<DivOp>(a, a.value, b.value); }
Expr operator-(Expr a) { return build<NegOp>(a, a.value.getType(), a.value); }
Expr exp(Expr a) { return build<ExpOp>(a, a.value.getType(), a.value); }
Expr log(Expr a) { return build<LogOp>(a, a.value.getType(), a.value); }
Expr sqrt(Expr a) { return build<SqrtOp>(a, a.value.getType(), a.value); }
Expr rsqrt(Expr a) { return build<RsqrtOp>(a, a.value.getType(), a.value); }
Expr sigmoid(Expr a) { return build<SigmoidOp>(a, a.value.getType(), a.value); }
Expr sin(Expr a) { return build<SinOp>(a, a.value.getType(), a.value); }
Expr cos(Expr a) { return build<CosOp>(a, a.value.getType(), a.value); }
Expr pow(Expr a, Expr b) { return build<PowOp>(a, a.value, b.value); }
Expr max(Expr a, Expr b) { return build<MaxOp>(a, a.value, b.value); }
Expr min(Expr a, Expr b) { return build<MinOp>(a, a.value, b.value); }
Expr equal(Expr a, Expr b) { return build<EqualOp>(a, a.value, b.value); }
Expr less(Expr a, Expr b) { return build<LessOp>(a, a.value, b.value); }
Expr logicalNot(Expr a) { return build<NotOp>(a, a.value.getType(), a.value); }
Expr select(Expr condition, Expr a, Expr b) { return build<SelectOp>(a, condition.value, a.value, b.value); }

Expr reduceSum(Expr a, ArrayRef<int64_t> axes) {
  return axes.empty() ? a : build<ReduceSumOp>(a, a.value, a.builder->getDenseI64ArrayAttr(axes));
}
Expr reduceMax(Expr a, ArrayRef<int64_t> axes) {
  return axes.empty() ? a : build<ReduceMaxOp>(a, a.value, a.builder->getDenseI64ArrayAttr(axes));
}

Expr reshape(Expr a, ArrayRef<int64_t> shape) {
  if (a.shape() == shape)
    return a;
  return build<ReshapeOp>(a, RankedTensorType::get(shape, a.type().getElementType()), a.value);
}
Expr transpose(Expr a, ArrayRef<int64_t> permutation) {
  return build<TransposeOp>(a, a.value, a.builder->getDenseI64ArrayAttr(permutation));
}
Expr broadcastTo(Expr a, ArrayRef<int64_t> shape) {
  if (a.shape() == shape)
    return a;
  return build<BroadcastToOp>(a, RankedTensorType::get(shape, a.type().getElementType()), a.value);
}
Expr cast(Expr a, Type elementType) {
  if (a.type().getElementType() == elementType)
    return a;
  return build<CastOp>(a, RankedTensorType::get(a.shape(), elementType), a.value);
}
// Not folded: an iota in a kernel costs nothing, a folded one is memory.
Expr iota(ExprScope scope, RankedTensorType type, int64_t dim) {
  return scope(scope.builder.create<IotaOp>(scope.loc, type, scope.builder.getI64IntegerAttr(dim)));
}
Expr zeros(ExprScope scope, RankedTensorType type) {
  return scope(scope.builder.create<ConstantOp>(scope.loc, type, cast<ElementsAttr>(scope.builder.getZeroAttr(type))));
}

Expr sumTo(Expr a, ArrayRef<int64_t> shape) {
  if (a.shape() == shape)
    return a;
  int64_t missing = a.rank() - int64_t(shape.size());
  SmallVector<int64_t> axes;
  for (int64_t d = 0; d < a.rank(); ++d)
    if (d < missing || (shape[d - missing] == 1 && a.shape()[d] != 1))
      axes.push_back(d);
  return reshape(reduceSum(a, axes), shape);
}

SmallVector<Value> sumToOperands(Operation *op, ArrayRef<Expr> gradients) {
  SmallVector<Value> sums;
  for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), gradients)) {
    if (!gradient.value) {
      sums.push_back({});
      continue;
    }
    // A gradient that does not depend on dy's shape (a splat) is brought to the result's shape first.
    auto operandType = cast<RankedTensorType>(operand.getType());
    auto resultShape = cast<RankedTensorType>(op->getResult(0).getType()).getShape();
    sums.push_back(sumTo(broadcastTo(gradient, resultShape), operandType.getShape()));
  }
  return sums;
}

} // namespace llmc
