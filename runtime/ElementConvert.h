// f32 to narrower or wider elements, rounding to nearest even, and bf16 back.
#pragma once

#include "runtime/Plan.h"

#include <bit>
#include <cstring>

namespace llmc {

/// The upper half of the bits, rounded; NaN stays NaN.
inline uint16_t toBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFF) > 0x7F800000)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

/// Exact.
inline float floatFromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

/// IEEE half precision with subnormals; too large becomes infinity.
inline uint16_t toF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value), sign = bits >> 16 & 0x8000, magnitude = bits & 0x7FFFFFFF;
  if (magnitude > 0x7F800000)
    return static_cast<uint16_t>(sign | 0x7E00);
  if (magnitude >= 0x477FF000) // 65520 and above round to infinity
    return static_cast<uint16_t>(sign | 0x7C00);
  if (magnitude >= 0x38800000) { // normal: 2^-14 and above; drop 13 bits of the mantissa, move the exponent's bias
    uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
    return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
  }
  // Subnormal: adding 0.5 leaves the value, rounded to multiples of 2^-24, in the lowest bits.
  float shifted = std::bit_cast<float>(magnitude) + 0.5f;
  return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f)));
}

/// Writes one element of `type` (f32, bf16, f16 or f64) at `dst`.
inline void storeElement(float value, ElementType type, std::byte *dst) {
  uint16_t half = type == ElementType::bf16 ? toBf16(value) : type == ElementType::f16 ? toF16(value) : 0;
  double wide = value;
  if (type == ElementType::f32)
    std::memcpy(dst, &value, sizeof(value));
  else if (type == ElementType::f64)
    std::memcpy(dst, &wide, sizeof(wide));
  else
    std::memcpy(dst, &half, sizeof(half));
}

} // namespace llmc
