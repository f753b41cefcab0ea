// Comparison and choice: setp, set, selp, slct.
#include "tests/cudasim/Float16.h"
#include "tests/cudasim/Forms.h"

namespace llmc::cudasim {

namespace {

enum class Combine : int64_t { none, conjunction, disjunction, exclusive };

/// d = a CMP b [BOOL c], and the second result with CMP negated.
template <typename T, auto f> void setPredicate(Context &context, const Instruction &in) {
  const std::byte *a = context.registers + in.src[0], *b = context.registers + in.src[1];
  uint32_t holds = maskWhere(~0u, [=](uint32_t lane) { return f(readLane<T>(a, lane), readLane<T>(b, lane)); });
  auto combined = [&](uint32_t value) {
    uint32_t other = in.src[2] == kNoSlot ? 0 : context.predicate(in.src[2]);
    switch (static_cast<Combine>(in.immediate)) {
    case Combine::conjunction:
      return value & other;
    case Combine::disjunction:
      return value | other;
    case Combine::exclusive:
      return value ^ other;
    default:
      return value;
    }
  };
  uint32_t results[2] = {combined(holds), combined(~holds)};
  for (int i = 0; i < 2; ++i)
    if (in.dst[i] != kNoSlot) {
      uint32_t &dst = context.predicate(in.dst[i]);
      dst = (dst & ~context.mask) | (results[i] & context.mask);
    }
}

template <typename T> bool unordered(T a, T b) {
  if constexpr (std::is_floating_point_v<T>)
    return std::isnan(a) || std::isnan(b);
  else
    return false;
}

/// The handler of a comparison by its name; `lo ls hi hs` are the unsigned ones' other names.
template <typename T> Handler compareHandler(std::string_view how) {
  constexpr bool isReal = std::is_floating_point_v<T>;
  if (how == "eq")
    return setPredicate<T, [](T a, T b) { return (a == b); }>;
  if (how == "ne")
    return setPredicate<T, [](T a, T b) { return a != b && !unordered(a, b); }>;
  if (how == "lt" || (how == "lo" && !isReal))
    return setPredicate<T, [](T a, T b) { return (a < b); }>;
  if (how == "le" || (how == "ls" && !isReal))
    return setPredicate<T, [](T a, T b) { return (a <= b); }>;
  if (how == "gt" || (how == "hi" && !isReal))
    return setPredicate<T, [](T a, T b) { return (a > b); }>;
  if (how == "ge" || (how == "hs" && !isReal))
    return setPredicate<T, [](T a, T b) { return (a >= b); }>;
  if constexpr (isReal) {
    if (how == "equ")
      return setPredicate<T, [](T a, T b) { return unordered(a, b) || a == b; }>;
    if (how == "neu")
      return setPredicate<T, [](T a, T b) { return !(a == b); }>;
    if (how == "ltu")
      return setPredicate<T, [](T a, T b) { return !(a >= b); }>;
    if (how == "leu")
      return setPredicate<T, [](T a, T b) { return !(a > b); }>;
    if (how == "gtu")
      return setPredicate<T, [](T a, T b) { return !(a <= b); }>;
    if (how == "geu")
      return setPredicate<T, [](T a, T b) { return !(a < b); }>;
    if (how == "num")
      return setPredicate<T, [](T a, T b) { return !unordered(a, b); }>;
    if (how == "nan")
      return setPredicate<T, [](T a, T b) { return unordered(a, b); }>;
  }
  return nullptr;
}

Handler compareHandler(std::string_view how, Type type) {
  switch (type) {
  case Type::b16:
  case Type::u16:
    return compareHandler<uint16_t>(how);
  case Type::s16:
    return compareHandler<int16_t>(how);
  case Type::b32:
  case Type::u32:
    return compareHandler<uint32_t>(how);
  case Type::s32:
    return compareHandler<int32_t>(how);
  case Type::b64:
  case Type::u64:
    return compareHandler<uint64_t>(how);
  case Type::s64:
    return compareHandler<int64_t>(how);
  case Type::f32:
    return compareHandler<float>(how);
  case Type::f64:
    return compareHandler<double>(how);
  default:
    return nullptr;
  }
}

FormResult setPredicateForm(Mnemonic &mnemonic) {
  std::string_view how = mnemonic.takeOneOf({"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs", "equ", "neu",
                                             "ltu", "leu", "gtu", "geu", "num", "nan"});
  std::string_view combine = mnemonic.takeOneOf({"and", "or", "xor"});
  Type type = mnemonic.takeType();
  Handler run = compareHandler(how, type);
  if (!run)
    return std::nullopt;
  Form form{run, {Type::pred}, {type, type}};
  if (!combine.empty()) {
    form.src.push_back(Type::pred);
    form.immediate = static_cast<int64_t>(combine == "and"  ? Combine::conjunction
                                          : combine == "or" ? Combine::disjunction
                                                            : Combine::exclusive);
  }
  return form;
}

template <typename Bits> void select(Context &context, const Instruction &in) {
  std::byte *dst = context.registers + in.dst[0];
  const std::byte *a = context.registers + in.src[0], *b = context.registers + in.src[1];
  uint32_t choice = context.predicate(in.src[2]);
  overLanes(context.mask, [=](uint32_t lane) {
    Bits whenTrue = readLane<Bits>(a, lane), whenFalse = readLane<Bits>(b, lane);
    writeLane<Bits>(dst, lane, choice >> lane & 1 ? whenTrue : whenFalse);
  });
}

/// slct: a where c >= 0, else b.
template <typename Bits, typename C> void selectBySign(Context &context, const Instruction &in) {
  std::byte *dst = context.registers + in.dst[0];
  forLanes(context.mask, [&](uint32_t lane) {
    bool first = readLane<C>(context.registers + in.src[2], lane) >= 0;
    writeLane<Bits>(dst, lane, readLane<Bits>(context.registers + in.src[first ? 0 : 1], lane));
  });
}

} // namespace

FormResult compareForm(Mnemonic &mnemonic) {
  if (mnemonic.name() == "setp")
    return setPredicateForm(mnemonic);
  if (mnemonic.name() == "selp") {
    Type type = mnemonic.takeType();
    if (type == Type::none || type == Type::pred)
      return std::nullopt;
    return Form{bytesOf(type) == 8 ? select<uint64_t> : select<uint32_t>, {type}, {type, type, Type::pred}};
  }
  if (mnemonic.name() == "slct") {
    Type type = mnemonic.takeType(), sign = mnemonic.takeType();
    if (type == Type::none || type == Type::pred || (sign != Type::s32 && sign != Type::f32))
      return std::nullopt;
    bool wide = bytesOf(type) == 8;
    Handler run = sign == Type::s32 ? (wide ? selectBySign<uint64_t, int32_t> : selectBySign<uint32_t, int32_t>)
                                    : (wide ? selectBySign<uint64_t, float> : selectBySign<uint32_t, float>);
    return Form{run, {type}, {type, type, sign}};
  }
  return std::nullopt;
}

} // namespace llmc::cudasim
