// Float arithmetic in f32 and f64, rounded to nearest. The approximate instructions are computed as exactly as the
// host's library does: within their documented error, not bit for bit what a GPU gives.
#include "tests/cudasim/Forms.h"
#include "tests/cudasim/Lanes.h"

#include <cmath>

namespace llmc::cudasim {

namespace {

/// .ftz: subnormals become zeros of their sign.
inline float flushed(float value) { return std::fabs(value) < 0x1p-126f ? std::copysign(0.0f, value) : value; }

template <auto f> FormResult unaryForm(Mnemonic &mnemonic) {
  bool flushes = mnemonic.take("ftz");
  Type type = mnemonic.takeType();
  if (type == Type::f64 && !flushes)
    return Form{unary<double, double, f>, {type}, {type}};
  if (type != Type::f32)
    return std::nullopt;
  return Form{flushes ? unary<float, float, [](float a) { return flushed(f(flushed(a))); }> : unary<float, float, f>,
              {type},
              {type}};
}

template <auto f> FormResult binaryForm(Mnemonic &mnemonic) {
  bool flushes = mnemonic.take("ftz");
  Type type = mnemonic.takeType();
  if (type == Type::f64 && !flushes)
    return Form{binary<double, double, double, f>, {type}, {type, type}};
  if (type != Type::f32)
    return std::nullopt;
  constexpr auto flushing = [](float a, float b) { return flushed(f(flushed(a), flushed(b))); };
  return Form{flushes ? binary<float, float, float, flushing> : binary<float, float, float, f>, {type}, {type, type}};
}

template <auto f> FormResult ternaryForm(Mnemonic &mnemonic) {
  bool flushes = mnemonic.take("ftz");
  Type type = mnemonic.takeType();
  if (type == Type::f64 && !flushes)
    return Form{ternary<double, double, double, f>, {type}, {type, type, type}};
  if (type != Type::f32)
    return std::nullopt;
  constexpr auto flushing = [](float a, float b, float c) { return flushed(f(flushed(a), flushed(b), flushed(c))); };
  return Form{
      flushes ? ternary<float, float, float, flushing> : ternary<float, float, float, f>, {type}, {type, type, type}};
}

// One NaN gives the other operand; -0 is below +0.
constexpr auto kMinimum = [](auto a, auto b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? b : a;
  return a == b ? (std::signbit(a) ? a : b) : (a < b ? a : b);
};
constexpr auto kMaximum = [](auto a, auto b) {
  if (std::isnan(a) || std::isnan(b))
    return std::isnan(a) ? b : a;
  return a == b ? (std::signbit(a) ? b : a) : (a < b ? b : a);
};
template <auto f>
constexpr auto kKeepsNan = [](auto a, auto b) {
  return std::isnan(a) ? a : std::isnan(b) ? b : f(a, b);
};

constexpr auto kSum = [](auto a, auto b) { return a + b; };
constexpr auto kDifference = [](auto a, auto b) { return a - b; };
constexpr auto kProduct = [](auto a, auto b) { return a * b; };
constexpr auto kQuotient = [](auto a, auto b) { return a / b; };

/// How a result is rounded: .rn may be left out where a + b or a * b allows it; the others exist as .approx too.
bool takeNearest(Mnemonic &mnemonic) { return mnemonic.take("rn"); }
bool takeNearestOrApprox(Mnemonic &mnemonic) { return !mnemonic.takeOneOf({"rn", "approx"}).empty(); }

FormResult dividing(const std::string &name, Mnemonic &mnemonic) {
  if (name == "div") {
    if (mnemonic.takeOneOf({"rn", "approx", "full"}).empty())
      return std::nullopt;
    return binaryForm<kQuotient>(mnemonic);
  }
  if (!takeNearestOrApprox(mnemonic))
    return std::nullopt;
  if (name == "rcp")
    return unaryForm<[](auto a) { return 1 / a; }>(mnemonic);
  return unaryForm<[](auto a) { return std::sqrt(a); }>(mnemonic);
}

FormResult approximate(const std::string &name, Mnemonic &mnemonic) {
  if (!mnemonic.take("approx"))
    return std::nullopt;
  if (name == "rsqrt")
    return unaryForm<[](auto a) { return 1 / std::sqrt(a); }>(mnemonic);
  FormResult form = name == "ex2"   ? unaryForm<[](auto a) { return std::exp2(a); }>(mnemonic)
                    : name == "lg2" ? unaryForm<[](auto a) { return std::log2(a); }>(mnemonic)
                    : name == "sin" ? unaryForm<[](auto a) { return std::sin(a); }>(mnemonic)
                    : name == "cos" ? unaryForm<[](auto a) { return std::cos(a); }>(mnemonic)
                                    : unaryForm<[](auto a) { return std::tanh(a); }>(mnemonic);
  return form && form->dst[0] == Type::f32 ? form : std::nullopt;
}

} // namespace

FormResult floatForm(Mnemonic &mnemonic) {
  const std::string &name = mnemonic.name();
  if (name == "add" || name == "sub" || name == "mul") {
    takeNearest(mnemonic);
    return name == "add"   ? binaryForm<kSum>(mnemonic)
           : name == "sub" ? binaryForm<kDifference>(mnemonic)
                           : binaryForm<kProduct>(mnemonic);
  }
  if (name == "fma" || name == "mad")
    return takeNearest(mnemonic) ? ternaryForm<[](auto a, auto b, auto c) { return std::fma(a, b, c); }>(mnemonic)
                                 : std::nullopt;
  if (name == "div" || name == "rcp" || name == "sqrt")
    return dividing(name, mnemonic);
  if (name == "rsqrt" || name == "ex2" || name == "lg2" || name == "sin" || name == "cos" || name == "tanh")
    return approximate(name, mnemonic);
  if (name == "min")
    return mnemonic.take("NaN") ? binaryForm<kKeepsNan<kMinimum>>(mnemonic) : binaryForm<kMinimum>(mnemonic);
  if (name == "max")
    return mnemonic.take("NaN") ? binaryForm<kKeepsNan<kMaximum>>(mnemonic) : binaryForm<kMaximum>(mnemonic);
  if (name == "neg")
    return unaryForm<[](auto a) { return -a; }>(mnemonic);
  if (name == "abs")
    return unaryForm<[](auto a) { return std::fabs(a); }>(mnemonic);
  if (name == "copysign")
    return binaryForm<[](auto a, auto b) { return std::copysign(b, a); }>(mnemonic);
  return std::nullopt;
}

} // namespace llmc::cudasim
