// The one micro-kernel of attention. Operands are held in 32-bit words: a float, or two bf16 that are neighbours along
// the dimension that is summed, so that one loop of broadcast words times vectors of words serves both precisions.
#pragma once

#include "backend/cpu/attention/Simd.h"

#include <type_traits>

namespace llmc::LLMC_ISA_NAMESPACE {

/// What products of tensors stored as T are computed from: bf16 where the CPU multiplies it, f32 otherwise. Sums are
/// f32.
template <typename T>
using FactorOf = std::conditional_t<std::is_same_v<T, BFloat16> && kMultipliesBf16, BFloat16, float>;

/// Elements in a word of F, along the dimension that is summed.
template <typename F> inline constexpr int kDepth = int(sizeof(float) / sizeof(F));

/// A float or a pair of bf16, only ever moved as a whole.
typedef float Word;

/// sum + a * b over the elements of each word.
template <typename F> static inline Vec addProduct(Vec sum, Vec a, Vec b) {
  if constexpr (kDepth<F> == 1)
    return sum + a * b;
  else
    return addPairProducts(sum, a, b);
}

/// Rows a micro-kernel works on: with two vectors of lanes, the sums fill half of the registers.
inline constexpr int kRows = kLanes / 2;

/// The factor whose words are broadcast: word (i, j) at data[i * rowStride + j * columnStride].
struct Broadcast {
  const Word *data;
  int64_t rowStride, columnStride;
};

/// The factor that is read in vectors: word (j, lane) at data[j * stride + lane].
struct Lanes {
  const Word *data;
  int64_t stride;
};

/// sum (kRows, numVecs vectors) = a (kRows, count words) * b (count words, numVecs vectors).
template <typename F, int numVecs>
static inline __attribute__((always_inline)) void multiplyTile(const Broadcast &a, const Lanes &b, int64_t count,
                                                               Vec (&sum)[kRows][numVecs]) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < numVecs; ++v)
      sum[r][v] = Vec{};
  const Word *aColumn = a.data, *bRow = b.data;
  const int64_t rowStride = a.rowStride, columnStride = a.columnStride;
  for (int64_t j = 0; j < count; ++j, aColumn += columnStride, bRow += b.stride) {
    Vec lanes[numVecs];
#pragma GCC unroll 4
    for (int v = 0; v < numVecs; ++v)
      lanes[v] = load(bRow + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      Vec word = splat(aColumn[r * rowStride]);
#pragma GCC unroll 4
      for (int v = 0; v < numVecs; ++v)
        sum[r][v] = addProduct<F>(sum[r][v], word, lanes[v]);
    }
  }
}

/// Sums of products in f32, kept transposed or not: element (i, lane) at data[i * stride + lane].
struct Sums {
  float *data;
  int64_t stride;
};

template <typename F, int numVecs>
static inline __attribute__((always_inline)) void addTile(const Broadcast &a, const Lanes &b, int64_t count,
                                                          const Sums &dst, const float *scale) {
  Vec sum[kRows][numVecs], scales[numVecs];
  multiplyTile<F, numVecs>(a, b, count, sum);
#pragma GCC unroll 4
  for (int v = 0; v < numVecs; ++v)
    scales[v] = scale ? load(scale + v * kLanes) : splat(1.0f);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < numVecs; ++v) {
      float *at = dst.data + r * dst.stride + v * kLanes;
      store(at, load(at) * scales[v] + sum[r][v]);
    }
}

/// dst (rows, vectors) = dst * scale + a (rows, count words) * b (count words, vectors); scale per lane, or none: 1.
/// rows is a multiple of kRows.
template <typename F>
static __attribute__((noinline)) void addProducts(int64_t rows, int64_t vectors, Broadcast a, Lanes b, int64_t count,
                                                  Sums dst, const float *scale = nullptr) {
  for (int64_t v = 0; v < vectors; v += 2)
    for (int64_t r = 0; r < rows; r += kRows) {
      Broadcast aPart{a.data + r * a.rowStride, a.rowStride, a.columnStride};
      Lanes bPart{b.data + v * kLanes, b.stride};
      Sums to{dst.data + r * dst.stride + v * kLanes, dst.stride};
      const float *scales = scale ? scale + v * kLanes : nullptr;
      if (v + 1 < vectors)
        addTile<F, 2>(aPart, bPart, count, to, scales);
      else
        addTile<F, 1>(aPart, bPart, count, to, scales);
    }
}

} // namespace llmc::LLMC_ISA_NAMESPACE
