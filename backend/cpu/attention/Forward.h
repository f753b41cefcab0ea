// out = softmax(scale * q k^T + mask) v, and lse. A task is one head of one batch and a stretch of queries; each panel
// goes over the keys block by block: weights (Scores.h), then the weighted sum of the values, kept transposed. Products
// are of FactorOf<T>, sums and softmax f32. Panels are independent: deterministic for any thread count and stretch.
#pragma once

#include "backend/cpu/attention/Scores.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// Memory of one running forward task.
template <typename F> struct ForwardScratch {
  Word *k;       ///< (paddedKeys, rowPitch)
  Word *v;       ///< (paddedKeys / kDepth, columnPitch)
  Word *qT;      ///< (rowPitch, kPanel)
  float *outT;   ///< (columnPitch, kPanel)
  float *scores; ///< (kKeyBlock, kPanel)
  float *mask;   ///< (kKeyBlock, kPanel)
  float *end;

  ForwardScratch(const AttentionShape &shape, float *memory) {
    Sizes<F> sizes(shape);
    Scratch scratch{memory};
    int64_t paddedKeys = roundUp(shape.keys, kKeyBlock);
    k = scratch.take(paddedKeys * sizes.rowPitch);
    v = scratch.take(paddedKeys / kDepth<F> * sizes.columnPitch);
    qT = scratch.take(sizes.rowPitch * kPanel);
    outT = scratch.take(sizes.columnPitch * kPanel);
    scores = scratch.take(kKeyBlock * kPanel);
    mask = scratch.take(kKeyBlock * kPanel);
    end = scratch.next;
  }
};

/// Adds the values of one block, weighted, to what the block's new maxima left of outT.
template <typename F>
static void addValues(const Panel &panel, const Sizes<F> &sizes, const ForwardScratch<F> &scratch, int64_t block,
                      Softmax &state) {
  const Word *v = scratch.v + block / kDepth<F> * sizes.columnPitch;
  Segment segments[3];
  int count = panel.segments(block, segments);
  for (int i = 0; i < count; ++i) {
    auto [begin, end, group, numGroups] = segments[i];
    int64_t lane = group * kLanes, word = begin / kDepth<F>;
    addProducts<F>(sizes.headRows, numGroups, {v + word * sizes.columnPitch, 1, sizes.columnPitch},
                   {scratch.scores + word * kPanel + lane, kPanel}, (end - begin) / kDepth<F>,
                   {scratch.outT + lane, kPanel}, state.rescale + lane);
    for (int v = 0; v < numGroups; ++v)
      store(state.rescale + lane + v * kLanes, splat(1.0f));
  }
}

/// Writes a panel's rows of out and lse.
template <typename F, typename T>
static void writePanel(const AttentionForward &args, const Panel &panel, const ForwardScratch<F> &scratch,
                       int64_t batch, int64_t head, const Softmax &state) {
  const AttentionShape &shape = args.shape;
  alignas(64) float inverse[kPanel];
  for (int lane = 0; lane < kPanel; ++lane)
    inverse[lane] = state.sum[lane] == 0 ? 0 : 1 / state.sum[lane];
  unpackTransposed(Sums{scratch.outT, kPanel}, inverse, panel.numQueries, shape.headSize,
                   rowAt<T>(args.out, batch * shape.queries + panel.query, head * shape.headSize), args.out.rowStride);
  float *lse = args.lse + (batch * shape.heads + head) * shape.queries + panel.query;
  for (int64_t lane = 0; lane < panel.numQueries; ++lane)
    lse[lane] = state.sum[lane] == 0 ? -__builtin_inff() : kLn2 * state.max[lane] + __builtin_logf(state.sum[lane]);
}

template <typename T> static uint64_t forwardScratchBytes(const AttentionShape &shape) {
  return uint64_t(reinterpret_cast<uintptr_t>(ForwardScratch<FactorOf<T>>(shape, nullptr).end));
}

template <typename T> static void forwardTask(const AttentionForward &args, int64_t task, std::byte *memory) {
  using F = FactorOf<T>;
  const AttentionShape &shape = args.shape;
  Sizes<F> sizes(shape);
  ForwardScratch<F> scratch(shape, reinterpret_cast<float *>(memory));
  int64_t stretches = (shape.queries + args.taskQueries - 1) / args.taskQueries;
  int64_t begin = task % stretches * args.taskQueries, end = minOf(shape.queries, begin + args.taskQueries);
  int64_t head = task / stretches % shape.heads, batch = task / stretches / shape.heads;
  int64_t kvColumn = head / (shape.heads / shape.kvHeads) * shape.headSize;

  // Blocks are counted from key 0; the keys in sight lie packed at their own place.
  int64_t firstKey = keysOfQuery(shape, begin).begin / kKeyBlock * kKeyBlock, row = batch * shape.keys + firstKey;
  int64_t numKeys = maxOf(0, keysOfQuery(shape, end - 1).end - firstKey), paddedKeys = roundUp(numKeys, kRows);
  packRows<F>(HeadRows<T>{rowAt<T>(args.k, row, kvColumn), args.k.rowStride, numKeys, shape.headSize}, paddedKeys,
              scratch.k + firstKey * sizes.rowPitch, sizes.rowPitch);
  packColumns<F>(HeadRows<T>{rowAt<T>(args.v, row, kvColumn), args.v.rowStride, numKeys, shape.headSize}, paddedKeys,
                 scratch.v + firstKey / kDepth<F> * sizes.columnPitch, sizes.columnPitch);

  const float *mask = args.mask ? args.mask + batch * shape.maskBatchStride + head * shape.maskHeadStride : nullptr;
  MaskTile maskTile{mask, shape, scratch.mask};
  for (int64_t query = begin; query < end; query += kPanel) {
    Panel panel(shape, query, end);
    packTransposed<F>(HeadRows<T>{rowAt<T>(args.q, batch * shape.queries + query, head * shape.headSize),
                                  args.q.rowStride, panel.numQueries, shape.headSize},
                      kGroups, scratch.qT, kPanel);
    Scores<F> scores(shape, panel, scratch.qT, kPanel, mask ? scratch.mask : nullptr);
    Softmax state;
    std::memset(scratch.outT, 0, size_t(sizes.columnPitch * kPanel) * sizeof(float));
    for (int64_t block = panel.keys.begin / kKeyBlock * kKeyBlock; block < panel.keys.end; block += kKeyBlock) {
      if (mask)
        maskTile.fill(panel, block);
      weighBlock<F>(scores, scratch.k + block * sizes.rowPitch, block, scratch.scores, state);
      addValues<F>(panel, sizes, scratch, block, state);
    }
    writePanel<F, T>(args, panel, scratch, batch, head, state);
  }
}

} // namespace llmc::LLMC_ISA_NAMESPACE
