// bfloat16 one value at a time: the upper half of a float, rounded to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace llmc {

inline float floatFromBf16(uint16_t bits) { return std::bit_cast<float>(uint32_t(bits) << 16); }

inline uint16_t bf16FromFloat(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value != value)
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

} // namespace llmc
