// The backward pass of one panel of queries, two panels of the forward pass side by side so that a block's part of dk
// and dv sums over many queries before it goes back to memory.
#pragma once

#include "backend/cpu/attention/BackwardScratch.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// A log-sum-exp so far from zero, in units of log2, has lost bits that weights need (all of them, where a low finite
/// mask hides every key): the backward pass finds maximum and sum again.
inline constexpr float kFarMaximum = 256;

/// Per query: what makes weights of scores, p = 2^(score - max) * inverse, and delta.
struct QueryFacts {
  alignas(64) float max[kBackwardQueries], inverse[kBackwardQueries], delta[kBackwardQueries];
};

static inline void addFloats(const float *src, int64_t count, float *dst) {
  for (int64_t i = 0; i < count; i += kLanes)
    store(dst + i, load(dst + i) + load(src + i));
}

template <typename F> class BackwardPanel {
public:
  BackwardPanel(const AttentionBackward &args, const BackwardScratch<F> &scratch, int64_t firstKey, int64_t batch,
                int64_t head, int64_t query)
      : args(args), shape(args.shape), sizes(shape), scratch(scratch), firstKey(firstKey), batch(batch), head(head),
        query(query), numQueries(minOf(kBackwardQueries, shape.queries - query)), numPairs(numQueries > kPanel ? 2 : 1),
        maskTile{args.mask ? args.mask + batch * shape.maskBatchStride + head * shape.maskHeadStride : nullptr, shape,
                 scratch.mask},
        pairs{Panel(shape, query, shape.queries),
              Panel(shape, minOf(query + kPanel, shape.queries - 1), shape.queries)} {}

  KeyRange keys() const { return keysOfQueries(shape, query, query + numQueries); }

  /// Packs q and dOut both ways, and what is known of each query.
  template <typename T> void pack();

  /// Adds what the block of keys at `block` gives to dk, dv, and dq (transposed).
  void block(int64_t block, const Sums &dq);

private:
  template <typename T> void packDelta(const HeadRows<T> &dOut);
  template <typename T> void findMaxima(int pair);
  template <int numVecs>
  __attribute__((noinline)) void weighSegment(const Scores<F> &scores, int pair, int64_t block, const Segment &segment);
  void sumOverQueries(int64_t block);

  const AttentionBackward &args;
  const AttentionShape &shape;
  const Sizes<F> sizes;
  const BackwardScratch<F> &scratch;
  int64_t firstKey; ///< the key of the scratch's first row
  int64_t batch, head, query, numQueries;
  int numPairs;
  MaskTile maskTile;
  Panel pairs[kPairs];
  QueryFacts facts;
};

/// delta of each query, one vector of queries at a time.
template <typename F> template <typename T> void BackwardPanel<F>::packDelta(const HeadRows<T> &dOut) {
  const T *out = rowAt<T>(args.out, batch * shape.queries + query, head * shape.headSize);
  for (int64_t first = 0; first < kBackwardQueries; first += kLanes) {
    Vec sums[kLanes] = {};
    for (int64_t i = 0; i < kLanes && first + i < numQueries; ++i)
      for (int64_t j = 0; j < shape.headSize; j += kLanes)
        sums[i] += loadLanes(out + (first + i) * args.out.rowStride + j, shape.headSize - j) *
                   loadLanes(dOut.data + (first + i) * dOut.stride + j, shape.headSize - j);
    transposeBlock(sums);
    Vec delta{};
    for (const Vec &sum : sums)
      delta += sum;
    store(facts.delta + first, delta);
  }
}

/// Maximum and sum of a panel's scores once more, for queries whose lse says too little.
template <typename F> template <typename T> void BackwardPanel<F>::findMaxima(int pair) {
  const Panel &panel = pairs[pair];
  const int64_t column = head / (shape.heads / shape.kvHeads) * shape.headSize;
  Scores<F> scores(shape, panel, scratch.qT + pair * kPanel, kTilePitch, maskTile.mask ? scratch.mask : nullptr);
  Softmax state;
  for (int64_t block = panel.keys.begin / kKeyBlock * kKeyBlock; block < panel.keys.end; block += kKeyBlock) {
    if (maskTile.mask)
      maskTile.fill(panel, block);
    HeadRows<T> k =
        headRows<T>(shape, args.k, batch * shape.keys + block, column, minOf(kKeyBlock, shape.keys - block));
    packRows<F>(k, kKeyBlock, scratch.kBlock, sizes.rowPitch);
    weighBlock<F>(scores, scratch.kBlock, block, scratch.weights, state);
  }
  for (int lane = 0; lane < kPanel; ++lane)
    if (float &max = facts.max[pair * kPanel + lane]; __builtin_fabsf(max) > kFarMaximum) {
      max = state.max[lane];
      facts.inverse[pair * kPanel + lane] = state.sum[lane] == 0 ? 0 : 1 / state.sum[lane];
    }
}

template <typename F> template <typename T> void BackwardPanel<F>::pack() {
  const int64_t row = batch * shape.queries + query, column = head * shape.headSize;
  HeadRows<T> q = headRows<T>(shape, args.q, row, column, numQueries);
  HeadRows<T> dOut = headRows<T>(shape, args.dOut, row, column, numQueries);
  if (query == 0) // out is read last: its rows arrive while the others are packed
    fetchRows(headRows<T>(shape, args.out, row, column, numQueries));
  packTransposed<F>(q, numPairs * kGroups, scratch.qT, kTilePitch);
  packTransposed<F>(dOut, numPairs * kGroups, scratch.dOutT, kTilePitch);
  packColumns<F>(q, kBackwardQueries, scratch.q, sizes.columnPitch);
  packColumns<F>(dOut, kBackwardQueries, scratch.dOut, sizes.columnPitch);
  packDelta(dOut);
  const int64_t next = minOf(kBackwardQueries, shape.queries - query - numQueries);
  for (const AttentionRows *rows : {&args.q, &args.dOut, &args.out})
    fetchRows(headRows<T>(shape, *rows, row + numQueries, column, next));
  if (!args.dqParts)
    fetchRows(headRows<T>(shape, args.dq, row, column, numQueries));
  const float *lse = args.lse + (batch * shape.heads + head) * shape.queries + query;
  bool isFar[kPairs] = {};
  for (int64_t lane = 0; lane < kBackwardQueries; ++lane) {
    float value = lane < numQueries ? lse[lane] : 0;
    // A query that saw no key has lse = -inf: +inf makes its weights zero.
    facts.max[lane] = value == -__builtin_inff() ? __builtin_inff() : value * kLog2E;
    facts.inverse[lane] = 1;
    isFar[lane / kPanel] |= __builtin_fabsf(value * kLog2E) > kFarMaximum && value != -__builtin_inff();
  }
  for (int pair = 0; pair < numPairs; ++pair)
    if (isFar[pair])
      findMaxima<T>(pair);
}

/// Weights and ds of a segment, in the forms that the three gradients read.
template <typename F>
template <int numVecs>
void BackwardPanel<F>::weighSegment(const Scores<F> &scores, int pair, int64_t block, const Segment &segment) {
  const int64_t lane = pair * kPanel + segment.group * kLanes;
  Vec max[numVecs], inverse[numVecs], delta[numVecs];
  for (int v = 0; v < numVecs; ++v) {
    max[v] = load(facts.max + lane + v * kLanes);
    inverse[v] = load(facts.inverse + lane + v * kLanes);
    delta[v] = load(facts.delta + lane + v * kLanes);
  }
  for (int64_t row = segment.rowBegin; row < segment.rowEnd; row += kRows) {
    const int64_t key = block - firstKey + row;
    Vec weight[kRows][numVecs], dScore[kRows][numVecs];
    scores.template strip<numVecs>(scratch.k + key * sizes.rowPitch, block, row, segment.group, weight);
    Word *to = scratch.weights + row * kRowTilePitch<F> + lane / kDepth<F>;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < numVecs; ++v) {
        weight[r][v] = exp2Of<(kDepth<F> > 1)>(weight[r][v] - max[v]) * inverse[v];
        storeRowWords<F>(to + r * kRowTilePitch<F> + v * kLanes / kDepth<F>, weight[r][v]);
      }
    multiplyTile<F, numVecs>({scratch.v + key * sizes.rowPitch, sizes.rowPitch, 1}, {scratch.dOutT + lane, kTilePitch},
                             sizes.headWords, dScore);
    to = scratch.dScores + row * kRowTilePitch<F> + lane / kDepth<F>;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < numVecs; ++v) {
        dScore[r][v] = weight[r][v] * (dScore[r][v] - delta[v]);
        storeRowWords<F>(to + r * kRowTilePitch<F> + v * kLanes / kDepth<F>, dScore[r][v]);
      }
    if constexpr (kDepth<F> > 1) {
      to = scratch.dScoresColumns + row / kDepth<F> * kTilePitch + lane;
#pragma GCC unroll 8
      for (int r = 0; r < kRows; r += 2)
#pragma GCC unroll 4
        for (int v = 0; v < numVecs; ++v)
          store(to + r / 2 * kTilePitch + v * kLanes, pairOf(dScore[r][v], dScore[r + 1][v]));
    }
  }
}

/// dv += weights dOut and dk += ds q, for rows of the block that the same groups of queries see.
template <typename F> void BackwardPanel<F>::sumOverQueries(int64_t block) {
  KeyRange rows[kPairs * kGroups] = {};
  for (int group = 0; group < numPairs * kGroups; ++group)
    rows[group] = pairs[group / kGroups].rows(group % kGroups, block);
  auto groupsOf = [&](int64_t row) { // contiguous: both ends of what a group sees grow with it
    KeyRange groups{0, 0};
    for (int group = 0; group < kPairs * kGroups; ++group)
      if (rows[group].begin <= row && row < rows[group].end)
        groups = {groups.end == 0 ? group : groups.begin, group + 1};
    return groups;
  };
  for (int64_t row = 0, end; row < kKeyBlock; row = end) {
    KeyRange groups = groupsOf(row), next;
    for (end = row + kRows; end < kKeyBlock; end += kRows)
      if (next = groupsOf(end); next.begin != groups.begin || next.end != groups.end)
        break;
    if (groups.begin == groups.end)
      continue;
    const int64_t word = groups.begin * kLanes / kDepth<F>, count = (groups.end - groups.begin) * kLanes / kDepth<F>;
    const int64_t tile = row * kRowTilePitch<F> + word, from = word * sizes.columnPitch;
    const int64_t to = (block - firstKey + row) * sizes.columnPitch;
    addProducts<F>(end - row, sizes.headVectors, {scratch.weights + tile, kRowTilePitch<F>, 1},
                   {scratch.dOut + from, sizes.columnPitch}, count, {scratch.dv + to, sizes.columnPitch});
    addProducts<F>(end - row, sizes.headVectors, {scratch.dScores + tile, kRowTilePitch<F>, 1},
                   {scratch.q + from, sizes.columnPitch}, count, {scratch.dk + to, sizes.columnPitch});
  }
}

template <typename F> void BackwardPanel<F>::block(int64_t block, const Sums &dq) {
  for (int pair = 0; pair < numPairs; ++pair) {
    if (maskTile.mask)
      maskTile.fill(pairs[pair], block);
    Scores<F> scores(shape, pairs[pair], scratch.qT + pair * kPanel, kTilePitch,
                     maskTile.mask ? scratch.mask : nullptr);
    Segment segments[3];
    int count = pairs[pair].segments(block, segments);
    for (int i = 0; i < count; ++i)
      if (segments[i].numGroups == 2)
        weighSegment<2>(scores, pair, block, segments[i]);
      else
        weighSegment<1>(scores, pair, block, segments[i]);
    for (int i = 0; i < count; ++i) {
      auto [begin, end, group, numGroups] = segments[i];
      const int64_t lane = pair * kPanel + group * kLanes;
      addProducts<F>(
          sizes.headRows, numGroups,
          {scratch.kColumns + (block - firstKey + begin) / kDepth<F> * sizes.columnPitch, 1, sizes.columnPitch},
          {scratch.dScoresColumns + begin / kDepth<F> * kTilePitch + lane, kTilePitch}, (end - begin) / kDepth<F>,
          {dq.data + lane, dq.stride});
    }
  }
  sumOverQueries(block);
}

} // namespace llmc::LLMC_ISA_NAMESPACE
