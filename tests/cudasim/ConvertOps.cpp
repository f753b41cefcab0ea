// cvt between all widths, and mov. Float to integer saturates and turns NaN into 0, as PTX says.
#include "tests/cudasim/Float16.h"
#include "tests/cudasim/Forms.h"

#include <limits>

namespace llmc::cudasim {

namespace {

enum class Rounding { nearest, zero, down, up };

template <typename T> T roundedToInteger(T value, Rounding rounding) {
  switch (rounding) {
  case Rounding::nearest:
    return std::nearbyint(value);
  case Rounding::zero:
    return std::trunc(value);
  case Rounding::down:
    return std::floor(value);
  case Rounding::up:
    return std::ceil(value);
  }
  return value;
}

template <typename Dst, typename Src, Rounding rounding> Dst toInteger(Src value) {
  if (std::isnan(value))
    return 0;
  double rounded = roundedToInteger(static_cast<double>(value), rounding);
  if (rounded <= static_cast<double>(std::numeric_limits<Dst>::min()))
    return std::numeric_limits<Dst>::min();
  // 2^bits, which a double holds exactly and max() may not.
  double beyond = std::ldexp(1.0, std::numeric_limits<Dst>::digits);
  return rounded >= beyond ? std::numeric_limits<Dst>::max() : static_cast<Dst>(rounded);
}

/// Calls f with a value of the C++ type of an integer type, 8 to 64 bits.
template <typename F> Handler withInteger(Type type, F f) {
  switch (type) {
  case Type::u8:
  case Type::b8:
    return f(uint8_t());
  case Type::s8:
    return f(int8_t());
  case Type::u16:
  case Type::b16:
    return f(uint16_t());
  case Type::s16:
    return f(int16_t());
  case Type::u32:
  case Type::b32:
    return f(uint32_t());
  case Type::s32:
    return f(int32_t());
  case Type::u64:
  case Type::b64:
    return f(uint64_t());
  case Type::s64:
    return f(int64_t());
  default:
    return nullptr;
  }
}

template <typename Dst, typename Src> Handler floatToInteger(std::string_view rounding) {
  if (rounding == "rni")
    return unary<Dst, Src, toInteger<Dst, Src, Rounding::nearest>>;
  if (rounding == "rzi")
    return unary<Dst, Src, toInteger<Dst, Src, Rounding::zero>>;
  if (rounding == "rmi")
    return unary<Dst, Src, toInteger<Dst, Src, Rounding::down>>;
  if (rounding == "rpi")
    return unary<Dst, Src, toInteger<Dst, Src, Rounding::up>>;
  return nullptr;
}

template <typename T> Handler floatToWhole(std::string_view rounding) {
  if (rounding == "rni")
    return unary<T, T, [](T a) { return roundedToInteger(a, Rounding::nearest); }>;
  if (rounding == "rzi")
    return unary<T, T, [](T a) { return roundedToInteger(a, Rounding::zero); }>;
  if (rounding == "rmi")
    return unary<T, T, [](T a) { return roundedToInteger(a, Rounding::down); }>;
  if (rounding == "rpi")
    return unary<T, T, [](T a) { return roundedToInteger(a, Rounding::up); }>;
  return nullptr;
}

Handler integerConversion(Type dst, Type src, std::string_view rounding) {
  if (!isFloat(dst) && !isFloat(src))
    return withInteger(dst, [&](auto d) {
      return withInteger(src,
                         [&](auto s) -> Handler { return unary<decltype(d), decltype(s), [](auto a) { return a; }>; });
    });
  if (isFloat(src))
    return withInteger(dst, [&](auto d) -> Handler {
      return src == Type::f32   ? floatToInteger<decltype(d), float>(rounding)
             : src == Type::f64 ? floatToInteger<decltype(d), double>(rounding)
                                : nullptr;
    });
  if (rounding != "rn")
    return nullptr;
  return withInteger(src, [&](auto s) -> Handler {
    return dst == Type::f32   ? unary<float, decltype(s), [](auto a) { return static_cast<float>(a); }>
           : dst == Type::f64 ? unary<double, decltype(s), [](auto a) { return static_cast<double>(a); }>
                              : nullptr;
  });
}

/// tf32: f32 with 10 bits of mantissa, ties away from zero.
float toTf32(float value) {
  if (!std::isfinite(value))
    return value;
  return std::bit_cast<float>((std::bit_cast<uint32_t>(value) + 0x1000) & 0xffffe000);
}

Handler floatConversion(Type dst, Type src, std::string_view rounding) {
  bool nearest = rounding == "rn", toZero = rounding == "rz", plain = rounding.empty();
  if (dst == src && dst == Type::f32)
    return plain ? unary<float, float, [](float a) { return a; }> : floatToWhole<float>(rounding);
  if (dst == src && dst == Type::f64)
    return plain ? unary<double, double, [](double a) { return a; }> : floatToWhole<double>(rounding);
  if (dst == Type::f64 && src == Type::f32 && plain)
    return unary<double, float, [](float a) { return double(a); }>;
  if (dst == Type::f32 && src == Type::f64 && nearest)
    return unary<float, double, [](double a) { return float(a); }>;
  if (dst == Type::f32 && plain) {
    if (src == Type::bf16)
      return unary<float, Bfloat, [](Bfloat a) { return toFloat(a); }>;
    if (src == Type::f16)
      return unary<float, Half, [](Half a) { return toFloat(a); }>;
  }
  if (src == Type::f32) {
    if (dst == Type::bf16 && nearest)
      return unary<Bfloat, float, toBfloat>;
    if (dst == Type::bf16 && toZero)
      return unary<Bfloat, float, toBfloatTowardZero>;
    if (dst == Type::f16 && nearest)
      return unary<Half, float, toHalf>;
    if (dst == Type::tf32 && rounding == "rna")
      return unary<float, float, toTf32>;
  }
  return nullptr;
}

/// cvt.rn.bf16x2.f32 d, a, b: a is the upper half.
FormResult pairConversion(Type dst, std::string_view rounding) {
  using U = uint32_t;
  Handler run = nullptr;
  if (dst == Type::bf16x2 && rounding == "rn")
    run = binary<U, float, float, [](float a, float b) { return U(toBfloat(a).bits) << 16 | toBfloat(b).bits; }>;
  if (dst == Type::bf16x2 && rounding == "rz")
    run = binary<U, float, float,
                 [](float a, float b) { return U(toBfloatTowardZero(a).bits) << 16 | toBfloatTowardZero(b).bits; }>;
  if (dst == Type::f16x2 && rounding == "rn")
    run = binary<U, float, float, [](float a, float b) { return U(toHalf(a).bits) << 16 | toHalf(b).bits; }>;
  return run ? FormResult(Form{run, {dst}, {Type::f32, Type::f32}}) : std::nullopt;
}

void movePredicate(Context &context, const Instruction &in) {
  uint32_t &dst = context.predicate(in.dst[0]);
  dst = (dst & ~context.mask) | (context.predicate(in.src[0]) & context.mask);
}

/// Pieces of a register, the lowest first.
template <typename Piece, typename Whole> void unpack(Context &context, const Instruction &in) {
  forLanes(context.mask, [&](uint32_t lane) {
    auto whole = readLane<Whole>(context.registers + in.src[0], lane);
    for (uint32_t i = 0; i < sizeof(Whole) / sizeof(Piece); ++i)
      if (in.dst[i] != kNoSlot)
        writeLane<Piece>(context.registers + in.dst[i], lane, static_cast<Piece>(whole >> (8 * sizeof(Piece) * i)));
  });
}

template <typename Piece, typename Whole> void pack(Context &context, const Instruction &in) {
  forLanes(context.mask, [&](uint32_t lane) {
    Whole whole = 0;
    for (uint32_t i = 0; i < sizeof(Whole) / sizeof(Piece); ++i)
      whole |= static_cast<Whole>(readLane<Piece>(context.registers + in.src[i], lane)) << (8 * sizeof(Piece) * i);
    writeLane<Whole>(context.registers + in.dst[0], lane, whole);
  });
}

FormResult moveForm(Type type) {
  if (type == Type::none)
    return std::nullopt;
  if (type == Type::pred)
    return Form{movePredicate, {type}, {type}};
  constexpr auto same = [](auto a) { return a; };
  return Form{.run = bytesOf(type) == 8 ? unary<uint64_t, uint64_t, same> : unary<uint32_t, uint32_t, same>,
              .dst = {type},
              .src = {type}};
}

} // namespace

Handler unpackHandler(uint32_t pieceBytes, uint32_t wholeBytes) {
  if (wholeBytes == 8)
    return pieceBytes == 4 ? unpack<uint32_t, uint64_t> : pieceBytes == 2 ? unpack<uint16_t, uint64_t> : nullptr;
  return wholeBytes == 4 && pieceBytes == 2 ? unpack<uint16_t, uint32_t> : nullptr;
}

Handler packHandler(uint32_t pieceBytes, uint32_t wholeBytes) {
  if (wholeBytes == 8)
    return pieceBytes == 4 ? pack<uint32_t, uint64_t> : pieceBytes == 2 ? pack<uint16_t, uint64_t> : nullptr;
  return wholeBytes == 4 && pieceBytes == 2 ? pack<uint16_t, uint32_t> : nullptr;
}

FormResult convertForm(Mnemonic &mnemonic) {
  if (mnemonic.name() == "mov")
    return moveForm(mnemonic.takeType());
  if (mnemonic.name() != "cvt")
    return std::nullopt;
  std::string_view rounding = mnemonic.takeOneOf({"rn", "rz", "rna", "rni", "rzi", "rmi", "rpi"});
  Type dst = mnemonic.takeType(), src = mnemonic.takeType();
  if ((dst == Type::bf16x2 || dst == Type::f16x2) && src == Type::f32)
    return pairConversion(dst, rounding);
  if (dst == Type::none || src == Type::none)
    return std::nullopt;
  Handler run =
      isFloat(dst) && isFloat(src) ? floatConversion(dst, src, rounding) : integerConversion(dst, src, rounding);
  return run ? FormResult(Form{.run = run, .dst = {dst}, .src = {src}, .relaxed = true}) : std::nullopt;
}

} // namespace llmc::cudasim
