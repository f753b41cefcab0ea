// Lanes: one arith or math op per operation; which one depends on the element type.
#include "ir/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

#include <limits>

using namespace mlir;

namespace llmc {

Type Lanes::elementType() const { return getElementTypeOrSelf(value.getType()); }

/// `scalar` in the shape of `like`: a vector type of the same lanes, or the scalar itself.
static Type shapedLike(Type like, Type scalar) {
  if (auto vector = dyn_cast<VectorType>(like))
    return VectorType::get(vector.getShape(), scalar);
  return scalar;
}

Lanes Lanes::constant(double number) const {
  Type element = elementType();
  TypedAttr attribute =
      isFloat() ? TypedAttr(FloatAttr::get(element, number)) : TypedAttr(IntegerAttr::get(element, int64_t(number)));
  if (auto vector = dyn_cast<VectorType>(value.getType()))
    attribute = DenseElementsAttr::get(vector, Attribute(attribute));
  return with(builder->create<arith::ConstantOp>(loc, attribute));
}

template <typename FloatOp, typename IntOp> static Lanes binary(Lanes a, Lanes b) {
  if (a.isFloat())
    return a.with(a.builder->create<FloatOp>(a.loc, a.value, b.value));
  return a.with(a.builder->create<IntOp>(a.loc, a.value, b.value));
}

template <typename Op> static Lanes unary(Lanes a) { return a.with(a.builder->create<Op>(a.loc, a.value)); }

static Lanes compare(Lanes a, Lanes b, arith::CmpFPredicate ofFloats, arith::CmpIPredicate ofIntegers) {
  if (a.isFloat())
    return a.with(a.builder->create<arith::CmpFOp>(a.loc, ofFloats, a.value, b.value));
  return a.with(a.builder->create<arith::CmpIOp>(a.loc, ofIntegers, a.value, b.value));
}

Lanes Lanes::castTo(Type target) const {
  Type source = elementType(), type = shapedLike(value.getType(), target);
  if (source == target)
    return *this;
  if (target.isInteger(1))
    return logicalNot(equal(*this, constant(0)));
  if (isFloat())
    return with(isa<FloatType>(target) ? Value() : builder->create<arith::FPToSIOp>(loc, type, value));
  if (isa<FloatType>(target))
    return with(source.isInteger(1) ? builder->create<arith::UIToFPOp>(loc, type, value).getResult()
                                    : builder->create<arith::SIToFPOp>(loc, type, value).getResult());
  unsigned from = source.getIntOrFloatBitWidth(), to = target.getIntOrFloatBitWidth();
  if (from > to)
    return with(builder->create<arith::TruncIOp>(loc, type, value));
  return with(from == 1 ? builder->create<arith::ExtUIOp>(loc, type, value).getResult()
                        : builder->create<arith::ExtSIOp>(loc, type, value).getResult());
}

Lanes operator+(Lanes a, Lanes b) { return binary<arith::AddFOp, arith::AddIOp>(a, b); }
Lanes operator-(Lanes a, Lanes b) { return binary<arith::SubFOp, arith::SubIOp>(a, b); }
Lanes operator*(Lanes a, Lanes b) { return binary<arith::MulFOp, arith::MulIOp>(a, b); }
Lanes operator/(Lanes a, Lanes b) { return binary<arith::DivFOp, arith::DivSIOp>(a, b); }
Lanes operator-(Lanes a) { return a.isFloat() ? unary<arith::NegFOp>(a) : a.constant(0) - a; }

Lanes exp(Lanes a) { return unary<math::ExpOp>(a); }
Lanes log(Lanes a) { return unary<math::LogOp>(a); }
Lanes sqrt(Lanes a) { return unary<math::SqrtOp>(a); }
Lanes rsqrt(Lanes a) { return 1.0 / sqrt(a); }
Lanes tanh(Lanes a) { return unary<math::TanhOp>(a); }
Lanes erf(Lanes a) { return unary<math::ErfOp>(a); }
Lanes sin(Lanes a) { return unary<math::SinOp>(a); }
Lanes cos(Lanes a) { return unary<math::CosOp>(a); }
Lanes abs(Lanes a) { return a.isFloat() ? unary<math::AbsFOp>(a) : unary<math::AbsIOp>(a); }
Lanes floor(Lanes a) { return unary<math::FloorOp>(a); }
Lanes round(Lanes a) { return unary<math::RoundEvenOp>(a); }
// Of |a|, with the sign that an integer b gives a negative a. Constant exponents that are small integers or halves come
// here only where PowOp's canonicalizer does not run.
Lanes pow(Lanes a, Lanes b) {
  Lanes isInteger = equal(floor(b), b);
  Lanes isOdd = logicalAnd(isInteger, logicalNot(equal(floor(b * 0.5) * 2.0, b)));
  Lanes magnitude = exp(b * log(abs(a)));
  Lanes negative = select(isInteger, select(isOdd, -magnitude, magnitude), std::numeric_limits<double>::quiet_NaN());
  Lanes pole = select(isOdd, 1.0 / a, std::numeric_limits<double>::infinity());
  Lanes atZero = select(less(b, 0), pole, 0.0);
  Lanes power = select(equal(a, a.constant(0)), atZero, select(less(a, 0), negative, magnitude));
  return select(equal(b, b.constant(0)), 1.0, power);
}

Lanes max(Lanes a, Lanes b) { return binary<arith::MaximumFOp, arith::MaxSIOp>(a, b); }
Lanes min(Lanes a, Lanes b) { return binary<arith::MinimumFOp, arith::MinSIOp>(a, b); }
Lanes equal(Lanes a, Lanes b) { return compare(a, b, arith::CmpFPredicate::OEQ, arith::CmpIPredicate::eq); }
Lanes less(Lanes a, Lanes b) { return compare(a, b, arith::CmpFPredicate::OLT, arith::CmpIPredicate::slt); }
Lanes lessEqual(Lanes a, Lanes b) { return compare(a, b, arith::CmpFPredicate::OLE, arith::CmpIPredicate::sle); }
Lanes isNan(Lanes a) { return compare(a, a, arith::CmpFPredicate::UNO, arith::CmpIPredicate::ne); }

/// As i1.
static Lanes truth(Lanes a) { return a.castTo(a.builder->getI1Type()); }
Lanes logicalAnd(Lanes a, Lanes b) {
  return a.with(a.builder->create<arith::AndIOp>(a.loc, truth(a).value, truth(b).value));
}
Lanes logicalOr(Lanes a, Lanes b) {
  return a.with(a.builder->create<arith::OrIOp>(a.loc, truth(a).value, truth(b).value));
}
Lanes logicalNot(Lanes a) {
  Lanes condition = truth(a);
  return a.with(a.builder->create<arith::XOrIOp>(a.loc, condition.value, condition.constant(1).value));
}
Lanes select(Lanes condition, Lanes a, Lanes b) {
  return a.with(a.builder->create<arith::SelectOp>(a.loc, truth(condition).value, a.value, b.value));
}

} // namespace llmc
