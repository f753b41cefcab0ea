// Everything moves as pairs of bf16 in 32-bit lanes: two neighbours of one row, or one element each of two rows. Tiles
// of 16 x 16 such pairs are transposed in registers, so that src and dst are both read and written by whole lines. Few
// rows are walked at a time, each as far as it goes: memory is read in streams that the processor foresees.
#include "backend/cpu/PackBf16.h"

#include <algorithm>
#include <immintrin.h>

// AVX512-BF16 is run only by what is instantiated for it.
#define LLMC_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512bf16")))

namespace llmc {

static constexpr int64_t kLanes = 16, kBlockRows = 32, kBlockColumns = 64;
/// A matrix of this size comes from memory and goes there: what is packed is written past the caches.
static constexpr int64_t kStreamedBytes = int64_t(16) << 20;

/// What is read, and how it is rounded.
enum class From { bf16, f32, f32Native };

static int64_t numBlocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

/// The lanes of `count` elements, none when it is negative.
static uint32_t lanesOf(int64_t count, int64_t most) {
  return count <= 0 ? 0 : uint32_t((uint64_t(1) << std::min(count, most)) - 1);
}

/// The mask of whole vectors, which compilers see through.
static constexpr uint32_t kAllLanes = ~0u;

/// 16 elements of f32 as bf16 in the low halves of 32-bit lanes, zero where the mask is: to nearest even, a NaN stays
/// one.
LLMC_AVX512 static inline __m512i roundLow(const std::byte *row, int64_t at, uint32_t mask) {
  __m512i bits = _mm512_maskz_loadu_epi32(__mmask16(mask), row + 4 * at);
  __m512i high = _mm512_srli_epi32(bits, 16);
  __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __m512 value = _mm512_castsi512_ps(bits);
  __mmask16 isNan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(_mm512_srli_epi32(rounded, 16), isNan, high, _mm512_set1_epi32(0x40));
}

/// The same by one instruction for two vectors, which takes subnormals for zero: `low` in the lower half.
LLMC_AVX512 static inline __m512i roundBoth(const std::byte *low, uint32_t lowMask, const std::byte *high,
                                            uint32_t highMask) {
  __m512 a = _mm512_maskz_loadu_ps(__mmask16(lowMask), low), b = _mm512_maskz_loadu_ps(__mmask16(highMask), high);
  return (__m512i)_mm512_cvtne2ps_pbh(b, a);
}

// clang-format off
/// Of two vectors: the even halves of both.
LLMC_AVX512 static inline __m512i evenHalves() {
  return _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32,
                          30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
}
/// Of one vector: an element of the lower half, one of the upper half, and so on.
LLMC_AVX512 static inline __m512i interleaved() {
  return _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
                          23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
}
// clang-format on

/// Lane i: element at + i of two rows; a null row is zeros.
template <From from>
LLMC_AVX512 static inline __m512i pairOfRows(const std::byte *low, const std::byte *high, int64_t at, uint32_t mask) {
  if constexpr (from == From::bf16) {
    __m256i a = _mm256_maskz_loadu_epi16(low ? __mmask16(mask) : 0, low + 2 * at);
    __m256i b = _mm256_maskz_loadu_epi16(high ? __mmask16(mask) : 0, high + 2 * at);
    return _mm512_permutexvar_epi16(interleaved(), _mm512_inserti64x4(_mm512_castsi256_si512(a), b, 1));
  } else if constexpr (from == From::f32Native) {
    __m512i both = roundBoth(low + 4 * at, low ? mask : 0, high + 4 * at, high ? mask : 0);
    return _mm512_permutexvar_epi16(interleaved(), both);
  } else {
    __m512i a = low ? roundLow(low, at, mask) : _mm512_setzero_si512();
    __m512i b = high ? roundLow(high, at, mask) : _mm512_setzero_si512();
    return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
  }
}

/// Lane i: elements at + 2i and at + 2i + 1 of one row; `lower` and `upper` are the masks of its two halves.
template <From from>
LLMC_AVX512 static inline __m512i pairsOfRow(const std::byte *row, int64_t at, uint32_t lower, uint32_t upper) {
  if constexpr (from == From::bf16)
    return _mm512_maskz_loadu_epi16((lower & 0xffff) | upper << 16, row + 2 * at);
  if constexpr (from == From::f32Native)
    return roundBoth(row + 4 * at, lower, row + 4 * (at + kLanes), upper);
  return _mm512_permutex2var_epi16(roundLow(row, at, lower), evenHalves(), roundLow(row, at + kLanes, upper));
}

/// Transposes 16 x 16 lanes.
LLMC_AVX512 static inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  // r[4g + c]: in its 128-bit lane l, column 4l + c of rows 4g to 4g + 3.
#pragma GCC unroll 16
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
#pragma GCC unroll 4
  for (int c = 0; c < 4; ++c) {
    __m512i even0 = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88), even1 = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
    __m512i odd0 = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd), odd1 = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(even0, even1, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(even0, even1, 0xdd);
    t[12 + c] = _mm512_shuffle_i32x4(odd0, odd1, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i)
    r[i] = t[i];
}

/// Row i of src, null past its end.
static const std::byte *rowOf(const Bf16Packing &p, int64_t i) {
  int64_t rows = p.isTransposed ? p.n : p.k, columns = p.isTransposed ? p.k : p.n;
  return i < rows ? p.src + i * columns * (p.isF32 ? 4 : 2) : nullptr;
}

static std::byte *blockOf(const Bf16Packing &p, int64_t rowBlock, int64_t columnBlock) {
  return p.dst + (columnBlock * numBlocks(p.k, kBlockRows) + rowBlock) * kBlockRows * kBlockColumns * 2;
}

template <bool streams> LLMC_AVX512 static inline void storeLine(std::byte *dst, __m512i line) {
  if constexpr (streams)
    _mm512_stream_si512(reinterpret_cast<__m512i *>(dst), line);
  else
    _mm512_storeu_si512(dst, line);
}

/// Two rows of src are one line of pairs of each block in a row of blocks. The next two are fetched meanwhile.
template <From from, bool streams> LLMC_AVX512 static void packRows(const Bf16Packing &p, int64_t rowBlock) {
  constexpr int64_t size = from == From::bf16 ? 2 : 4;
  for (int64_t pair = 0; pair < kBlockRows / 2; ++pair) {
    int64_t row = rowBlock * kBlockRows + 2 * pair;
    const std::byte *low = rowOf(p, row), *high = rowOf(p, row + 1);
    for (int64_t at = 0, end = numBlocks(p.n, kBlockColumns) * kBlockColumns; at < end; at += kLanes) {
      if (row + 3 < p.k) {
        _mm_prefetch(low + size * (2 * p.n + at), _MM_HINT_T0);
        _mm_prefetch(high + size * (2 * p.n + at), _MM_HINT_T0);
      }
      std::byte *to = blockOf(p, rowBlock, at / kBlockColumns) + (pair * kBlockColumns + at % kBlockColumns) * 4;
      storeLine<streams>(to, pairOfRows<from>(low, high, at, lanesOf(p.n - at, kLanes)));
    }
  }
}

/// A row of src is a column of a block; 16 rows at a time go through all blocks of a column.
template <From from, bool streams> LLMC_AVX512 static void packColumns(const Bf16Packing &p, int64_t columnBlock) {
  constexpr int64_t size = from == From::bf16 ? 2 : 4;
  for (int64_t j = 0; j < kBlockColumns; j += kLanes) {
    const std::byte *first = p.src + (columnBlock * kBlockColumns + j) * p.k * size;
    bool hasAllRows = columnBlock * kBlockColumns + j + kLanes <= p.n;
    for (int64_t rowBlock = 0; rowBlock < numBlocks(p.k, kBlockRows); ++rowBlock) {
      std::byte *block = blockOf(p, rowBlock, columnBlock);
      int64_t at = rowBlock * kBlockRows;
      __m512i tile[16];
      if (hasAllRows && at + kBlockRows <= p.k)
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i)
          tile[i] = pairsOfRow<from>(first + i * p.k * size, at, kAllLanes, kAllLanes);
      else
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i) {
          const std::byte *row = rowOf(p, columnBlock * kBlockColumns + j + i);
          tile[i] = row ? pairsOfRow<from>(row, at, lanesOf(p.k - at, kLanes), lanesOf(p.k - at - kLanes, kLanes))
                        : _mm512_setzero_si512();
        }
      transpose(tile);
#pragma GCC unroll 16
      for (int64_t pair = 0; pair < kBlockRows / 2; ++pair)
        storeLine<streams>(block + (pair * kBlockColumns + j) * 4, tile[pair]);
    }
  }
}

/// Rows of a row-major transpose that are made in one go: a line of each row of src.
static constexpr int64_t kTransposedRows = 32;

/// 32 rows of a row-major transpose, 32 columns at a time. Of a large src the next lines are fetched meanwhile.
template <From from, bool streams> LLMC_AVX512 static void packTransposed(const Bf16Packing &p, int64_t piece) {
  constexpr int64_t size = from == From::bf16 ? 2 : 4;
  int64_t begin = piece * kTransposedRows, end = std::min(begin + kTransposedRows, p.k);
  bool fetches = p.k * p.n * size >= kStreamedBytes && end + kTransposedRows <= p.k;
  for (int64_t left = 0; left < p.n; left += 2 * kLanes) {
    for (int64_t i = left; fetches && i < std::min(left + 2 * kLanes, p.n); ++i)
      for (int64_t byte = 0; byte < kTransposedRows * size; byte += 64)
        _mm_prefetch(p.src + (i * p.k + end) * size + byte, _MM_HINT_T0);
    for (int64_t top = begin; top < end; top += kLanes) {
      __m512i tile[16];
      std::byte *to = p.dst + 2 * (top * p.n + left);
      if (left + 2 * kLanes <= p.n && top + kLanes <= end) {
        const std::byte *row = p.src + left * p.k * size;
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i, row += 2 * p.k * size)
          tile[i] = pairOfRows<from>(row, row + p.k * size, top, kAllLanes);
        transpose(tile);
#pragma GCC unroll 16
        for (int64_t i = 0; i < kLanes; ++i)
          storeLine<streams>(to + 2 * i * p.n, tile[i]);
        continue;
      }
      int64_t rows = std::min(kLanes, end - top);
#pragma GCC unroll 16
      for (int64_t i = 0; i < kLanes; ++i)
        tile[i] = pairOfRows<from>(rowOf(p, left + 2 * i), rowOf(p, left + 2 * i + 1), top, lanesOf(rows, kLanes));
      transpose(tile);
      for (int64_t i = 0; i < rows; ++i)
        _mm512_mask_storeu_epi16(to + 2 * i * p.n, lanesOf(p.n - left, 32), tile[i]);
    }
  }
}

int64_t numPieces(const Bf16Packing &p) {
  if (!p.isBlocked)
    return numBlocks(p.k, kTransposedRows);
  return p.isTransposed ? numBlocks(p.n, kBlockColumns) : numBlocks(p.k, kBlockRows);
}

template <From from, bool streams> static void packPieces(const Bf16Packing &p, int64_t begin, int64_t end) {
  for (int64_t piece = begin; piece < end; ++piece) {
    if (!p.isBlocked)
      packTransposed<from, streams>(p, piece);
    else if (p.isTransposed)
      packColumns<from, streams>(p, piece);
    else
      packRows<from, streams>(p, piece);
  }
  if (streams)
    _mm_sfence();
}

template <From from> static void packFrom(const Bf16Packing &p, int64_t begin, int64_t end) {
  bool isLarge = 2 * p.k * p.n >= kStreamedBytes;
  bool hasWholeLines = reinterpret_cast<uintptr_t>(p.dst) % 64 == 0 && (p.isBlocked || p.n % 32 == 0);
  bool streams = isLarge && hasWholeLines;
  streams ? packPieces<from, true>(p, begin, end) : packPieces<from, false>(p, begin, end);
}

void packBf16(const Bf16Packing &packing, int64_t begin, int64_t end) {
  if (!packing.isF32)
    packFrom<From::bf16>(packing, begin, end);
  else if (packing.isNative)
    packFrom<From::f32Native>(packing, begin, end);
  else
    packFrom<From::f32>(packing, begin, end);
}

} // namespace llmc
