// dq, dk and dv of attention, with the weights p = 2^(scores - lse) computed again block by block:
//   dv += p^T dOut,  ds = p * (dOut v^T - delta),  dq += scale * ds k,  dk += scale * ds^T q,
//   delta = rowsum(dOut * out).
// A task is one head of k and v of one batch with all the query heads that share it, or a stretch of its keys. dq is
// the sum, in order, of what each stretch gives, whether one task has them all or each leaves its part in memory for
// a later pass: deterministic, and the same bits for any thread count. Sums are f32.
#pragma once

#include "backend/cpu/attention/BackwardPanel.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// Stretches of keys, by the shape alone: at most 8, of whole blocks.
static inline int64_t stretchKeys(const AttentionShape &shape) {
  return maxOf(128, roundUp((shape.keys + 7) / 8, kKeyBlock));
}
static int64_t numStretches(const AttentionShape &shape) {
  return (shape.keys + stretchKeys(shape) - 1) / stretchKeys(shape);
}
static inline int64_t numBackwardPanels(const AttentionShape &shape) {
  return (shape.queries + kBackwardQueries - 1) / kBackwardQueries;
}

/// Where a stretch leaves its part of a panel's dq, transposed: [stretch][batch, head][panel].
static inline Sums partOfDq(const AttentionBackward &args, int64_t stretch, int64_t head, int64_t panel) {
  const AttentionShape &shape = args.shape;
  int64_t index = (stretch * shape.batch * shape.heads + head) * numBackwardPanels(shape) + panel;
  return {args.dqParts + index * dqFloats(shape), kBackwardQueries};
}

static uint64_t dqPartsBytes(const AttentionShape &shape) {
  return uint64_t(numStretches(shape) * shape.batch * shape.heads * numBackwardPanels(shape) * dqFloats(shape)) *
         sizeof(float);
}

/// The keys of a stretch that a panel sees.
static inline KeyRange keysInStretch(const AttentionShape &shape, const KeyRange &keys, int64_t stretch) {
  int64_t begin = stretch * stretchKeys(shape);
  return {maxOf(keys.begin, begin), minOf(keys.end, begin + stretchKeys(shape))};
}

template <typename T> static uint64_t backwardScratchBytes(const AttentionShape &shape) {
  return uint64_t(reinterpret_cast<uintptr_t>(BackwardScratch<FactorOf<T>>(shape, shape.keys, nullptr).end));
}

/// dq of a panel, from its transposed sums.
template <typename T>
static void writeDq(const AttentionBackward &args, const Sums &dqT, int64_t batch, int64_t head, int64_t query) {
  const AttentionShape &shape = args.shape;
  alignas(64) float scales[kBackwardQueries];
  for (float &scale : scales)
    scale = shape.scale;
  unpackTransposed(dqT, scales, minOf(kBackwardQueries, shape.queries - query), shape.headSize,
                   rowAt<T>(args.dq, batch * shape.queries + query, head * shape.headSize), args.dq.rowStride);
}

/// What a backward task is about.
struct BackwardTask {
  int64_t batch, kvHead, firstStretch, endStretch, firstKey, numKeys;

  BackwardTask(const AttentionBackward &args, int64_t task) {
    const AttentionShape &shape = args.shape;
    const int64_t numHeads = shape.batch * shape.kvHeads;
    // The first stretches are seen by the most queries: they come first.
    batch = task % numHeads / shape.kvHeads;
    kvHead = task % shape.kvHeads;
    firstStretch = args.dqParts ? task / numHeads : 0;
    endStretch = args.dqParts ? firstStretch + 1 : numStretches(shape);
    firstKey = firstStretch * stretchKeys(shape);
    numKeys = minOf(shape.keys, endStretch * stretchKeys(shape)) - firstKey;
  }
};

/// dq of one panel, and its part of dk and dv, stretch by stretch of the task.
template <typename F, typename T>
static void sumPanel(const AttentionBackward &args, const BackwardTask &task, const BackwardScratch<F> &scratch,
                     KeyPacker<F, T> &keyPacker, int64_t head, int64_t query) {
  const AttentionShape &shape = args.shape;
  const size_t dqBytes = size_t(dqFloats(shape)) * sizeof(float);
  BackwardPanel<F> panel(args, scratch, task.firstKey, task.batch, head, query);
  bool isFirst = true;
  for (int64_t stretch = task.firstStretch; stretch < task.endStretch; ++stretch) {
    KeyRange range = keysInStretch(shape, panel.keys(), stretch);
    if (range.begin >= range.end)
      continue;
    if (isFirst) {
      keyPacker.packUntil(minOf(panel.keys().end - task.firstKey, task.numKeys));
      panel.template pack<T>();
    }
    Sums part{isFirst ? scratch.dqT : scratch.dqPart, kBackwardQueries};
    if (args.dqParts)
      part = partOfDq(args, stretch, task.batch * shape.heads + head, query / kBackwardQueries);
    std::memset(part.data, 0, dqBytes);
    for (int64_t block = range.begin / kKeyBlock * kKeyBlock; block < range.end; block += kKeyBlock)
      panel.block(block, part);
    if (part.data == scratch.dqPart)
      addFloats(scratch.dqPart, dqFloats(shape), scratch.dqT);
    isFirst = false;
  }
  if (args.dqParts)
    return;
  if (isFirst)
    std::memset(scratch.dqT, 0, dqBytes);
  writeDq<T>(args, {scratch.dqT, kBackwardQueries}, task.batch, head, query);
}

template <typename T> static void backwardTask(const AttentionBackward &args, int64_t index, std::byte *memory) {
  using F = FactorOf<T>;
  const AttentionShape &shape = args.shape;
  const Sizes<F> sizes(shape);
  const BackwardTask task(args, index);
  const int64_t row = task.batch * shape.keys + task.firstKey, column = task.kvHead * shape.headSize;
  BackwardScratch<F> scratch(shape, task.numKeys, reinterpret_cast<float *>(memory));
  KeyPacker<F, T> keyPacker(args, task.numKeys, row, column, scratch);

  const int64_t headsEach = shape.heads / shape.kvHeads, firstHead = task.kvHead * headsEach;
  for (int64_t head = firstHead; head < firstHead + headsEach; ++head)
    for (int64_t query = 0; query < shape.queries; query += kBackwardQueries) {
      if (head + 1 == firstHead + headsEach && query + kBackwardQueries >= shape.queries)
        for (const AttentionRows *rows : {&args.dk, &args.dv})
          fetchRows(headRows<T>(shape, *rows, row, column, task.numKeys));
      sumPanel<F, T>(args, task, scratch, keyPacker, head, query);
    }
  unpackRows(Sums{scratch.dk, sizes.columnPitch}, shape.scale, task.numKeys, shape.headSize,
             rowAt<T>(args.dk, row, column), args.dk.rowStride);
  unpackRows(Sums{scratch.dv, sizes.columnPitch}, 1, task.numKeys, shape.headSize, rowAt<T>(args.dv, row, column),
             args.dv.rowStride);
}

/// Tasks of the pass that sums the parts of dq: one per panel.
static int64_t numSumTasks(const AttentionShape &shape) { return shape.batch * shape.heads * numBackwardPanels(shape); }

template <typename T> static void sumDqTask(const AttentionBackward &args, int64_t task, std::byte *memory) {
  const AttentionShape &shape = args.shape;
  int64_t panel = task % numBackwardPanels(shape), head = task / numBackwardPanels(shape);
  int64_t query = panel * kBackwardQueries;
  KeyRange keys = keysOfQueries(shape, query, minOf(shape.queries, query + kBackwardQueries));
  float *sum = reinterpret_cast<float *>(memory);
  std::memset(sum, 0, size_t(dqFloats(shape)) * sizeof(float));
  for (int64_t stretch = 0; stretch < numStretches(shape); ++stretch)
    if (KeyRange range = keysInStretch(shape, keys, stretch); range.begin < range.end)
      addFloats(partOfDq(args, stretch, head, panel).data, dqFloats(shape), sum);
  writeDq<T>(args, {sum, kBackwardQueries}, head / shape.heads, head % shape.heads, query);
}

} // namespace llmc::LLMC_ISA_NAMESPACE
