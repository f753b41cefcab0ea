// The parts both passes of attention are made of. A panel is two vectors of queries: scores are held transposed, keys
// as rows and queries as lanes, so that each query's softmax statistics sit in its own lane and no sum crosses lanes.
// Every product is then one micro-kernel: a few rows of broadcast scalars times vectors of lanes.
#pragma once

#include "backend/cpu/attention/Attention.h"
#include "backend/cpu/attention/Simd.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// Rows a micro-kernel works on: with two vectors of lanes, the accumulators fill half of the registers.
inline constexpr int kRows = kLanes / 2;
inline constexpr int kGroups = 2; ///< groups of kLanes queries in a panel
inline constexpr int kPanel = kGroups * kLanes;
inline constexpr int64_t kKeyBlock = 64; ///< keys whose scores for one panel are alive at a time

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147181f;

/// A matrix in memory: element (i, j) at data[i * rowStride + j * columnStride].
struct Scalars {
  const float *data;
  int64_t rowStride, columnStride;
};

/// dst (kRows, numVecs vectors) = or += a (kRows, count) * b (count, vectors).
template <int numVecs>
static inline __attribute__((always_inline)) void multiplyTile(const Scalars &a, const float *b, int64_t bStride,
                                                               int64_t count, float *dst, int64_t dstStride, bool add) {
  Vec sum[kRows][numVecs] = {};
  const float *aColumn = a.data;
  const int64_t rowStride = a.rowStride, columnStride = a.columnStride;
  for (int64_t i = 0; i < count; ++i) {
    Vec lanes[numVecs];
#pragma GCC unroll 4
    for (int v = 0; v < numVecs; ++v)
      lanes[v] = load(b + v * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      Vec scalar = splat(aColumn[r * rowStride]);
#pragma GCC unroll 4
      for (int v = 0; v < numVecs; ++v)
        sum[r][v] += scalar * lanes[v];
    }
    aColumn += columnStride;
    b += bStride;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < numVecs; ++v) {
      float *at = dst + r * dstStride + v * kLanes;
      store(at, add ? load(at) + sum[r][v] : sum[r][v]);
    }
}

/// dst (rows, vectors * kLanes) = or += a (rows, count) * b (count, vectors * kLanes). rows is a multiple of kRows.
static __attribute__((noinline)) void multiply(int64_t rows, int64_t vectors, Scalars a, const float *b,
                                               int64_t bStride, int64_t count, float *dst, int64_t dstStride,
                                               bool add) {
  for (int64_t v = 0; v < vectors; v += 2)
    for (int64_t r = 0; r < rows; r += kRows) {
      Scalars part{a.data + r * a.rowStride, a.rowStride, a.columnStride};
      float *to = dst + r * dstStride + v * kLanes;
      if (v + 1 < vectors)
        multiplyTile<2>(part, b + v * kLanes, bStride, count, to, dstStride, add);
      else
        multiplyTile<1>(part, b + v * kLanes, bStride, count, to, dstStride, add);
    }
}

/// dst (numRows, roundUp(columns, kLanes)), pitch dstStride = src rows as floats, zero beyond `columns`; rows from
/// numRows up to paddedRows are zero.
template <typename T>
static void packRows(const T *src, int64_t srcStride, int64_t numRows, int64_t paddedRows, int64_t columns, float *dst,
                     int64_t dstStride) {
  for (int64_t i = 0; i < numRows; ++i, src += srcStride, dst += dstStride)
    for (int64_t j = 0; j < columns; j += kLanes)
      store(dst + j, j + kLanes <= columns ? loadLanes(src + j) : loadLanes(src + j, int(columns - j)));
  for (int64_t i = numRows; i < paddedRows; ++i, dst += dstStride)
    for (int64_t j = 0; j < columns; j += kLanes)
      store(dst + j, Vec{});
}

/// dst (roundUp(columns, kLanes), kPanel) = factor * src^T of up to kPanel rows, zero elsewhere.
template <typename T>
static void packTransposed(const T *src, int64_t srcStride, int64_t numRows, int64_t columns, float factor,
                           float *dst) {
  for (int group = 0; group < kGroups; ++group)
    for (int64_t j = 0; j < columns; j += kLanes) {
      Vec rows[kLanes];
      int count = int(minOf(kLanes, columns - j));
      for (int i = 0; i < kLanes; ++i) {
        int64_t row = group * kLanes + i;
        const T *from = src + row * srcStride + j;
        rows[i] = row >= numRows ? Vec{} : count == kLanes ? loadLanes(from) : loadLanes(from, count);
      }
      transposeBlock(rows);
      for (int i = 0; i < kLanes; ++i)
        store(dst + (j + i) * kPanel + group * kLanes, rows[i] * factor);
    }
}

/// dst (numRows, columns) = src^T * factor, src (columns, kPanel) with queries as lanes, a factor per query.
template <typename T>
static void unpackTransposed(const float *src, const float *factors, int64_t numRows, int64_t columns, T *dst,
                             int64_t dstStride) {
  for (int64_t first = 0; first < numRows; first += kLanes) {
    Vec factor = load(factors + first);
    for (int64_t j = 0; j < columns; j += kLanes) {
      Vec rows[kLanes];
      int count = int(minOf(kLanes, columns - j));
      for (int i = 0; i < kLanes; ++i)
        rows[i] = i < count ? load(src + (j + i) * kPanel + first) * factor : Vec{};
      transposeBlock(rows);
      for (int i = 0; i < kLanes && first + i < numRows; ++i)
        storeLanes(dst + (first + i) * dstStride + j, rows[i], count);
    }
  }
}

/// Sizes derived from a shape.
struct Sizes {
  int64_t pitch;      ///< of packed rows: the head size in whole vectors
  int64_t headRows;   ///< the head size in whole micro-kernel rows
  int64_t paddedKeys; ///< the keys in whole blocks
  explicit Sizes(const AttentionShape &shape)
      : pitch(roundUp(shape.headSize, kLanes)), headRows(roundUp(shape.headSize, kRows)),
        paddedKeys(roundUp(shape.keys, kKeyBlock)) {}
};

/// The keys a query sees: [begin, end).
struct KeyRange {
  int64_t begin, end;
};

static inline KeyRange keysOfQuery(const AttentionShape &shape, int64_t query) {
  int64_t last = query + shape.keys - shape.queries; // the newest key a causal query sees
  int64_t end = shape.causal ? maxOf(0, minOf(shape.keys, last + 1)) : shape.keys;
  int64_t begin = shape.window > 0 ? minOf(end, maxOf(0, last - shape.window + 1)) : 0;
  return {begin, end};
}

/// A stretch of a key block, in key rows of the block, and the groups of the panel that see some of it.
struct Segment {
  int64_t rowBegin, rowEnd;
  int group, numGroups;
};

/// What one panel of queries sees.
struct Panel {
  int64_t query, numQueries; ///< the first query, and how many of the panel's lanes are queries
  int numGroups;
  KeyRange keys;          ///< of all its queries together
  KeyRange some[kGroups]; ///< keys that some query of the group sees
  KeyRange all[kGroups];  ///< keys that every query of the group sees

  Panel(const AttentionShape &shape, int64_t query, int64_t endQuery)
      : query(query), numQueries(minOf(kPanel, endQuery - query)), numGroups(numQueries > kLanes ? 2 : 1) {
    for (int group = 0; group < kGroups; ++group) {
      KeyRange none{0, 0};
      some[group] = all[group] = none;
      if (group >= numGroups)
        continue;
      KeyRange first = keysOfQuery(shape, query + group * kLanes);
      KeyRange last = keysOfQuery(shape, query + minOf(numQueries, (group + 1) * kLanes) - 1);
      some[group] = {first.begin, last.end};
      all[group] = {last.begin, first.end};
    }
    keys = {some[0].begin, some[numGroups - 1].end};
  }

  /// Rows of the key block at `block` that a group needs, in whole micro-kernel rows.
  KeyRange rows(int group, int64_t block) const {
    int64_t begin = maxOf(0, some[group].begin - block), end = minOf(kKeyBlock, some[group].end - block);
    if (begin >= end)
      return {0, 0};
    return {begin / kRows * kRows, roundUp(end, kRows)};
  }

  /// Cuts a block into stretches with the same groups; returns how many.
  int segments(int64_t block, Segment (&result)[3]) const {
    KeyRange first = rows(0, block), second = rows(1, block);
    int count = 0;
    auto add = [&](int64_t begin, int64_t end, int group, int numGroups) {
      if (begin < end)
        result[count++] = {begin, end, group, numGroups};
    };
    if (first.begin == first.end || second.begin == second.end || second.begin >= first.end) {
      add(first.begin, first.end, 0, 1);
      add(second.begin, second.end, 1, 1);
      return count;
    }
    add(first.begin, second.begin, 0, 1); // a later query never sees older keys than an earlier one
    add(second.begin, first.end, 0, 2);
    add(first.end, second.end, 1, 1);
    return count;
  }
};

/// The additive mask of one head for one panel, transposed block by block.
struct MaskTile {
  const float *mask; ///< of this batch and head, or none
  const AttentionShape &shape;
  float *tile; ///< (kKeyBlock, kPanel)

  /// Fills the tile for the keys from `block` on.
  void fill(const Panel &panel, int64_t block) const {
    int64_t count = minOf(kKeyBlock, shape.keys - block);
    const float *from = mask + panel.query * shape.maskQueryStride + block * shape.maskKeyStride;
    if (shape.maskKeyStride == 1)
      return packTransposed(from, shape.maskQueryStride, panel.numQueries, count, 1, tile);
    for (int64_t s = 0; s < count; ++s)
      for (int64_t t = 0; t < kPanel; ++t)
        tile[s * kPanel + t] = t < panel.numQueries ? from[t * shape.maskQueryStride + s * shape.maskKeyStride] : 0.0f;
  }
};

/// A score in units of log2 with its mask added. Only a mask of -inf hides a key for good: a finite one, however low,
/// stays finite, so that a query whose keys are all so masked weighs them alike.
static inline Vec addMask(Vec score, Vec mask) {
  return score + (mask < splat(-FLT_MAX) ? mask : atLeast(mask * kLog2E, splat(-FLT_MAX)));
}

/// Which lanes of a group see a key: keysOfQuery for all lanes at once (limits beyond the keys do no harm).
struct LaneLimits {
  IntVec begin, end;
  LaneLimits(const AttentionShape &shape, const Panel &panel, int group) {
    IntVec last;
    for (int lane = 0; lane < kLanes; ++lane)
      last[lane] = lane;
    last += int32_t(panel.query + group * kLanes + shape.keys - shape.queries);
    IntVec keys = int32_t(shape.keys) - IntVec{};
    end = shape.causal ? (last < keys ? last + 1 : keys) : keys;
    begin = shape.window > 0 ? last - int32_t(shape.window) + 1 : IntVec{};
  }
  IntVec sees(int64_t key) const {
    IntVec at = int32_t(key) - IntVec{};
    return (at >= begin) & (at < end);
  }
};

/// Hands out pieces of a scratch buffer, each 64-byte aligned.
struct Scratch {
  float *next;
  float *take(int64_t floats) {
    float *piece = next;
    next += roundUp(floats, 16);
    return piece;
  }
};

template <typename T> static T *rowAt(const AttentionRows &rows, int64_t row, int64_t column) {
  return reinterpret_cast<T *>(rows.data) + row * rows.rowStride + column;
}

} // namespace llmc::LLMC_ISA_NAMESPACE
