// Each function reduces its argument to a small range and evaluates a minimax polynomial there (fitted for least
// relative error). Written over Lanes, so vectors and a GPU thread's scalars share it. Products and sums may contract
// to fused multiply-adds; none relies on it.
#include "backend/codegen/MathExpansion.h"
#include "backend/codegen/LaneOps.h"

#include "ir/Lanes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/BuiltinTypes.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace llmc {

//===-- Bits

static Lanes bitsOf(Lanes a) { return convert<arith::BitcastOp>(a, a.builder->getI32Type()); }
static Lanes floatOf(Lanes bits) { return convert<arith::BitcastOp>(bits, bits.builder->getF32Type()); }
static Lanes shiftLeft(Lanes a, int bits) { return apply<arith::ShLIOp>(a, a.constant(bits)); }
static Lanes shiftRight(Lanes a, int bits) { return apply<arith::ShRSIOp>(a, a.constant(bits)); }
static Lanes bitwiseAnd(Lanes a, Lanes b) { return apply<arith::AndIOp>(a, b); }
static Lanes bitwiseOr(Lanes a, Lanes b) { return apply<arith::OrIOp>(a, b); }

/// 2^n for an integer n in [-126, 127].
static Lanes powerOfTwo(Lanes n) { return floatOf(shiftLeft(n + n.constant(127), 23)); }
/// Within [low, high]; a NaN stays one.
static Lanes clamp(Lanes a, double low, double high) {
  Lanes above = select(less(a, low), low, a);
  return select(less(above.constant(high), above), high, above);
}

/// c[0] + c[1] x + c[2] x^2 + …
static Lanes polynomial(ArrayRef<double> c, Lanes x) {
  Lanes sum = x.constant(c.back());
  for (double next : llvm::reverse(c.drop_back()))
    sum = sum * x + next;
  return sum;
}

//===-- exp and what follows from it

namespace {
/// x scaled = n ln 2 + r with |r| <= ln 2 / 2, and q = e^r - 1.
struct ReducedExp {
  Lanes n;       ///< an integer, in f32
  Lanes shifted; ///< n + kMagic: n is in the low bits
  Lanes q;
};
} // namespace

/// Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits.
static constexpr double kMagic = 12582912.0;

/// Of scale * x. ln 2 is split so that n times its high part is exact.
static ReducedExp reduceExp(Lanes x, double scale) {
  static constexpr double kLn2High = 0.693359375, kLn2Low = -2.12194440054690583e-4;
  static constexpr double kCoefficients[] = {0.4999999305072872, 0.16666514791440742, 0.04166845678657828,
                                             0.00836941883170234, 0.0013813144543549244};
  Lanes shifted = x * (scale * std::numbers::log2e) + kMagic;
  Lanes n = shifted - kMagic;
  Lanes r = x * scale - n * kLn2High;
  r = r - n * kLn2Low;
  Lanes q = r * r * polynomial(kCoefficients, r) + r;
  return {n, shifted, q};
}

/// n as i32.
static Lanes integerOf(const ReducedExp &e) { return bitsOf(e.shifted) - bitsOf(e.shifted.constant(kMagic)); }

/// a 2^n by VSCALEFPS: one rounding for results beyond the normal range, or infinity.
static Lanes scaleByInstruction(Lanes a, Lanes n) {
  OpBuilder &builder = *a.builder;
  Value allLanes = builder.create<arith::ConstantIntOp>(a.loc, -1, 16);
  Value rounding = builder.create<arith::ConstantIntOp>(a.loc, 4, 32); // the one in force
  auto scaled = builder.create<LLVM::CallIntrinsicOp>(a.loc, a.value.getType(),
                                                      builder.getStringAttr("llvm.x86.avx512.mask.scalef.ps.512"),
                                                      ValueRange{a.value, n.value, a.value, allLanes, rounding});
  return a.with(scaled.getResult(0));
}

/// 2^n for |n| < 127.
static Lanes scaleOf(const ReducedExp &e, bool isAvx512) {
  return isAvx512 ? scaleByInstruction(e.n.constant(1), e.n) : powerOfTwo(integerOf(e));
}

/// e^x = 2^n (1 + q). Without the instruction 2^n is applied in two factors, so that results beyond the normal range
/// round once or overflow.
static Lanes expandExp(Lanes x, bool isAvx512) {
  ReducedExp e = reduceExp(clamp(x, -105.0, 89.5), 1.0);
  if (isAvx512)
    return scaleByInstruction(e.q + 1.0, e.n);
  Lanes n = integerOf(e), half = shiftRight(n, 1);
  return (e.q + 1.0) * powerOfTwo(half) * powerOfTwo(n - half);
}

/// tanh x = (e^2x - 1) / (e^2x - 1 + 2), with e^2x - 1 = 2^n q + (2^n - 1): exact near zero. Beyond 9.1 it is 1 in f32.
static Lanes expandTanh(Lanes x, bool isAvx512) {
  ReducedExp e = reduceExp(clamp(x, -9.1, 9.1), 2.0);
  Lanes scale = scaleOf(e, isAvx512);
  Lanes m = scale * e.q + (scale - 1.0);
  return m / (m + 2.0);
}

/// An odd polynomial near zero; 1 - e^polynomial(|x|) above, whose exponent is fitted to log erfc. Beyond 3.95 it is 1
/// in f32.
static Lanes expandErf(Lanes x, bool isAvx512) {
  static constexpr double kNear[] = {0.12837914231572417,   -0.37612445942112904,  0.11281320725659064,
                                     -0.026748865197285414, 0.0049675078186871766, -0.0005862086041751969};
  static constexpr double kFar[] = {-0.00022849263081435565, -1.1275409159547092,  -0.6374076982893764,
                                    -0.10373486898989115,    0.022132596814384276, -0.0030196721541450584,
                                    0.00019354787533591058};
  Lanes magnitude = clamp(abs(x), 0, 3.95);
  Lanes near = x * polynomial(kNear, x * x) + x;
  ReducedExp e = reduceExp(polynomial(kFar, magnitude), 1.0);
  Lanes scale = scaleOf(e, isAvx512);
  Lanes far = 1.0 - (scale * e.q + scale);
  Lanes sign = bitwiseAnd(bitsOf(x), bitsOf(x.constant(-0.0)));
  return select(less(magnitude, 0.95), near, floatOf(bitwiseOr(bitsOf(far), sign)));
}

//===-- log

/// x = m 2^e with m in [sqrt 1/2, sqrt 2); log m = f - f^2 / 2 + f^3 P(f), f = m - 1. Subnormals are scaled up first.
static Lanes expandLog(Lanes x) {
  static constexpr double kSmallest = std::numeric_limits<float>::min(),
                          kInfinity = std::numeric_limits<double>::infinity();
  static constexpr double kCoefficients[] = {0.3333331260406283,   -0.2500000959939883,  0.20002118658817256,
                                             -0.16667995853876574, 0.14219552359821702,  -0.12405588921809943,
                                             0.11888162280961537,  -0.11675651810120126, 0.06746640465430526};
  Lanes isSmall = less(x, kSmallest);
  Lanes bits = bitsOf(select(isSmall, x * 8388608.0, x));
  Lanes exponent = shiftRight(bits - bits.constant(0x3f3504f3), 23);
  Lanes f = floatOf(bits - shiftLeft(exponent, 23)) - 1.0;
  Lanes e = select(isSmall, exponent - exponent.constant(23), exponent).castTo(x.elementType());
  Lanes square = f * f;
  Lanes small = square * f * polynomial(kCoefficients, f) + e * -2.12194440054690583e-4 - square * 0.5;
  Lanes result = f + small + e * 0.693359375;
  Lanes special =
      select(equal(x, x.constant(0)), -kInfinity, select(less(x, 0.0), std::numeric_limits<double>::quiet_NaN(), x));
  return select(logicalAnd(less(x.constant(0), x), less(x, kInfinity)), result, special);
}

//===-- sin and cos

/// sin (x + quarters * pi/2). The quarter turn is found in f64, so that arguments far from zero keep their precision.
static Lanes expandSine(Lanes x, int quarters) {
  static constexpr double kMagic = 6755399441055744.0, kPiOver2High = 1.57079632673412561417,
                          kPiOver2Low = 6.07710050650619224932e-11;
  static constexpr double kSine[] = {-0.16666666640588218, 0.008333329280526196, -0.00019839304415947168,
                                     2.718046475173437e-06};
  static constexpr double kCosine[] = {0.041666645554470395, -0.001388730986668659, 2.4432412990874086e-05};
  OpBuilder &builder = *x.builder;
  Lanes wide = convert<arith::ExtFOp>(x, builder.getF64Type());
  Lanes shifted = wide * (2 * std::numbers::inv_pi) + kMagic;
  Lanes n = shifted - kMagic;
  Lanes r = convert<arith::TruncFOp>(wide - n * kPiOver2High - n * kPiOver2Low, builder.getF32Type());
  Lanes turn = convert<arith::BitcastOp>(shifted, builder.getI64Type()).castTo(builder.getI32Type());
  turn = turn + turn.constant(quarters);
  Lanes square = r * r;
  Lanes sine = square * r * polynomial(kSine, square) + r;
  Lanes cosine = square * square * polynomial(kCosine, square) - square * 0.5 + 1.0;
  Lanes isCosine = bitwiseAnd(turn, turn.constant(1));
  Lanes sign = shiftLeft(bitwiseAnd(turn, turn.constant(2)), 30);
  return floatOf(apply<arith::XOrIOp>(bitsOf(select(isCosine, cosine, sine)), sign));
}

//===-- Integer division

/// Zero by zero divisors; a / -1 is -a, whose overflow wraps.
static Lanes expandDivision(Lanes a, Lanes b) {
  Lanes zero = b.constant(0), isZero = equal(b, zero), isMinusOne = equal(b, b.constant(-1));
  Lanes safe = select(logicalOr(isZero, isMinusOne), b.constant(1), b);
  Lanes quotient = a.with(a.builder->create<arith::DivSIOp>(a.loc, a.value, safe.value));
  return select(isZero, zero, select(isMinusOne, zero - a, quotient));
}

void expandMath(Operation *root, bool isAvx512) {
  SmallVector<Operation *> found;
  root->walk([&](Operation *op) {
    if (isa<math::ExpOp, math::LogOp, math::TanhOp, math::ErfOp, math::SinOp, math::CosOp, arith::DivSIOp>(op))
      found.push_back(op);
  });
  for (Operation *op : found) {
    OpBuilder builder(op);
    auto operand = [&](unsigned i) { return Lanes{&builder, op->getLoc(), op->getOperand(i)}; };
    Lanes result = isa<math::ExpOp>(op)    ? expandExp(operand(0), isAvx512)
                   : isa<math::LogOp>(op)  ? expandLog(operand(0))
                   : isa<math::TanhOp>(op) ? expandTanh(operand(0), isAvx512)
                   : isa<math::ErfOp>(op)  ? expandErf(operand(0), isAvx512)
                   : isa<math::SinOp>(op)  ? expandSine(operand(0), 0)
                   : isa<math::CosOp>(op)  ? expandSine(operand(0), 1)
                                           : expandDivision(operand(0), operand(1));
    op->getResult(0).replaceAllUsesWith(result.value);
    op->erase();
  }
}

} // namespace llmc
