// Everything moves as pairs of bf16 in 32-bit lanes: two neighbours of one row, or one element each of two rows. Tiles
// of 16 x 16 such pairs are transposed in registers, so that src and dst are both read and written by whole lines.
#include "backend/cpu/PackBf16.h"

#include <algorithm>
#include <immintrin.h>

#define LLMC_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl")))

namespace llmc {

static constexpr int64_t kLanes = 16, kBlockRows = 32, kBlockColumns = 64;

static int64_t numBlocks(int64_t size, int64_t block) { return (size + block - 1) / block; }

/// The lanes of `count` elements, none when it is negative.
static uint32_t lanesOf(int64_t count, int64_t most) {
  return count <= 0 ? 0 : uint32_t((uint64_t(1) << std::min(count, most)) - 1);
}

/// 16 elements as bf16 in the low halves of 32-bit lanes, zero where the mask is; f32 rounds to nearest even, a NaN
/// stays one.
template <bool isF32> LLMC_AVX512 static inline __m512i loadLow(const std::byte *row, int64_t at, uint32_t mask) {
  if constexpr (!isF32)
    return _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(__mmask16(mask), row + 2 * at));
  __m512i bits = _mm512_maskz_loadu_epi32(__mmask16(mask), row + 4 * at);
  __m512i high = _mm512_srli_epi32(bits, 16);
  __m512i odd = _mm512_and_si512(high, _mm512_set1_epi32(1));
  __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  __m512 value = _mm512_castsi512_ps(bits);
  __mmask16 isNan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
  return _mm512_mask_or_epi32(_mm512_srli_epi32(rounded, 16), isNan, high, _mm512_set1_epi32(0x40));
}

/// Lane i: element at + i of two rows; a null row is zeros.
template <bool isF32>
LLMC_AVX512 static inline __m512i pairOfRows(const std::byte *low, const std::byte *high, int64_t at, uint32_t mask) {
  __m512i a = low ? loadLow<isF32>(low, at, mask) : _mm512_setzero_si512();
  __m512i b = high ? loadLow<isF32>(high, at, mask) : _mm512_setzero_si512();
  return _mm512_or_si512(a, _mm512_slli_epi32(b, 16));
}

/// Lane i: elements at + 2i and at + 2i + 1 of one row, of which there are `count`.
template <bool isF32> LLMC_AVX512 static inline __m512i pairsOfRow(const std::byte *row, int64_t at, int64_t count) {
  if constexpr (!isF32)
    return _mm512_maskz_loadu_epi16(lanesOf(count, 32), row + 2 * at);
  // clang-format off
  const __m512i evenHalves = _mm512_set_epi16(62, 60, 58, 56, 54, 52, 50, 48, 46, 44, 42, 40, 38, 36, 34, 32,
                                              30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
  // clang-format on
  __m512i a = loadLow<isF32>(row, at, lanesOf(count, kLanes));
  __m512i b = loadLow<isF32>(row, at + kLanes, lanesOf(count - kLanes, kLanes));
  return _mm512_permutex2var_epi16(a, evenHalves, b);
}

/// Transposes 16 x 16 lanes.
LLMC_AVX512 static inline void transpose(__m512i (&r)[16]) {
  __m512i t[16];
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
  // r[4g + c]: in its 128-bit lane l, column 4l + c of rows 4g to 4g + 3.
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(t[i], t[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(t[i], t[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(t[i + 1], t[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(t[i + 1], t[i + 3]);
  }
  for (int c = 0; c < 4; ++c) {
    __m512i even0 = _mm512_shuffle_i32x4(r[c], r[4 + c], 0x88), even1 = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0x88);
    __m512i odd0 = _mm512_shuffle_i32x4(r[c], r[4 + c], 0xdd), odd1 = _mm512_shuffle_i32x4(r[8 + c], r[12 + c], 0xdd);
    t[c] = _mm512_shuffle_i32x4(even0, even1, 0x88);
    t[4 + c] = _mm512_shuffle_i32x4(odd0, odd1, 0x88);
    t[8 + c] = _mm512_shuffle_i32x4(even0, even1, 0xdd);
    t[12 + c] = _mm512_shuffle_i32x4(odd0, odd1, 0xdd);
  }
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

/// Two rows of src are one line of pairs of each block in a row of blocks.
template <bool isF32> LLMC_AVX512 static void packRows(const Bf16Packing &p, int64_t rowBlock) {
  for (int64_t columnBlock = 0; columnBlock < numBlocks(p.n, kBlockColumns); ++columnBlock) {
    std::byte *block = blockOf(p, rowBlock, columnBlock);
    for (int64_t pair = 0; pair < kBlockRows / 2; ++pair) {
      int64_t row = rowBlock * kBlockRows + 2 * pair;
      const std::byte *low = rowOf(p, row), *high = rowOf(p, row + 1);
      for (int64_t j = 0; j < kBlockColumns; j += kLanes) {
        int64_t at = columnBlock * kBlockColumns + j;
        _mm512_storeu_si512(block + (pair * kBlockColumns + j) * 4,
                            pairOfRows<isF32>(low, high, at, lanesOf(p.n - at, kLanes)));
      }
    }
  }
}

/// A row of src is a column of a block.
template <bool isF32> LLMC_AVX512 static void packColumns(const Bf16Packing &p, int64_t columnBlock) {
  for (int64_t rowBlock = 0; rowBlock < numBlocks(p.k, kBlockRows); ++rowBlock) {
    std::byte *block = blockOf(p, rowBlock, columnBlock);
    int64_t at = rowBlock * kBlockRows;
    for (int64_t j = 0; j < kBlockColumns; j += kLanes) {
      __m512i tile[16];
      for (int64_t i = 0; i < kLanes; ++i) {
        const std::byte *row = rowOf(p, columnBlock * kBlockColumns + j + i);
        tile[i] = row ? pairsOfRow<isF32>(row, at, p.k - at) : _mm512_setzero_si512();
      }
      transpose(tile);
      for (int64_t pair = 0; pair < kBlockRows / 2; ++pair)
        _mm512_storeu_si512(block + (pair * kBlockColumns + j) * 4, tile[pair]);
    }
  }
}

/// 16 rows of a row-major transpose, 32 columns at a time.
template <bool isF32> LLMC_AVX512 static void packTransposed(const Bf16Packing &p, int64_t piece) {
  int64_t top = piece * kLanes, rows = std::min(kLanes, p.k - top);
  for (int64_t left = 0; left < p.n; left += 2 * kLanes) {
    __m512i tile[16];
    for (int64_t i = 0; i < kLanes; ++i)
      tile[i] = pairOfRows<isF32>(rowOf(p, left + 2 * i), rowOf(p, left + 2 * i + 1), top, lanesOf(rows, kLanes));
    transpose(tile);
    for (int64_t i = 0; i < rows; ++i)
      _mm512_mask_storeu_epi16(p.dst + 2 * ((top + i) * p.n + left), lanesOf(p.n - left, 32), tile[i]);
  }
}

int64_t numPieces(const Bf16Packing &p) {
  if (!p.isBlocked)
    return numBlocks(p.k, kLanes);
  return p.isTransposed ? numBlocks(p.n, kBlockColumns) : numBlocks(p.k, kBlockRows);
}

template <bool isF32> static void packPiece(const Bf16Packing &p, int64_t piece) {
  if (!p.isBlocked)
    packTransposed<isF32>(p, piece);
  else if (p.isTransposed)
    packColumns<isF32>(p, piece);
  else
    packRows<isF32>(p, piece);
}

void packBf16(const Bf16Packing &packing, int64_t begin, int64_t end) {
  for (int64_t piece = begin; piece < end; ++piece) {
    if (packing.isF32)
      packPiece<true>(packing, piece);
    else
      packPiece<false>(packing, piece);
  }
}

} // namespace llmc
