// Vectors of floats as wide as the ISA level's registers, on GCC's vector extension: arithmetic is written with
// operators, only what it cannot say (masked memory, 2^n scaling) is an intrinsic. Included by Attention.cpp alone,
// inside no other header: everything is in the level's own namespace, so that no copy made for a newer CPU is ever
// linked into older code.
#pragma once

#ifndef LLMC_ISA_NAMESPACE
#error "compile with LLMC_ISA_NAMESPACE set to the level's namespace"
#endif

#include <cfloat>
#include <cstdint>
#include <cstring>
#include <immintrin.h>
#include <utility>

namespace llmc::LLMC_ISA_NAMESPACE {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#else
inline constexpr int kLanes = 8;
#endif
typedef float Vec __attribute__((vector_size(kLanes * 4)));
typedef float UnalignedVec __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));
typedef int32_t IntVec __attribute__((vector_size(kLanes * 4)));

/// A bfloat16 in memory.
struct BFloat16 {
  uint16_t bits;
};

static constexpr int64_t roundUp(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}
static constexpr int64_t minOf(int64_t a, int64_t b) { return a < b ? a : b; }
static constexpr int64_t maxOf(int64_t a, int64_t b) { return a > b ? a : b; }

static inline Vec splat(float value) { return value - Vec{}; }
/// The larger of each lane; where x is NaN, NaN.
static inline Vec atLeast(Vec x, Vec limit) { return limit > x ? limit : x; }
static inline Vec atMost(Vec x, Vec limit) { return limit < x ? limit : x; }

static inline Vec load(const float *p) { return *reinterpret_cast<const UnalignedVec *>(p); }
static inline void store(float *p, Vec value) { *reinterpret_cast<UnalignedVec *>(p) = value; }

#if defined(__AVX512F__)
static inline Vec loadFirst(const float *p, int count) {
  return Vec(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p));
}
static inline void storeFirst(float *p, Vec value, int count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), __m512(value));
}
// The zero-masked forms with a full mask: GCC 12 takes the plain ones for reads of an uninitialized register.
static inline Vec scaleByPowerOfTwo(Vec value, Vec exponent) {
  return Vec(_mm512_maskz_scalef_ps(0xffff, __m512(value), __m512(exponent)));
}
static inline Vec roundToInteger(Vec x) {
  return Vec(_mm512_maskz_roundscale_ps(0xffff, __m512(x), _MM_FROUND_TO_NEAREST_INT));
}
#else
static inline IntVec firstLanes(int count) { return IntVec{0, 1, 2, 3, 4, 5, 6, 7} < (count - IntVec{}); }
static inline Vec loadFirst(const float *p, int count) {
  return Vec(_mm256_maskload_ps(p, __m256i(firstLanes(count))));
}
static inline void storeFirst(float *p, Vec value, int count) {
  _mm256_maskstore_ps(p, __m256i(firstLanes(count)), __m256(value));
}
/// The exponent field takes an addition while the result is a normal number; below, the result is zero.
static inline Vec scaleByPowerOfTwo(Vec value, Vec exponent) {
  IntVec shifted = IntVec(value) + (__builtin_convertvector(exponent, IntVec) << 23);
  return exponent < splat(-126.0f) ? Vec{} : Vec(shifted);
}
static inline Vec roundToInteger(Vec x) {
  return Vec(_mm256_round_ps(__m256(x), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
#endif

/// 2^x for x <= 127: a degree-6 polynomial over [-1/2, 1/2] (minimax in relative error, 2e-8 with rounded
/// coefficients), scaled by 2^round(x). NaN gives NaN, -inf gives 0.
static inline Vec exp2Of(Vec x) {
  x = atLeast(x, splat(-160.0f));
  Vec whole = roundToInteger(x);
  Vec r = x - whole;
  Vec p = splat(1.535336196e-04f);
  p = p * r + splat(1.339887502e-03f);
  p = p * r + splat(9.618436918e-03f);
  p = p * r + splat(5.550332367e-02f);
  p = p * r + splat(2.402264774e-01f);
  p = p * r + splat(6.931471825e-01f);
  p = p * r + splat(1.0f);
  return scaleByPowerOfTwo(p, whole);
}

/// Elements of either storage type as floats, and back.
static inline Vec loadLanes(const float *p) { return load(p); }
static inline Vec loadLanes(const float *p, int count) { return loadFirst(p, count); }
static inline void storeLanes(float *p, Vec value, int count) {
  if (count >= kLanes)
    store(p, value);
  else
    storeFirst(p, value, count);
}

typedef uint16_t HalfBits __attribute__((vector_size(kLanes * 2)));
typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
static inline Vec widen(HalfBits bits) { return Vec(__builtin_convertvector(bits, Bits) << 16); }
static inline Vec loadLanes(const BFloat16 *p) {
  HalfBits bits;
  std::memcpy(&bits, p, sizeof(bits));
  return widen(bits);
}
static inline Vec loadLanes(const BFloat16 *p, int count) {
  HalfBits bits{};
  std::memcpy(&bits, p, static_cast<size_t>(count) * 2);
  return widen(bits);
}
/// Rounds to nearest even; NaN stays NaN.
static inline void storeLanes(BFloat16 *p, Vec value, int count) {
  Bits bits = Bits(value);
  Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  Bits quiet = (bits >> 16) | 0x40;
  HalfBits narrow = __builtin_convertvector(value == value ? rounded : quiet, HalfBits);
  std::memcpy(p, &narrow, static_cast<size_t>(count) * 2);
}

/// One exchange of the butterfly that transposes a block: lanes whose index has the bit `Distance` swap rows with those
/// that have it not.
template <int Distance, bool high, size_t... Lane>
static inline Vec exchange(Vec a, Vec b, std::index_sequence<Lane...>) {
  if constexpr (high)
    return __builtin_shufflevector(a, b, ((Lane & Distance) ? kLanes + int(Lane) : int(Lane) + Distance)...);
  else
    return __builtin_shufflevector(a, b, ((Lane & Distance) ? kLanes + int(Lane) - Distance : int(Lane))...);
}

template <int Distance> static inline __attribute__((always_inline)) void transposeStage(Vec (&rows)[kLanes]) {
  constexpr auto kSequence = std::make_index_sequence<kLanes>();
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) {
    if (i & Distance)
      continue;
    Vec a = rows[i], b = rows[i + Distance];
    rows[i] = exchange<Distance, false>(a, b, kSequence);
    rows[i + Distance] = exchange<Distance, true>(a, b, kSequence);
  }
}

/// rows[i][j] becomes rows[j][i].
static inline __attribute__((always_inline)) void transposeBlock(Vec (&rows)[kLanes]) {
  transposeStage<1>(rows);
  transposeStage<2>(rows);
  transposeStage<4>(rows);
  if constexpr (kLanes == 16)
    transposeStage<8>(rows);
}

} // namespace llmc::LLMC_ISA_NAMESPACE
