// Vectors of floats as wide as the ISA level's registers, on GCC's vector extension: arithmetic is written with
// operators, only what it cannot say (masked memory, 2^n scaling, bf16) is an intrinsic. Included by Attention.cpp
// alone, inside no other header: everything is in the level's own namespace, so that no copy made for a newer CPU is
// ever linked into older code.
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
typedef uint32_t Bits __attribute__((vector_size(kLanes * 4)));
typedef uint16_t HalfBits __attribute__((vector_size(kLanes * 2)));

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

static inline Vec load(const float *p) { return *reinterpret_cast<const UnalignedVec *>(p); }
static inline void store(float *p, Vec value) { *reinterpret_cast<UnalignedVec *>(p) = value; }

// Where GCC 12 takes a plain 512-bit form for a read of an uninitialized register, the zero-masked form with a full
// mask stands in.
#if defined(__AVX512F__)
static inline Vec loadFirst(const float *p, int count) {
  return Vec(_mm512_maskz_loadu_ps(static_cast<__mmask16>((1u << count) - 1), p));
}
static inline void storeFirst(float *p, Vec value, int count) {
  _mm512_mask_storeu_ps(p, static_cast<__mmask16>((1u << count) - 1), __m512(value));
}
/// The larger of each lane; where x is NaN, the limit.
static inline Vec larger(Vec x, Vec limit) { return Vec(_mm512_maskz_max_ps(0xffff, __m512(x), __m512(limit))); }
static inline Vec scaleByPowerOfTwo(Vec value, Vec exponent) { // by 2^floor(exponent)
  return Vec(_mm512_maskz_scalef_ps(0xffff, __m512(value), __m512(exponent)));
}
static inline Vec aboveFloor(Vec x) { return Vec(_mm512_maskz_reduce_ps(0xffff, __m512(x), _MM_FROUND_TO_NEG_INF)); }
#else
static inline IntVec firstLanes(int count) { return IntVec{0, 1, 2, 3, 4, 5, 6, 7} < (count - IntVec{}); }
static inline Vec loadFirst(const float *p, int count) {
  return Vec(_mm256_maskload_ps(p, __m256i(firstLanes(count))));
}
static inline void storeFirst(float *p, Vec value, int count) {
  _mm256_maskstore_ps(p, __m256i(firstLanes(count)), __m256(value));
}
static inline Vec larger(Vec x, Vec limit) { return Vec(_mm256_max_ps(__m256(x), __m256(limit))); }
static inline Vec floorOf(Vec x) { return Vec(_mm256_round_ps(__m256(x), _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC)); }
/// The exponent field takes an addition while the result is a normal number; below, the result is zero.
static inline Vec scaleByPowerOfTwo(Vec value, Vec exponent) {
  Vec whole = floorOf(atLeast(exponent, splat(-160.0f)));
  IntVec shifted = IntVec(value) + (__builtin_convertvector(whole, IntVec) << 23);
  return whole < splat(-126.0f) ? Vec{} : Vec(shifted);
}
static inline Vec aboveFloor(Vec x) { return x < splat(-160.0f) ? Vec{} : x - floorOf(x); }
#endif

/// 2^x for x < 128, exact at 0: a polynomial over [0, 1) (minimax in relative error), scaled by 2^floor(x). NaN gives
/// NaN, -inf gives 0. The relative error is 1e-7, or 3e-6 where the result is `rough`, about to be rounded to bf16.
template <bool rough> static inline Vec exp2Of(Vec x) {
  Vec r = aboveFloor(x), p;
  if constexpr (rough) {
    p = splat(1.342670154e-02f) * r + splat(5.224244669e-02f);
    p = p * r + splat(2.412802130e-01f);
    p = p * r + splat(6.930448413e-01f);
  } else {
    p = splat(1.867131679e-03f) * r + splat(9.017026983e-03f);
    p = p * r + splat(5.579991639e-02f);
    p = p * r + splat(2.401644439e-01f);
    p = p * r + splat(6.931512952e-01f);
  }
  return scaleByPowerOfTwo(p * r + splat(1.0f), x);
}

/// Elements of either storage type as floats, and back.
static inline Vec loadLanes(const float *p, int64_t count = kLanes) {
  return count >= kLanes ? load(p) : loadFirst(p, int(count));
}
static inline void storeLanes(float *p, Vec value, int64_t count) {
  if (count >= kLanes)
    store(p, value);
  else
    storeFirst(p, value, int(count));
}

#if defined(__AVX512F__)
static inline HalfBits loadFirstHalves(const BFloat16 *p, int64_t count) {
  return HalfBits(_mm256_maskz_loadu_epi16(static_cast<__mmask16>((1u << count) - 1), p));
}
static inline void storeFirstHalves(BFloat16 *p, HalfBits bits, int64_t count) {
  _mm256_mask_storeu_epi16(p, static_cast<__mmask16>((1u << count) - 1), __m256i(bits));
}
#else
// Never inlined: memory for the copied part would cost the whole vectors beside it a store each.
static __attribute__((noinline)) HalfBits loadFirstHalves(const BFloat16 *p, int64_t count) {
  HalfBits bits{};
  std::memcpy(&bits, p, static_cast<size_t>(count) * 2);
  return bits;
}
static __attribute__((noinline)) void storeFirstHalves(BFloat16 *p, HalfBits bits, int64_t count) {
  std::memcpy(p, &bits, static_cast<size_t>(count) * 2);
}
#endif
static inline HalfBits loadHalves(const BFloat16 *p, int64_t count) {
  if (count < kLanes)
    return loadFirstHalves(p, count);
  HalfBits bits;
  std::memcpy(&bits, p, sizeof(bits));
  return bits;
}
static inline Vec loadLanes(const BFloat16 *p, int64_t count = kLanes) {
  return Vec(__builtin_convertvector(loadHalves(p, count), Bits) << 16);
}

#if defined(__AVX512BF16__)
inline constexpr bool kMultipliesBf16 = true;
typedef int16_t PairLanes __attribute__((vector_size(64)));
/// Rounds to nearest even; NaN stays NaN.
static inline HalfBits narrow(Vec value) { return HalfBits(_mm512_cvtneps_pbh(__m512(value))); }
/// Lane i: the bf16 pair (first[i], second[i]).
static inline Vec pairOf(Vec first, Vec second) {
  constexpr PairLanes kOrder = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  __m512i both = __m512i(_mm512_cvtne2ps_pbh(__m512(second), __m512(first)));
  return Vec(_mm512_maskz_permutexvar_epi16(~__mmask32(0), __m512i(kOrder), both));
}
/// kLanes pairs in memory, of which `count` elements exist; beyond, zero.
static inline Vec loadPairs(const BFloat16 *p, int64_t count) {
  __mmask32 mask = count >= 2 * kLanes ? ~__mmask32(0) : (__mmask32(1) << count) - 1;
  return Vec(_mm512_maskz_loadu_epi16(mask, p));
}
/// sum + the products of both halves of each pair, in f32.
static inline Vec addPairProducts(Vec sum, Vec a, Vec b) {
  return Vec(_mm512_dpbf16_ps(__m512(sum), __m512bh(a), __m512bh(b)));
}
#else
inline constexpr bool kMultipliesBf16 = false;
static inline HalfBits narrow(Vec value) {
  Bits bits = Bits(value);
  Bits rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  Bits quiet = (bits >> 16) | 0x40;
  return __builtin_convertvector(value == value ? rounded : quiet, HalfBits);
}
// Named in templates that no such level instantiates.
Vec pairOf(Vec first, Vec second);
Vec loadPairs(const BFloat16 *p, int64_t count);
Vec addPairProducts(Vec sum, Vec a, Vec b);
#endif

static inline void storeLanes(BFloat16 *p, Vec value, int64_t count) {
  HalfBits bits = narrow(value);
  if (count < kLanes)
    return storeFirstHalves(p, bits, count);
  std::memcpy(p, &bits, sizeof(bits));
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
