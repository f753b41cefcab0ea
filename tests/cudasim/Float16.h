// bf16 and f16 as bits, to f32 and back.
#pragma once

#include "tests/cudasim/Lanes.h"

#include <bit>
#include <cmath>

namespace llmc::cudasim {

inline float toFloat(Bfloat value) { return std::bit_cast<float>(uint32_t(value.bits) << 16); }
inline float toFloat(Half value) { return static_cast<float>(std::bit_cast<_Float16>(value.bits)); }

/// To nearest, ties to even; every NaN becomes 0x7fff, as PTX says.
inline Bfloat toBfloat(float value) {
  if (std::isnan(value))
    return {0x7fff};
  auto bits = std::bit_cast<uint32_t>(value);
  return {static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16)};
}
inline Bfloat toBfloatTowardZero(float value) {
  if (std::isnan(value))
    return {0x7fff};
  return {static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16)};
}
inline Half toHalf(float value) {
  if (std::isnan(value))
    return {0x7fff};
  return {std::bit_cast<uint16_t>(static_cast<_Float16>(value))};
}

template <typename T> T fromFloat(float value);
template <> inline Bfloat fromFloat<Bfloat>(float value) { return toBfloat(value); }
template <> inline Half fromFloat<Half>(float value) { return toHalf(value); }

} // namespace llmc::cudasim
