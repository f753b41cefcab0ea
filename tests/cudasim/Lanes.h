// How a function on values becomes an instruction on a warp: lanewise<T, f> reads slots of T, applies f lane by lane
// and writes a slot of f's result. With all lanes active the loop has a fixed length, so the compiler makes vectors of
// it.
#pragma once

#include "tests/cudasim/Context.h"

#include <cstring>
#include <type_traits>

namespace llmc::cudasim {

/// Bits of a 16-bit float; arithmetic goes through f32.
struct Half {
  uint16_t bits;
};
struct Bfloat {
  uint16_t bits;
};

/// How a T lies in a lane: 8 bytes for 64-bit types, else 4.
template <typename T> using LaneBits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <typename T> inline T readLane(const std::byte *slot, uint32_t lane) {
  LaneBits<T> bits;
  std::memcpy(&bits, slot + lane * sizeof bits, sizeof bits);
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(bits);
  } else {
    T value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
}

template <typename T> inline void writeLane(std::byte *slot, uint32_t lane, T value) {
  LaneBits<T> bits = 0;
  // An 8-bit value lives in a 16-bit register and is extended to it.
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T> && sizeof(T) == 1)
    bits = static_cast<uint16_t>(static_cast<int16_t>(value));
  else if constexpr (std::is_integral_v<T>)
    bits = static_cast<LaneBits<T>>(static_cast<std::make_unsigned_t<T>>(value));
  else
    std::memcpy(&bits, &value, sizeof value);
  std::memcpy(slot + lane * sizeof bits, &bits, sizeof bits);
}

/// One active lane after the other. The pragma: a result may share its slot with an operand, lane for lane.
template <typename F> inline void overLanes(uint32_t mask, F f) {
  if (mask == ~0u) {
#pragma GCC ivdep
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
      f(lane);
  } else {
    for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
      f(static_cast<uint32_t>(std::countr_zero(rest)));
  }
}

template <typename Dst, typename A, auto f> void unary(Context &context, const Instruction &in) {
  std::byte *dst = context.registers + in.dst[0];
  const std::byte *a = context.registers + in.src[0];
  overLanes(context.mask, [=](uint32_t lane) { writeLane<Dst>(dst, lane, static_cast<Dst>(f(readLane<A>(a, lane)))); });
}

template <typename Dst, typename A, typename B, auto f> void binary(Context &context, const Instruction &in) {
  std::byte *dst = context.registers + in.dst[0];
  const std::byte *a = context.registers + in.src[0], *b = context.registers + in.src[1];
  overLanes(context.mask, [=](uint32_t lane) {
    writeLane<Dst>(dst, lane, static_cast<Dst>(f(readLane<A>(a, lane), readLane<B>(b, lane))));
  });
}

template <typename Dst, typename A, typename C, auto f> void ternary(Context &context, const Instruction &in) {
  std::byte *dst = context.registers + in.dst[0];
  const std::byte *a = context.registers + in.src[0], *b = context.registers + in.src[1],
                  *c = context.registers + in.src[2];
  overLanes(context.mask, [=](uint32_t lane) {
    writeLane<Dst>(dst, lane, static_cast<Dst>(f(readLane<A>(a, lane), readLane<A>(b, lane), readLane<C>(c, lane))));
  });
}

/// The bits of a mask for which f(lane) holds, among the active lanes.
template <typename F> inline uint32_t maskWhere(uint32_t mask, F f) {
  uint32_t result = 0;
  for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
    result |= static_cast<uint32_t>(f(lane)) << lane;
  return result & mask;
}

} // namespace llmc::cudasim
