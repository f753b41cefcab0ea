// Integer arithmetic. Sums wrap (the library is compiled with -fwrapv); a division by zero gives all ones, as on GPUs.
#include "tests/cudasim/Forms.h"
#include "tests/cudasim/Lanes.h"

#include <limits>

namespace llmc::cudasim {

namespace {

/// Calls f with a value of the C++ type of an integer type of 16 to 64 bits; `b` counts as unsigned.
template <typename F> Handler withInteger(Type type, F f) {
  switch (type) {
  case Type::b16:
  case Type::u16:
    return f(uint16_t());
  case Type::s16:
    return f(int16_t());
  case Type::b32:
  case Type::u32:
    return f(uint32_t());
  case Type::s32:
    return f(int32_t());
  case Type::b64:
  case Type::u64:
    return f(uint64_t());
  case Type::s64:
    return f(int64_t());
  default:
    return nullptr;
  }
}

template <typename T> struct WiderOf;
template <> struct WiderOf<uint16_t> {
  using type = uint32_t;
};
template <> struct WiderOf<int16_t> {
  using type = int32_t;
};
template <> struct WiderOf<uint32_t> {
  using type = uint64_t;
};
template <> struct WiderOf<int32_t> {
  using type = int64_t;
};
template <> struct WiderOf<uint64_t> {
  using type = unsigned __int128;
};
template <> struct WiderOf<int64_t> {
  using type = __int128;
};
template <typename T> using Wider = typename WiderOf<T>::type;

Type widened(Type type) {
  switch (type) {
  case Type::u16:
    return Type::u32;
  case Type::s16:
    return Type::s32;
  case Type::u32:
    return Type::u64;
  case Type::s32:
    return Type::s64;
  default:
    return Type::none;
  }
}

template <auto f> FormResult sameTypes2(Type type) {
  Handler run = withInteger(type, [](auto t) -> Handler { return binary<decltype(t), decltype(t), decltype(t), f>; });
  return run ? FormResult(Form{run, {type}, {type, type}}) : std::nullopt;
}

template <auto f> FormResult sameTypes1(Type type) {
  Handler run = withInteger(type, [](auto t) -> Handler { return unary<decltype(t), decltype(t), f>; });
  return run ? FormResult(Form{run, {type}, {type}}) : std::nullopt;
}

constexpr auto kHigh = [](auto a, auto b) {
  using T = decltype(a);
  return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (8 * sizeof(T)));
};

constexpr auto kDivide = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0)
    return static_cast<T>(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1))
      return static_cast<T>(-a);
  return static_cast<T>(a / b);
};

constexpr auto kRemainder = [](auto a, auto b) {
  using T = decltype(a);
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == T(-1))
      return T(0);
  return static_cast<T>(a % b);
};

FormResult wideProduct(Type type, bool hasSum) {
  Type wide = widened(type);
  if (wide == Type::none)
    return std::nullopt;
  Handler run = withInteger(type, [&](auto t) -> Handler {
    using T = decltype(t);
    if constexpr (sizeof(T) < 8) {
      using W = Wider<T>;
      if (hasSum)
        return ternary<W, T, W, [](T a, T b, W c) { return static_cast<W>(a) * static_cast<W>(b) + c; }>;
      return binary<W, T, T, [](T a, T b) { return static_cast<W>(a) * static_cast<W>(b); }>;
    } else {
      return nullptr;
    }
  });
  return hasSum ? Form{run, {wide}, {type, type, wide}} : Form{run, {wide}, {type, type}};
}

FormResult multiplyAdd(Mnemonic &mnemonic) {
  std::string_view part = mnemonic.takeOneOf({"lo", "hi", "wide"});
  Type type = mnemonic.takeType();
  if (part.empty())
    return std::nullopt;
  if (part == "wide")
    return wideProduct(type, true);
  bool high = part == "hi";
  Handler run = withInteger(type, [&](auto t) -> Handler {
    using T = decltype(t);
    if (high)
      return ternary<T, T, T, [](T a, T b, T c) { return static_cast<T>(kHigh(a, b) + c); }>;
    return ternary<T, T, T, [](T a, T b, T c) { return static_cast<T>(static_cast<T>(a * b) + c); }>;
  });
  return run ? FormResult(Form{run, {type}, {type, type, type}}) : std::nullopt;
}

FormResult multiply(Mnemonic &mnemonic) {
  std::string_view part = mnemonic.takeOneOf({"lo", "hi", "wide"});
  Type type = mnemonic.takeType();
  if (part == "wide")
    return wideProduct(type, false);
  if (part == "hi")
    return sameTypes2<kHigh>(type);
  return part == "lo" ? sameTypes2<[](auto a, auto b) { return a * b; }>(type) : std::nullopt;
}

} // namespace

FormResult integerForm(Mnemonic &mnemonic) {
  const std::string &name = mnemonic.name();
  if (name == "mul")
    return multiply(mnemonic);
  if (name == "mad")
    return multiplyAdd(mnemonic);
  Type type = mnemonic.takeType();
  if (name == "add")
    return sameTypes2<[](auto a, auto b) { return a + b; }>(type);
  if (name == "sub")
    return sameTypes2<[](auto a, auto b) { return a - b; }>(type);
  if (name == "div")
    return sameTypes2<kDivide>(type);
  if (name == "rem")
    return sameTypes2<kRemainder>(type);
  if (name == "min")
    return sameTypes2<[](auto a, auto b) { return a < b ? a : b; }>(type);
  if (name == "max")
    return sameTypes2<[](auto a, auto b) { return a < b ? b : a; }>(type);
  if (name == "abs" && isSigned(type))
    return sameTypes1<[](auto a) { return a < 0 ? -a : a; }>(type);
  if (name == "neg" && isSigned(type))
    return sameTypes1<[](auto a) { return -a; }>(type);
  return std::nullopt;
}

} // namespace llmc::cudasim
