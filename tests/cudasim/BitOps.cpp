// Bits: logic (on predicates too), shifts, fields, counts, byte permutation. Shifts by too much give 0 (or the sign).
#include "tests/cudasim/Forms.h"
#include "tests/cudasim/Lanes.h"

namespace llmc::cudasim {

namespace {

/// Logic on a predicate is logic on a mask, for the active lanes.
template <auto f> void maskBinary(Context &context, const Instruction &in) {
  uint32_t value = f(context.predicate(in.src[0]), context.predicate(in.src[1]));
  uint32_t &dst = context.predicate(in.dst[0]);
  dst = (dst & ~context.mask) | (value & context.mask);
}

void maskNot(Context &context, const Instruction &in) {
  uint32_t &dst = context.predicate(in.dst[0]);
  dst = (dst & ~context.mask) | (~context.predicate(in.src[0]) & context.mask);
}

template <auto f> FormResult logic(Type type) {
  switch (type) {
  case Type::pred:
    return Form{maskBinary<f>, {type}, {type, type}};
  case Type::b16:
    return Form{binary<uint16_t, uint16_t, uint16_t, f>, {type}, {type, type}};
  case Type::b32:
    return Form{binary<uint32_t, uint32_t, uint32_t, f>, {type}, {type, type}};
  case Type::b64:
    return Form{binary<uint64_t, uint64_t, uint64_t, f>, {type}, {type, type}};
  default:
    return std::nullopt;
  }
}

FormResult invert(Type type) {
  constexpr auto f = [](auto a) { return ~a; };
  switch (type) {
  case Type::pred:
    return Form{maskNot, {type}, {type}};
  case Type::b16:
    return Form{unary<uint16_t, uint16_t, f>, {type}, {type}};
  case Type::b32:
    return Form{unary<uint32_t, uint32_t, f>, {type}, {type}};
  case Type::b64:
    return Form{unary<uint64_t, uint64_t, f>, {type}, {type}};
  default:
    return std::nullopt;
  }
}

constexpr auto kLeft = [](auto a, uint32_t n) {
  using T = decltype(a);
  return n >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << n);
};
constexpr auto kRight = [](auto a, uint32_t n) {
  using T = decltype(a);
  uint32_t most = 8 * sizeof(T) - 1;
  if constexpr (std::is_signed_v<T>)
    return static_cast<T>(a >> (n > most ? most : n));
  else
    return n > most ? T(0) : static_cast<T>(a >> n);
};

template <typename T, auto f> Form shiftOf(Type type) { return {binary<T, T, uint32_t, f>, {type}, {type, Type::u32}}; }

FormResult shift(bool left, Type type) {
  switch (type) {
  case Type::b16:
    return left ? shiftOf<uint16_t, kLeft>(type) : shiftOf<uint16_t, kRight>(type);
  case Type::b32:
    return left ? shiftOf<uint32_t, kLeft>(type) : shiftOf<uint32_t, kRight>(type);
  case Type::b64:
    return left ? shiftOf<uint64_t, kLeft>(type) : shiftOf<uint64_t, kRight>(type);
  default:
    break;
  }
  if (left)
    return std::nullopt;
  switch (type) {
  case Type::u16:
    return shiftOf<uint16_t, kRight>(type);
  case Type::s16:
    return shiftOf<int16_t, kRight>(type);
  case Type::u32:
    return shiftOf<uint32_t, kRight>(type);
  case Type::s32:
    return shiftOf<int32_t, kRight>(type);
  case Type::u64:
    return shiftOf<uint64_t, kRight>(type);
  case Type::s64:
    return shiftOf<int64_t, kRight>(type);
  default:
    return std::nullopt;
  }
}

constexpr uint64_t join(uint32_t low, uint32_t high) { return uint64_t(high) << 32 | low; }

/// shf: a window of 32 bits in b:a.
FormResult funnel(Mnemonic &mnemonic) {
  bool left = mnemonic.take("l"), right = !left && mnemonic.take("r");
  bool wraps = mnemonic.take("wrap");
  if ((!left && !right) || (!wraps && !mnemonic.take("clamp")) || mnemonic.takeType() != Type::b32)
    return std::nullopt;
  Form form{.dst = {Type::b32}, .src = {Type::b32, Type::b32, Type::u32}};
  using U = uint32_t;
  if (left && wraps)
    form.run = ternary<U, U, U, [](U a, U b, U c) { return U(join(a, b) << (c & 31) >> 32); }>;
  else if (left)
    form.run = ternary<U, U, U, [](U a, U b, U c) { return c >= 32 ? a : U(join(a, b) << c >> 32); }>;
  else if (wraps)
    form.run = ternary<U, U, U, [](U a, U b, U c) { return U(join(a, b) >> (c & 31)); }>;
  else
    form.run = ternary<U, U, U, [](U a, U b, U c) { return c >= 32 ? b : U(join(a, b) >> c); }>;
  return form;
}

uint32_t permuteBytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint64_t bytes = uint64_t(b) << 32 | a;
  uint32_t result = 0;
  for (uint32_t i = 0; i < 4; ++i) {
    uint32_t pick = selector >> (4 * i) & 15;
    auto byte = static_cast<uint8_t>(bytes >> (8 * (pick & 7)));
    if (pick & 8)
      byte = byte & 0x80 ? 0xff : 0;
    result |= uint32_t(byte) << (8 * i);
  }
  return result;
}

template <typename T> T extractField(T a, uint32_t begin, uint32_t count) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  begin &= 0xff;
  count &= 0xff;
  if (count == 0)
    return 0;
  bool sign = std::is_signed_v<T> && (a >> std::min(begin + count - 1, kBits - 1) & 1);
  T result = 0;
  for (uint32_t i = 0; i < kBits; ++i)
    if (i < count && begin + i < kBits ? (a >> (begin + i) & 1) : sign)
      result |= static_cast<T>(std::make_unsigned_t<T>(1) << i);
  return result;
}

void insertField(Context &context, const Instruction &in) {
  forLanes(context.mask, [&](uint32_t lane) {
    auto read = [&](int i) { return readLane<uint32_t>(context.registers + in.src[i], lane); };
    uint32_t from = read(0), into = read(1), begin = read(2) & 0xff, count = read(3) & 0xff;
    for (uint32_t i = 0; i < count && begin + i < 32; ++i)
      into = (into & ~(1u << (begin + i))) | (from >> i & 1) << (begin + i);
    writeLane<uint32_t>(context.registers + in.dst[0], lane, into);
  });
}

/// lop3: the bit of the table at the three bits' number, for each bit.
void logic3(Context &context, const Instruction &in) {
  forLanes(context.mask, [&](uint32_t lane) {
    auto read = [&](int i) { return readLane<uint32_t>(context.registers + in.src[i], lane); };
    uint32_t a = read(0), b = read(1), c = read(2), table = read(3), result = 0;
    for (uint32_t i = 0; i < 32; ++i)
      result |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i;
    writeLane<uint32_t>(context.registers + in.dst[0], lane, result);
  });
}

uint32_t reverseBits(uint32_t a) {
  uint32_t result = 0;
  for (uint32_t i = 0; i < 32; ++i)
    result |= (a >> i & 1) << (31 - i);
  return result;
}

FormResult countOf(const std::string &name, Type type) {
  bool wide = type == Type::b64;
  if (!wide && type != Type::b32)
    return std::nullopt;
  if (name == "popc")
    return Form{wide ? unary<uint32_t, uint64_t, [](uint64_t a) { return std::popcount(a); }>
                     : unary<uint32_t, uint32_t, [](uint32_t a) { return std::popcount(a); }>,
                {Type::u32},
                {type}};
  return Form{wide ? unary<uint32_t, uint64_t, [](uint64_t a) { return std::countl_zero(a); }>
                   : unary<uint32_t, uint32_t, [](uint32_t a) { return std::countl_zero(a); }>,
              {Type::u32},
              {type}};
}

template <typename T> void extractFields(Context &context, const Instruction &in) {
  forLanes(context.mask, [&](uint32_t lane) {
    uint32_t begin = readLane<uint32_t>(context.registers + in.src[1], lane);
    uint32_t count = readLane<uint32_t>(context.registers + in.src[2], lane);
    writeLane<T>(context.registers + in.dst[0], lane,
                 extractField(readLane<T>(context.registers + in.src[0], lane), begin, count));
  });
}

FormResult fieldForm(Type type) {
  Handler run = type == Type::u32   ? extractFields<uint32_t>
                : type == Type::s32 ? extractFields<int32_t>
                : type == Type::u64 ? extractFields<uint64_t>
                : type == Type::s64 ? extractFields<int64_t>
                                    : nullptr;
  return run ? FormResult(Form{run, {type}, {type, Type::u32, Type::u32}}) : std::nullopt;
}

} // namespace

FormResult bitForm(Mnemonic &mnemonic) {
  const std::string &name = mnemonic.name();
  if (name == "shf")
    return funnel(mnemonic);
  Type type = mnemonic.takeType();
  if (name == "and")
    return logic<[](auto a, auto b) { return a & b; }>(type);
  if (name == "or")
    return logic<[](auto a, auto b) { return a | b; }>(type);
  if (name == "xor")
    return logic<[](auto a, auto b) { return a ^ b; }>(type);
  if (name == "not")
    return invert(type);
  if (name == "shl" || name == "shr")
    return shift(name == "shl", type);
  if (name == "popc" || name == "clz")
    return countOf(name, type);
  if (name == "bfe")
    return fieldForm(type);
  if (type != Type::b32)
    return std::nullopt;
  if (name == "prmt")
    return Form{ternary<uint32_t, uint32_t, uint32_t, permuteBytes>, {type}, {type, type, type}};
  if (name == "bfi")
    return Form{insertField, {type}, {type, type, Type::u32, Type::u32}};
  if (name == "lop3")
    return Form{logic3, {type}, {type, type, type, Type::u32}};
  if (name == "brev")
    return Form{unary<uint32_t, uint32_t, reverseBits>, {type}, {type}};
  return std::nullopt;
}

} // namespace llmc::cudasim
