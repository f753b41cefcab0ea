// dq, dk and dv of attention, with the weights p = 2^(scores - lse) computed again block by block:
//   dv += p^T dOut,  ds = p * (dOut v^T - delta),  dq += scale * ds k,  dk += scale * ds^T q,  delta = rowsum(dOut *
//   out).
// A task is one head of k and v of one batch with all the query heads that share it, summed in order in f32: tasks are
// independent and the result is deterministic for any thread count.
#pragma once

#include "backend/cpu/attention/Tile.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// Memory of one running backward task.
struct BackwardScratch {
  float *k, *v, *dk, *dv;   ///< (paddedKeys, pitch)
  float *qT, *dOutT, *dqT;  ///< (pitch, kPanel)
  float *q, *dOut;          ///< (kPanel, pitch)
  float *weights, *dScores; ///< (kKeyBlock, kPanel)
  float *mask;              ///< (kKeyBlock, kPanel)
  float *end;

  BackwardScratch(const AttentionShape &shape, float *memory) {
    Sizes sizes(shape);
    Scratch scratch{memory};
    for (float **piece : {&k, &v, &dk, &dv})
      *piece = scratch.take(sizes.paddedKeys * sizes.pitch);
    for (float **piece : {&qT, &dOutT, &dqT, &q, &dOut})
      *piece = scratch.take(sizes.pitch * kPanel);
    for (float **piece : {&weights, &dScores, &mask})
      *piece = scratch.take(kKeyBlock * kPanel);
    end = scratch.next;
  }
};

/// Per query: log2 of the forward's sum, and delta.
struct QueryFacts {
  alignas(64) float lse2[kPanel], delta[kPanel];
};

/// From a group's scores and dOut v^T to its weights p and ds, rows as in forward.
static void weightsOfGroup(const AttentionBackward &args, const Panel &panel, const BackwardScratch &scratch, int group,
                           int64_t block, const QueryFacts &facts) {
  KeyRange rows = panel.rows(group, block);
  if (rows.begin == rows.end)
    return;
  float *scores = scratch.weights + group * kLanes, *dScores = scratch.dScores + group * kLanes;
  const float *mask = args.mask ? scratch.mask + group * kLanes : nullptr;
  LaneLimits limits(args.shape, panel, group);
  Vec lse2 = load(facts.lse2 + group * kLanes), delta = load(facts.delta + group * kLanes);
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    Vec score = load(scores + r * kPanel);
    if (mask)
      score = addMask(score, load(mask + r * kPanel));
    int64_t key = block + r;
    Vec weight = exp2Of(score - lse2);
    if (key < panel.all[group].begin || key >= panel.all[group].end)
      weight = limits.sees(key) ? weight : Vec{};
    store(scores + r * kPanel, weight);
    store(dScores + r * kPanel, weight * (load(dScores + r * kPanel) - delta));
  }
}

/// One block of keys against one panel.
static void backwardBlock(const AttentionBackward &args, const Panel &panel, const BackwardScratch &scratch,
                          int64_t block, const QueryFacts &facts) {
  const Sizes sizes(args.shape);
  const int64_t pitch = sizes.pitch, headSize = args.shape.headSize, vectors = pitch / kLanes;
  Segment segments[3];
  int count = panel.segments(block, segments);
  for (int i = 0; i < count; ++i) {
    auto [begin, end, group, numGroups] = segments[i];
    int64_t at = (block + begin) * pitch, lane = group * kLanes, tile = begin * kPanel + lane;
    multiply(end - begin, numGroups, {scratch.k + at, pitch, 1}, scratch.qT + lane, kPanel, headSize,
             scratch.weights + tile, kPanel, false);
    multiply(end - begin, numGroups, {scratch.v + at, pitch, 1}, scratch.dOutT + lane, kPanel, headSize,
             scratch.dScores + tile, kPanel, false);
  }
  for (int group = 0; group < panel.numGroups; ++group)
    weightsOfGroup(args, panel, scratch, group, block, facts);
  for (int i = 0; i < count; ++i) {
    auto [begin, end, group, numGroups] = segments[i];
    int64_t at = (block + begin) * pitch, lane = group * kLanes, tile = begin * kPanel + lane;
    multiply(sizes.headRows, numGroups, {scratch.k + at, 1, pitch}, scratch.dScores + tile, kPanel, end - begin,
             scratch.dqT + lane, kPanel, true);
    multiply(end - begin, vectors, {scratch.weights + tile, kPanel, 1}, scratch.dOut + lane * pitch, pitch,
             numGroups * kLanes, scratch.dv + at, pitch, true);
    multiply(end - begin, vectors, {scratch.dScores + tile, kPanel, 1}, scratch.q + lane * pitch, pitch,
             numGroups * kLanes, scratch.dk + at, pitch, true);
  }
}

/// Packs a panel's q and dOut both ways, and its delta and lse.
template <typename T>
static void preparePanel(const AttentionBackward &args, const Panel &panel, const BackwardScratch &scratch,
                         int64_t batch, int64_t head, QueryFacts &facts) {
  const AttentionShape &shape = args.shape;
  const int64_t pitch = Sizes(shape).pitch, row = batch * shape.queries + panel.query, column = head * shape.headSize;
  const T *q = rowAt<T>(args.q, row, column), *dOut = rowAt<T>(args.dOut, row, column);
  packTransposed(q, args.q.rowStride, panel.numQueries, shape.headSize, shape.scale * kLog2E, scratch.qT);
  packTransposed(dOut, args.dOut.rowStride, panel.numQueries, shape.headSize, 1, scratch.dOutT);
  packRows(q, args.q.rowStride, panel.numQueries, kPanel, shape.headSize, scratch.q, pitch);
  packRows(dOut, args.dOut.rowStride, panel.numQueries, kPanel, shape.headSize, scratch.dOut, pitch);
  std::memset(scratch.dqT, 0, size_t(pitch * kPanel) * sizeof(float));

  const float *lse = args.lse + (batch * shape.heads + head) * shape.queries + panel.query;
  const T *out = rowAt<T>(args.out, row, column);
  for (int64_t lane = 0; lane < kPanel; ++lane) {
    Vec sums{};
    if (lane < panel.numQueries)
      for (int64_t j = 0; j < shape.headSize; j += kLanes) {
        const T *from = out + lane * args.out.rowStride + j;
        Vec value = j + kLanes <= shape.headSize ? loadLanes(from) : loadLanes(from, int(shape.headSize - j));
        sums += value * load(scratch.dOut + lane * pitch + j);
      }
    float delta = 0;
    for (int i = 0; i < kLanes; ++i)
      delta += sums[i];
    facts.delta[lane] = delta;
    // A query that saw no key (lse = -inf), or none but by a finite mask so low that lse has lost the number of keys,
    // has no gradient: +inf makes its weights zero.
    float value = lane < panel.numQueries ? lse[lane] : 0;
    facts.lse2[lane] = value < -1e20f ? __builtin_inff() : value * kLog2E;
  }
}

static int64_t numBackwardTasks(const AttentionShape &shape) { return shape.batch * shape.kvHeads; }

static uint64_t backwardScratchBytes(const AttentionShape &shape) {
  return uint64_t(reinterpret_cast<uintptr_t>(BackwardScratch(shape, nullptr).end));
}

/// Writes numRows rows of a packed gradient times a factor.
template <typename T>
static void writeRows(const float *src, int64_t pitch, float factor, int64_t numRows, int64_t columns, T *dst,
                      int64_t dstStride) {
  for (int64_t i = 0; i < numRows; ++i)
    for (int64_t j = 0; j < columns; j += kLanes)
      storeLanes(dst + i * dstStride + j, load(src + i * pitch + j) * factor, int(minOf(kLanes, columns - j)));
}

template <typename T> static void backwardTask(const AttentionBackward &args, int64_t task, std::byte *memory) {
  const AttentionShape &shape = args.shape;
  Sizes sizes(shape);
  BackwardScratch scratch(shape, reinterpret_cast<float *>(memory));
  int64_t batch = task / shape.kvHeads, kvHead = task % shape.kvHeads, kvColumn = kvHead * shape.headSize;
  int64_t firstRow = batch * shape.keys, headsEach = shape.heads / shape.kvHeads;
  packRows(rowAt<T>(args.k, firstRow, kvColumn), args.k.rowStride, shape.keys, sizes.paddedKeys, shape.headSize,
           scratch.k, sizes.pitch);
  packRows(rowAt<T>(args.v, firstRow, kvColumn), args.v.rowStride, shape.keys, sizes.paddedKeys, shape.headSize,
           scratch.v, sizes.pitch);
  std::memset(scratch.dk, 0, size_t(sizes.paddedKeys * sizes.pitch) * sizeof(float));
  std::memset(scratch.dv, 0, size_t(sizes.paddedKeys * sizes.pitch) * sizeof(float));

  alignas(64) float scales[kPanel];
  for (float &scale : scales)
    scale = shape.scale;
  for (int64_t head = kvHead * headsEach; head < (kvHead + 1) * headsEach; ++head) {
    const float *mask = args.mask ? args.mask + batch * shape.maskBatchStride + head * shape.maskHeadStride : nullptr;
    MaskTile maskTile{mask, shape, scratch.mask};
    for (int64_t query = 0; query < shape.queries; query += kPanel) {
      Panel panel(shape, query, shape.queries);
      QueryFacts facts;
      preparePanel<T>(args, panel, scratch, batch, head, facts);
      for (int64_t block = panel.keys.begin / kKeyBlock * kKeyBlock; block < panel.keys.end; block += kKeyBlock) {
        if (mask)
          maskTile.fill(panel, block);
        backwardBlock(args, panel, scratch, block, facts);
      }
      unpackTransposed(scratch.dqT, scales, panel.numQueries, shape.headSize,
                       rowAt<T>(args.dq, batch * shape.queries + query, head * shape.headSize), args.dq.rowStride);
    }
  }
  writeRows(scratch.dk, sizes.pitch, shape.scale, shape.keys, shape.headSize, rowAt<T>(args.dk, firstRow, kvColumn),
            args.dk.rowStride);
  writeRows(scratch.dv, sizes.pitch, 1, shape.keys, shape.headSize, rowAt<T>(args.dv, firstRow, kvColumn),
            args.dv.rowStride);
}

} // namespace llmc::LLMC_ISA_NAMESPACE
