// Arithmetic on bf16 and f16, single and in pairs: f32 inside, rounded at the end. The two roundings are as good as
// one, for f32's 24 bits are at least twice the format's 8 or 11 plus 2; a fused product needs rounding to odd.
#include "tests/cudasim/Float16.h"
#include "tests/cudasim/Forms.h"

namespace llmc::cudasim {

namespace {

constexpr auto kSum = [](auto a, auto b) { return a + b; };
constexpr auto kDifference = [](auto a, auto b) { return a - b; };
constexpr auto kProduct = [](auto a, auto b) { return a * b; };
constexpr auto kLower = [](auto a, auto b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b); };
constexpr auto kUpper = [](auto a, auto b) { return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b); };

template <typename T> T half(uint32_t pair, uint32_t index) { return {static_cast<uint16_t>(pair >> (16 * index))}; }
template <typename T> uint32_t join(T low, T high) { return uint32_t(high.bits) << 16 | low.bits; }

/// a·b exactly in f64 plus c there, then to odd in f32 so that the last rounding is the only one.
template <typename T> T fused(T a, T b, T c) {
  double exact = double(toFloat(a)) * double(toFloat(b)) + double(toFloat(c));
  auto rounded = static_cast<float>(exact);
  if (double(rounded) != exact && !std::isnan(exact)) {
    auto bits = std::bit_cast<uint32_t>(rounded);
    if (!(bits & 1)) {
      bool up = std::fabs(exact) > std::fabs(double(rounded));
      bits += up ? 1 : -1;
    }
    rounded = std::bit_cast<float>(bits);
  }
  return fromFloat<T>(rounded);
}

template <typename T, auto f> T one(T a, T b) { return fromFloat<T>(f(toFloat(a), toFloat(b))); }

template <typename T, auto f> FormResult pairOrOne(bool isPair, Type type) {
  using U = uint32_t;
  constexpr auto pair = [](U a, U b) {
    return join(one<T, f>(half<T>(a, 0), half<T>(b, 0)), one<T, f>(half<T>(a, 1), half<T>(b, 1)));
  };
  return Form{isPair ? binary<U, U, U, pair> : binary<T, T, T, one<T, f>>, {type}, {type, type}};
}

template <typename T> FormResult formOf(Mnemonic &mnemonic, bool isPair, Type type) {
  const std::string &name = mnemonic.name();
  using U = uint32_t;
  bool nearest = mnemonic.take("rn");
  if (name == "fma" && nearest) {
    constexpr auto pair = [](U a, U b, U c) {
      return join(fused(half<T>(a, 0), half<T>(b, 0), half<T>(c, 0)),
                  fused(half<T>(a, 1), half<T>(b, 1), half<T>(c, 1)));
    };
    return Form{isPair ? ternary<U, U, U, pair> : ternary<T, T, T, fused<T>>, {type}, {type, type, type}};
  }
  if (name == "add")
    return pairOrOne<T, kSum>(isPair, type);
  if (name == "sub")
    return pairOrOne<T, kDifference>(isPair, type);
  if (name == "mul")
    return pairOrOne<T, kProduct>(isPair, type);
  if (name == "min")
    return pairOrOne<T, kLower>(isPair, type);
  if (name == "max")
    return pairOrOne<T, kUpper>(isPair, type);
  if (name == "neg")
    return Form{isPair ? unary<U, U, [](U a) { return a ^ 0x80008000; }>
                       : unary<uint16_t, uint16_t, [](uint16_t a) { return a ^ 0x8000; }>,
                {type},
                {type}};
  if (name == "abs")
    return Form{isPair ? unary<U, U, [](U a) { return a & 0x7fff7fff; }>
                       : unary<uint16_t, uint16_t, [](uint16_t a) { return a & 0x7fff; }>,
                {type},
                {type}};
  return std::nullopt;
}

} // namespace

FormResult packedForm(Mnemonic &mnemonic) {
  switch (Type type = mnemonic.takeType()) {
  case Type::bf16:
  case Type::bf16x2:
    return formOf<Bfloat>(mnemonic, type == Type::bf16x2, type);
  case Type::f16:
  case Type::f16x2:
    return formOf<Half>(mnemonic, type == Type::f16x2, type);
  default:
    return std::nullopt;
  }
}

} // namespace llmc::cudasim
