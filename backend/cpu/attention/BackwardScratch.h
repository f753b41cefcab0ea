// The memory of a backward task, and how keys come into it.
#pragma once

#include "backend/cpu/attention/Scores.h"

namespace llmc::LLMC_ISA_NAMESPACE {

inline constexpr int kPairs = 2;                         ///< panels of the forward pass
inline constexpr int kBackwardQueries = kPairs * kPanel; ///< queries, each a lane
inline constexpr int kTilePitch = kBackwardQueries | 16; ///< of words down the keys, a lane per query

/// Words in a row of neighbouring queries.
template <typename F> inline constexpr int kRowTilePitch = int(pitchOf(kBackwardQueries / kDepth<F>));

/// Floats of dq of one panel, transposed.
static inline int64_t dqFloats(const AttentionShape &shape) { return roundUp(shape.headSize, 16) * kBackwardQueries; }

/// Memory of one running backward task. Where words are floats, words along rows and down columns are the same.
template <typename F> struct BackwardScratch {
  Word *k, *v;          ///< (paddedKeys, rowPitch)
  Word *kColumns;       ///< (paddedKeys / kDepth, columnPitch)
  float *dk, *dv;       ///< (paddedKeys, columnPitch)
  Word *qT, *dOutT;     ///< (rowPitch, kTilePitch)
  Word *q, *dOut;       ///< (kBackwardQueries / kDepth, columnPitch)
  float *dqT, *dqPart;  ///< (headRows, kBackwardQueries)
  Word *weights;        ///< (kKeyBlock, kRowTilePitch)
  Word *dScores;        ///< (kKeyBlock, kRowTilePitch)
  Word *dScoresColumns; ///< (kKeyBlock / kDepth, kTilePitch)
  float *mask;          ///< (kKeyBlock, kPanel)
  Word *kBlock;         ///< (kKeyBlock, rowPitch)
  float *end;

  BackwardScratch(const AttentionShape &shape, int64_t numKeys, float *memory) {
    Sizes<F> sizes(shape);
    Scratch scratch{memory};
    const int64_t paddedKeys = roundUp(numKeys, kKeyBlock);
    k = scratch.take(paddedKeys * sizes.rowPitch);
    v = scratch.take(paddedKeys * sizes.rowPitch);
    kColumns = kDepth<F> == 1 ? k : scratch.take(paddedKeys / kDepth<F> * sizes.columnPitch);
    for (float **piece : {&dk, &dv})
      *piece = scratch.take(paddedKeys * sizes.columnPitch);
    for (float **piece : {&qT, &dOutT})
      *piece = scratch.take(sizes.rowPitch * kTilePitch);
    for (float **piece : {&q, &dOut})
      *piece = scratch.take(kBackwardQueries / kDepth<F> * sizes.columnPitch);
    for (float **piece : {&dqT, &dqPart})
      *piece = scratch.take(dqFloats(shape));
    for (float **piece : {&weights, &dScores})
      *piece = scratch.take(kKeyBlock * kRowTilePitch<F>);
    dScoresColumns = kDepth<F> == 1 ? dScores : scratch.take(kKeyBlock / kDepth<F> * kTilePitch);
    mask = scratch.take(kKeyBlock * kPanel);
    kBlock = scratch.take(kKeyBlock * sizes.rowPitch);
    end = scratch.next;
  }
};

/// Packs rows of k and v as panels come to see them, and asks for the ones that the next panel may see.
template <typename F, typename T> class KeyPacker {
public:
  /// The task's rows start at `row` and `column` of k and v. Empties their gradients.
  KeyPacker(const AttentionBackward &args, int64_t numKeys, int64_t row, int64_t column,
            const BackwardScratch<F> &scratch)
      : args(args), sizes(args.shape), scratch(scratch), numKeys(numKeys), row(row), column(column) {
    for (float *sums : {scratch.dk, scratch.dv})
      std::memset(sums, 0, size_t(roundUp(numKeys, kKeyBlock) * sizes.columnPitch) * sizeof(float));
  }

  /// Packs the task's first `count` rows, in whole blocks.
  void packUntil(int64_t count) {
    if (count <= numPacked)
      return;
    const int64_t end = roundUp(count, kKeyBlock), padded = end - numPacked;
    HeadRows<T> k = rowsOf(args.k, numPacked, end), v = rowsOf(args.v, numPacked, end);
    packRows<F>(k, padded, scratch.k + numPacked * sizes.rowPitch, sizes.rowPitch);
    packRows<F>(v, padded, scratch.v + numPacked * sizes.rowPitch, sizes.rowPitch);
    if constexpr (kDepth<F> > 1)
      packColumns<F>(k, padded, scratch.kColumns + numPacked / kDepth<F> * sizes.columnPitch, sizes.columnPitch);
    numPacked = end;
    fetchRows(rowsOf(args.k, end, end + kBackwardQueries));
    fetchRows(rowsOf(args.v, end, end + kBackwardQueries));
  }

private:
  HeadRows<T> rowsOf(const AttentionRows &rows, int64_t begin, int64_t end) const {
    return headRows<T>(args.shape, rows, row + begin, column, minOf(end, numKeys) - begin);
  }

  const AttentionBackward &args;
  const Sizes<F> sizes;
  const BackwardScratch<F> &scratch;
  int64_t numKeys, row, column;
  int64_t numPacked = 0;
};

} // namespace llmc::LLMC_ISA_NAMESPACE
