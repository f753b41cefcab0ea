// out = softmax(scale * q k^T + mask) v, and lse. A task is one head of one batch and a stretch of queries. For each
// panel the keys come in blocks: scores, running maximum and sum per query (lane), weighted sum of the values; a new
// maximum rescales what is already there. Accumulates in f32. Tasks are independent: deterministic for any thread
// count.
#pragma once

#include "backend/cpu/attention/Tile.h"

namespace llmc::LLMC_ISA_NAMESPACE {

inline constexpr int64_t kForwardQueries = 256; ///< queries of one task

/// Memory of one running forward task.
struct ForwardScratch {
  float *k, *v;     ///< (paddedKeys, pitch)
  float *qT, *outT; ///< (pitch, kPanel)
  float *scores;    ///< (kKeyBlock, kPanel)
  float *mask;      ///< (kKeyBlock, kPanel)
  float *end;

  ForwardScratch(const AttentionShape &shape, float *memory) {
    Sizes sizes(shape);
    Scratch scratch{memory};
    k = scratch.take(sizes.paddedKeys * sizes.pitch);
    v = scratch.take(sizes.paddedKeys * sizes.pitch);
    qT = scratch.take(sizes.pitch * kPanel);
    outT = scratch.take(sizes.pitch * kPanel);
    scores = scratch.take(kKeyBlock * kPanel);
    mask = scratch.take(kKeyBlock * kPanel);
    end = scratch.next;
  }
};

/// Softmax state of a panel, a lane per query. The maximum starts finite, so that a query that sees no key keeps the
/// sum 0.
struct Statistics {
  alignas(64) float max[kPanel], sum[kPanel];
};

/// Turns a group's scores for the keys [begin, end) (rows from `block`) into weights, and rescales the sums so far.
static void softmaxGroup(const AttentionForward &args, const Panel &panel, const ForwardScratch &scratch, int group,
                         int64_t block, Statistics &state) {
  KeyRange rows = panel.rows(group, block);
  if (rows.begin == rows.end)
    return;
  float *scores = scratch.scores + group * kLanes;
  const float *mask = args.mask ? scratch.mask + group * kLanes : nullptr;
  LaneLimits limits(args.shape, panel, group);
  Vec oldMax = load(state.max + group * kLanes), max = oldMax;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    Vec score = load(scores + r * kPanel);
    if (mask)
      score = addMask(score, load(mask + r * kPanel));
    int64_t key = block + r;
    if (key < panel.all[group].begin || key >= panel.all[group].end)
      score = limits.sees(key) ? score : splat(-__builtin_inff());
    store(scores + r * kPanel, score);
    max = score > max ? score : max;
  }
  Vec rescale = exp2Of(oldMax - max), sum = load(state.sum + group * kLanes) * rescale;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    Vec weight = exp2Of(load(scores + r * kPanel) - max);
    store(scores + r * kPanel, weight);
    sum += weight;
  }
  store(state.max + group * kLanes, max);
  store(state.sum + group * kLanes, sum);
  for (int64_t d = 0; d < Sizes(args.shape).headRows; ++d) {
    float *at = scratch.outT + d * kPanel + group * kLanes;
    store(at, load(at) * rescale);
  }
}

/// Adds one block of keys to a panel.
static void forwardBlock(const AttentionForward &args, const Panel &panel, const ForwardScratch &scratch, int64_t block,
                         Statistics &state) {
  Sizes sizes(args.shape);
  const float *k = scratch.k + block * sizes.pitch, *v = scratch.v + block * sizes.pitch;
  Segment segments[3];
  int count = panel.segments(block, segments);
  for (int i = 0; i < count; ++i) {
    auto [begin, end, group, numGroups] = segments[i];
    multiply(end - begin, numGroups, {k + begin * sizes.pitch, sizes.pitch, 1}, scratch.qT + group * kLanes, kPanel,
             args.shape.headSize, scratch.scores + begin * kPanel + group * kLanes, kPanel, false);
  }
  for (int group = 0; group < panel.numGroups; ++group)
    softmaxGroup(args, panel, scratch, group, block, state);
  for (int i = 0; i < count; ++i) {
    auto [begin, end, group, numGroups] = segments[i];
    multiply(sizes.headRows, numGroups, {v + begin * sizes.pitch, 1, sizes.pitch},
             scratch.scores + begin * kPanel + group * kLanes, kPanel, end - begin, scratch.outT + group * kLanes,
             kPanel, true);
  }
}

static int64_t numForwardTasks(const AttentionShape &shape) {
  return shape.batch * shape.heads * ((shape.queries + kForwardQueries - 1) / kForwardQueries);
}

static uint64_t forwardScratchBytes(const AttentionShape &shape) {
  return uint64_t(reinterpret_cast<uintptr_t>(ForwardScratch(shape, nullptr).end));
}

template <typename T> static void forwardTask(const AttentionForward &args, int64_t task, std::byte *memory) {
  const AttentionShape &shape = args.shape;
  Sizes sizes(shape);
  ForwardScratch scratch(shape, reinterpret_cast<float *>(memory));
  int64_t stretches = (shape.queries + kForwardQueries - 1) / kForwardQueries;
  int64_t begin = task % stretches * kForwardQueries, end = minOf(shape.queries, begin + kForwardQueries);
  int64_t head = task / stretches % shape.heads, batch = task / stretches / shape.heads;
  int64_t kvColumn = head / (shape.heads / shape.kvHeads) * shape.headSize;

  // Blocks are counted from the first key in sight; keys in sight lie packed at their own place.
  int64_t firstKey = keysOfQuery(shape, begin).begin / kKeyBlock * kKeyBlock;
  int64_t endKey = keysOfQuery(shape, end - 1).end, numKeys = maxOf(0, endKey - firstKey);
  int64_t paddedKeys = roundUp(numKeys, kRows);
  packRows(rowAt<T>(args.k, batch * shape.keys + firstKey, kvColumn), args.k.rowStride, numKeys, paddedKeys,
           shape.headSize, scratch.k + firstKey * sizes.pitch, sizes.pitch);
  packRows(rowAt<T>(args.v, batch * shape.keys + firstKey, kvColumn), args.v.rowStride, numKeys, paddedKeys,
           shape.headSize, scratch.v + firstKey * sizes.pitch, sizes.pitch);

  const float *mask = args.mask ? args.mask + batch * shape.maskBatchStride + head * shape.maskHeadStride : nullptr;
  MaskTile maskTile{mask, shape, scratch.mask};
  for (int64_t query = begin; query < end; query += kPanel) {
    Panel panel(shape, query, end);
    packTransposed(rowAt<T>(args.q, batch * shape.queries + query, head * shape.headSize), args.q.rowStride,
                   panel.numQueries, shape.headSize, shape.scale * kLog2E, scratch.qT);
    Statistics state;
    for (int lane = 0; lane < kPanel; ++lane) {
      state.max[lane] = -FLT_MAX;
      state.sum[lane] = 0;
    }
    std::memset(scratch.outT, 0, size_t(sizes.pitch * kPanel) * sizeof(float));
    for (int64_t block = panel.keys.begin / kKeyBlock * kKeyBlock; block < panel.keys.end; block += kKeyBlock) {
      if (mask)
        maskTile.fill(panel, block);
      forwardBlock(args, panel, scratch, block, state);
    }

    alignas(64) float inverse[kPanel];
    for (int lane = 0; lane < kPanel; ++lane)
      inverse[lane] = state.sum[lane] == 0 ? 0 : 1 / state.sum[lane];
    unpackTransposed(scratch.outT, inverse, panel.numQueries, shape.headSize,
                     rowAt<T>(args.out, batch * shape.queries + query, head * shape.headSize), args.out.rowStride);
    float *lse = args.lse + (batch * shape.heads + head) * shape.queries + query;
    for (int64_t lane = 0; lane < panel.numQueries; ++lane)
      lse[lane] = state.sum[lane] == 0 ? -__builtin_inff() : kLn2 * state.max[lane] + __builtin_logf(state.sum[lane]);
  }
}

} // namespace llmc::LLMC_ISA_NAMESPACE
