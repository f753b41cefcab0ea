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

/// Packs keys of k and v, and asks for those that the next panel may see. row and column are those of key 0.
template <typename F, typename T>
static void packKeys(const AttentionForward &args, int64_t row, int64_t column, KeyRange keys,
                     const ForwardScratch<F> &scratch) {
  const Sizes<F> sizes(args.shape);
  auto rowsOf = [&](const AttentionRows &rows, int64_t begin, int64_t end) {
    return headRows<T>(args.shape, rows, row + begin, column, minOf(end, args.shape.keys) - begin);
  };
  const int64_t end = roundUp(keys.end, kRows);
  packRows<F>(rowsOf(args.k, keys.begin, end), end - keys.begin, scratch.k + keys.begin * sizes.rowPitch,
              sizes.rowPitch);
  packColumns<F>(rowsOf(args.v, keys.begin, end), end - keys.begin,
                 scratch.v + keys.begin / kDepth<F> * sizes.columnPitch, sizes.columnPitch);
  fetchRows(rowsOf(args.k, end, end + kPanel));
  fetchRows(rowsOf(args.v, end, end + kPanel));
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

/// What a forward task is about.
struct ForwardTask {
  int64_t batch, head, kvHead, begin, end; ///< queries

  ForwardTask(const AttentionForward &args, int64_t task) {
    const AttentionShape &shape = args.shape;
    const int64_t stretches = (shape.queries + args.taskQueries - 1) / args.taskQueries;
    batch = task / stretches / shape.heads;
    head = task / stretches % shape.heads;
    kvHead = head / (shape.heads / shape.kvHeads);
    begin = task % stretches * args.taskQueries;
    end = minOf(shape.queries, begin + args.taskQueries);
  }
};

template <typename T> static void forwardTask(const AttentionForward &args, int64_t index, std::byte *memory) {
  using F = FactorOf<T>;
  const AttentionShape &shape = args.shape;
  const Sizes<F> sizes(shape);
  const ForwardTask task(args, index);
  const int64_t kvRow = task.batch * shape.keys, kvColumn = task.kvHead * shape.headSize;
  ForwardScratch<F> scratch(shape, reinterpret_cast<float *>(memory));
  const float *mask =
      args.mask ? args.mask + task.batch * shape.maskBatchStride + task.head * shape.maskHeadStride : nullptr;
  MaskTile maskTile{mask, shape, scratch.mask};

  // Blocks are counted from key 0; the keys in sight lie packed at their own place.
  int64_t endKey = keysOfQuery(shape, task.begin).begin / kKeyBlock * kKeyBlock; ///< of those packed so far
  for (int64_t query = task.begin; query < task.end; query += kPanel) {
    Panel panel(shape, query, task.end);
    if (panel.keys.end > endKey) {
      packKeys<F, T>(args, kvRow, kvColumn, {endKey, panel.keys.end}, scratch);
      endKey = roundUp(panel.keys.end, kRows);
    }
    const int64_t row = task.batch * shape.queries + query, column = task.head * shape.headSize;
    packTransposed<F>(headRows<T>(shape, args.q, row, column, panel.numQueries), kGroups, scratch.qT, kPanel);
    fetchRows(headRows<T>(shape, args.q, row + kPanel, column, minOf(kPanel, task.end - query - kPanel)));
    fetchRows(headRows<T>(shape, args.out, row, column, panel.numQueries));
    Scores<F> scores(shape, panel, scratch.qT, kPanel, mask ? scratch.mask : nullptr);
    Softmax state;
    std::memset(scratch.outT, 0, size_t(sizes.columnPitch * kPanel) * sizeof(float));
    for (int64_t block = panel.keys.begin / kKeyBlock * kKeyBlock; block < panel.keys.end; block += kKeyBlock) {
      if (mask)
        maskTile.fill(panel, block);
      weighBlock<F>(scores, scratch.k + block * sizes.rowPitch, block, scratch.scores, state);
      addValues<F>(panel, sizes, scratch, block, state);
    }
    writePanel<F, T>(args, panel, scratch, task.batch, task.head, state);
  }
}

} // namespace llmc::LLMC_ISA_NAMESPACE
