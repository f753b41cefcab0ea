// What a panel, two vectors of queries, sees: scores are held transposed, keys as rows and queries as lanes, so that
// each query's softmax statistics sit in its own lane and no sum crosses lanes. What nobody sees is skipped by strips
// of kRows keys and groups of kLanes queries.
#pragma once

#include "backend/cpu/attention/Attention.h"
#include "backend/cpu/attention/Pack.h"

namespace llmc::LLMC_ISA_NAMESPACE {

inline constexpr int kGroups = 2; ///< groups of kLanes queries in a panel
inline constexpr int kPanel = kGroups * kLanes;
inline constexpr int64_t kKeyBlock = 64; ///< keys whose scores for one panel are alive at a time

/// Sizes derived from a shape, for factors of F.
template <typename F> struct Sizes {
  int64_t headWords;   ///< words along the head
  int64_t rowPitch;    ///< of rows of words along the head
  int64_t columnPitch; ///< of rows of words, or sums, one for each column of the head
  int64_t headRows;    ///< the head size in whole micro-kernel rows
  int64_t headVectors; ///< and in vectors
  explicit Sizes(const AttentionShape &shape)
      : headWords(wordsIn<F>(shape.headSize)), rowPitch(pitchOf(headWords)), columnPitch(pitchOf(shape.headSize)),
        headRows(roundUp(shape.headSize, kRows)), headVectors(roundUp(shape.headSize, kLanes) / kLanes) {}
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

/// The keys that queries [begin, end) see together: both ends grow with the query.
static inline KeyRange keysOfQueries(const AttentionShape &shape, int64_t begin, int64_t end) {
  return {keysOfQuery(shape, begin).begin, keysOfQuery(shape, end - 1).end};
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
      return packTransposed<float>(HeadRows<float>{from, shape.maskQueryStride, panel.numQueries, count}, kGroups, tile,
                                   kPanel);
    for (int64_t s = 0; s < count; ++s)
      for (int64_t t = 0; t < kPanel; ++t)
        tile[s * kPanel + t] = t < panel.numQueries ? from[t * shape.maskQueryStride + s * shape.maskKeyStride] : 0.0f;
  }
};

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

/// Rows of the head whose first column is `column`.
template <typename T>
static HeadRows<T> headRows(const AttentionShape &shape, const AttentionRows &rows, int64_t row, int64_t column,
                            int64_t numRows) {
  return {rowAt<T>(rows, row, column), rows.rowStride, numRows, shape.headSize};
}

} // namespace llmc::LLMC_ISA_NAMESPACE
