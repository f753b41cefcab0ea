// Scores of a panel in units of log2, strip by strip, and the running softmax over blocks of keys: maximum and sum of
// each query in its lane; a new maximum rescales what was summed before.
#pragma once

#include "backend/cpu/attention/Panel.h"

namespace llmc::LLMC_ISA_NAMESPACE {

inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2 = 0.693147181f;

/// A score in units of log2 with its mask added. Only a mask of -inf hides a key for good: a finite one, however low,
/// stays finite, so that a query whose keys are all so masked weighs them alike.
static inline Vec addMask(Vec score, Vec mask) {
  return score + (mask < splat(-FLT_MAX) ? mask : atLeast(mask * kLog2E, splat(-FLT_MAX)));
}

/// What turns the keys of one panel into scores.
template <typename F> struct Scores {
  const Panel &panel;
  Sizes<F> sizes;
  const Word *qT;    ///< (headWords, lanes): the panel's queries, a lane each
  int64_t qPitch;    ///< of qT
  const float *mask; ///< (kKeyBlock, kPanel) of the block at hand, or none
  Vec scale;
  LaneLimits limits[kGroups];

  Scores(const AttentionShape &shape, const Panel &panel, const Word *qT, int64_t qPitch, const float *mask)
      : panel(panel), sizes(shape), qT(qT), qPitch(qPitch), mask(mask), scale(splat(shape.scale * kLog2E)),
        limits{LaneLimits(shape, panel, 0), LaneLimits(shape, panel, 1)} {}

  /// Scores of kRows keys, from row `row` of the block at `block` on, against the groups from `group` on; -inf where a
  /// query does not see a key. k (kRows, headWords) are these keys.
  template <int numVecs>
  inline __attribute__((always_inline)) void strip(const Word *k, int64_t block, int64_t row, int group,
                                                   Vec (&scores)[kRows][numVecs]) const {
    multiplyTile<F, numVecs>({k, sizes.rowPitch, 1}, {qT + group * kLanes, qPitch}, sizes.headWords, scores);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < numVecs; ++v)
        scores[r][v] *= scale;
    if (mask)
      addMasks<numVecs>(row, group, scores);
    int64_t key = block + row;
    for (int v = 0; v < numVecs; ++v)
      if (key < panel.all[group + v].begin || key + kRows > panel.all[group + v].end)
        hide<numVecs>(key, limits[group + v], v, scores);
  }

private:
  template <int numVecs> void addMasks(int64_t row, int group, Vec (&scores)[kRows][numVecs]) const {
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < numVecs; ++v)
        scores[r][v] = addMask(scores[r][v], load(mask + (row + r) * kPanel + (group + v) * kLanes));
  }
  template <int numVecs> static void hide(int64_t key, const LaneLimits &limits, int v, Vec (&scores)[kRows][numVecs]) {
    for (int r = 0; r < kRows; ++r)
      scores[r][v] = limits.sees(key + r) ? scores[r][v] : splat(-__builtin_inff());
  }
};

/// Softmax state of a panel, a lane per query. The maximum starts finite, so that a query that sees no key keeps the
/// sum 0.
struct Softmax {
  alignas(64) float max[kPanel], sum[kPanel];
  alignas(64) float rescale[kPanel]; ///< what the last block makes of earlier sums
  Softmax() {
    for (int lane = 0; lane < kPanel; ++lane) {
      max[lane] = -FLT_MAX;
      sum[lane] = 0;
      rescale[lane] = 1;
    }
  }
};

/// Scores of a segment into `tile` (kKeyBlock, kPanel), and the maxima so far.
template <typename F, int numVecs>
static __attribute__((noinline)) void scoreSegment(const Scores<F> &scores, const Word *k, int64_t block,
                                                   const Segment &segment, float *tile, float *max) {
  Vec largest[numVecs];
  for (int v = 0; v < numVecs; ++v)
    largest[v] = load(max + (segment.group + v) * kLanes);
  for (int64_t row = segment.rowBegin; row < segment.rowEnd; row += kRows) {
    Vec strip[kRows][numVecs];
    scores.template strip<numVecs>(k + row * scores.sizes.rowPitch, block, row, segment.group, strip);
    float *to = tile + row * kPanel + segment.group * kLanes;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < numVecs; ++v) {
        store(to + r * kPanel + v * kLanes, strip[r][v]);
        largest[v] = larger(strip[r][v], largest[v]);
      }
  }
  for (int v = 0; v < numVecs; ++v)
    store(max + (segment.group + v) * kLanes, largest[v]);
}

/// Turns a group's scores into weights in place, as words down the keys, and sums them.
template <typename F>
static __attribute__((noinline)) void weighGroup(KeyRange rows, float *tile, Vec max, float *sum) {
  constexpr bool isRough = kDepth<F> > 1;
  Vec total = load(sum);
  for (int64_t row = rows.begin; row < rows.end; row += kRows)
#pragma GCC unroll 8
    for (int r = 0; r < kRows; r += kDepth<F>) {
      const float *from = tile + (row + r) * kPanel;
      float *to = tile + (row + r) / kDepth<F> * kPanel;
      Vec weight = exp2Of<isRough>(load(from) - max);
      total += weight;
      if constexpr (kDepth<F> == 1) {
        store(to, weight);
      } else {
        Vec next = exp2Of<isRough>(load(from + kPanel) - max);
        total += next;
        store(to, pairOf(weight, next));
      }
    }
  store(sum, total);
}

/// The block of keys at `block` (k: its rows, padded to whole strips) becomes weights in `tile` (kKeyBlock / kDepth
/// words, kPanel), and part of the state.
template <typename F>
static void weighBlock(const Scores<F> &scores, const Word *k, int64_t block, float *tile, Softmax &state) {
  alignas(64) float oldMax[kPanel];
  std::memcpy(oldMax, state.max, sizeof(oldMax));
  Segment segments[3];
  int count = scores.panel.segments(block, segments);
  for (int i = 0; i < count; ++i)
    if (segments[i].numGroups == 2)
      scoreSegment<F, 2>(scores, k, block, segments[i], tile, state.max);
    else
      scoreSegment<F, 1>(scores, k, block, segments[i], tile, state.max);
  for (int group = 0; group < scores.panel.numGroups; ++group) {
    int lane = group * kLanes;
    Vec max = load(state.max + lane), rescale = exp2Of<false>(load(oldMax + lane) - max);
    store(state.rescale + lane, rescale);
    store(state.sum + lane, load(state.sum + lane) * rescale);
    weighGroup<F>(scores.panel.rows(group, block), tile + lane, max, state.sum + lane);
  }
}

} // namespace llmc::LLMC_ISA_NAMESPACE
