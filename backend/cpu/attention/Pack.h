// Rows of heads brought into words (Product.h) and back. A factor is summed either along the head or along the tokens:
// pairs of bf16 are neighbours in a row, or the same column of two rows.
#pragma once

#include "backend/cpu/attention/Product.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// Words in `elements` elements along the dimension that is summed.
template <typename F> static constexpr int64_t wordsIn(int64_t elements) {
  return (elements + kDepth<F> - 1) / kDepth<F>;
}

/// The distance of rows of `words` words: whole vectors, and an odd number of cache lines, so that a column's words
/// spread over all sets of the cache.
static constexpr int64_t pitchOf(int64_t words) { return roundUp(words, 16) | 16; }

/// kLanes words along a row of which `count` elements are left; beyond, zero.
template <typename F, typename T> static inline Vec rowWords(const T *row, int64_t count) {
  if constexpr (kDepth<F> == 1) {
    return loadLanes(row, count);
  } else {
    static_assert(std::is_same_v<F, T>);
    return loadPairs(row, count);
  }
}

/// kLanes words of kDepth<F> rows from `row` on, of which `numRows` exist, `count` columns each; beyond, zero.
template <typename F, typename T>
static inline Vec columnWords(const T *row, int64_t stride, int64_t numRows, int64_t count) {
  if (numRows <= 0)
    return Vec{};
  if constexpr (kDepth<F> == 1) {
    return loadLanes(row, count);
  } else {
    Bits words = __builtin_convertvector(loadHalves(row, count), Bits);
    if (numRows > 1)
      words |= __builtin_convertvector(loadHalves(row + stride, count), Bits) << 16;
    return Vec(words);
  }
}

/// Tokens of one head in memory.
template <typename T> struct HeadRows {
  const T *data;
  int64_t stride, numRows, columns;
};

/// Asks for a head's rows ahead of their use: rows lie pages apart, where no hardware looks ahead.
template <typename T> static void fetchRows(const HeadRows<T> &src) {
  constexpr int64_t kLine = 64 / int64_t(sizeof(T));
  for (int64_t i = 0; i < src.numRows; ++i)
    for (int64_t j = 0; j < src.columns + kLine - 1; j += kLine)
      __builtin_prefetch(src.data + i * src.stride + minOf(j, src.columns - 1), 0, 2);
}

/// dst (paddedRows, wordsIn(columns)): words along each row; rows beyond src's are zero.
template <typename F, typename T>
static void packRows(const HeadRows<T> &src, int64_t paddedRows, Word *dst, int64_t pitch) {
  for (int64_t i = 0; i < paddedRows; ++i)
    for (int64_t j = 0, column = 0; column < src.columns; j += kLanes, column += kLanes * kDepth<F>)
      store(dst + i * pitch + j,
            i < src.numRows ? rowWords<F>(src.data + i * src.stride + column, src.columns - column) : Vec{});
}

/// dst (paddedRows / kDepth, columns): words down the columns; rows beyond src's are zero.
template <typename F, typename T>
static void packColumns(const HeadRows<T> &src, int64_t paddedRows, Word *dst, int64_t pitch) {
  for (int64_t i = 0; i < paddedRows; i += kDepth<F>, dst += pitch)
    for (int64_t j = 0; j < src.columns; j += kLanes)
      store(dst + j, columnWords<F>(src.data + i * src.stride + j, src.stride, src.numRows - i, src.columns - j));
}

/// dst (wordsIn(columns), numGroups * kLanes): words along the rows, a lane per row; beyond, zero.
template <typename F, typename T>
static void packTransposed(const HeadRows<T> &src, int numGroups, Word *dst, int64_t pitch) {
  for (int group = 0; group < numGroups; ++group)
    for (int64_t j = 0, column = 0; column < src.columns; j += kLanes, column += kLanes * kDepth<F>) {
      Vec rows[kLanes];
      for (int i = 0; i < kLanes; ++i) {
        int64_t row = group * kLanes + i;
        rows[i] = row < src.numRows ? rowWords<F>(src.data + row * src.stride + column, src.columns - column) : Vec{};
      }
      transposeBlock(rows);
      for (int i = 0; i < kLanes; ++i)
        store(dst + (j + i) * pitch + group * kLanes, rows[i]);
    }
}

/// dst (numRows, columns) = src^T * factor, src (columns, lanes), a factor per lane.
template <typename T>
static void unpackTransposed(const Sums &src, const float *factors, int64_t numRows, int64_t columns, T *dst,
                             int64_t dstStride) {
  for (int64_t first = 0; first < numRows; first += kLanes) {
    Vec factor = load(factors + first);
    for (int64_t j = 0; j < columns; j += kLanes) {
      Vec rows[kLanes];
      int64_t count = columns - j;
      for (int i = 0; i < kLanes; ++i)
        rows[i] = i < count ? load(src.data + (j + i) * src.stride + first) * factor : Vec{};
      transposeBlock(rows);
      for (int i = 0; i < kLanes && first + i < numRows; ++i)
        storeLanes(dst + (first + i) * dstStride + j, rows[i], count);
    }
  }
}

/// dst (numRows, columns) = src * factor.
template <typename T>
static void unpackRows(const Sums &src, float factor, int64_t numRows, int64_t columns, T *dst, int64_t dstStride) {
  for (int64_t i = 0; i < numRows; ++i)
    for (int64_t j = 0; j < columns; j += kLanes)
      storeLanes(dst + i * dstStride + j, load(src.data + i * src.stride + j) * factor, columns - j);
}

/// A vector of kLanes float sums as words of neighbours: kLanes / kDepth words.
template <typename F> static inline void storeRowWords(Word *dst, Vec values) {
  if constexpr (kDepth<F> == 1) {
    store(dst, values);
  } else {
    HalfBits bits = narrow(values);
    std::memcpy(dst, &bits, sizeof(bits));
  }
}

} // namespace llmc::LLMC_ISA_NAMESPACE
