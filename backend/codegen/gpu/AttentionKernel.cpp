// out = softmax(scale * q k^T + mask) v, and lse: flash attention. A block takes a tile of queries of one head through
// the tiles of keys that any of them sees, and keeps maximum, sum and the weighted sum of values in registers; scores
// go through shared memory, never to the device's. Products and sums are f32 whatever the type.
#include "backend/codegen/gpu/AttentionTiles.h"
#include "backend/codegen/gpu/Emitters.h"

#include "runtime/KernelArguments.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace llmc {

static constexpr int64_t kKeys = 32, kColumnGroups = 8;

/// The largest tile of queries for which a block's shared memory suffices.
static AttentionTiling tilingFor(int64_t headSize) {
  AttentionTiling tiling{64, kKeys, kColumnGroups};
  auto sharedBytes = [&] {
    return 4 * ((tiling.queries + kKeys) * (tiling.paddedHead(headSize) + 4) + tiling.queries * (kKeys + 4));
  };
  while (sharedBytes() > kMostSharedBytes)
    tiling.queries /= 2;
  return tiling;
}

namespace {
class AttentionKernel : AttentionTiles {
public:
  AttentionKernel(const Launch &launch, StringRef symbol, MLIRContext &context)
      : AttentionTiles(launch, symbol, context, tilingFor(integerArgument(launch, "headSize"))),
        tileQ(sharedTile(tiling.queries)), tileKv(sharedTile(tiling.keys)), weights(sharedScores()) {}

  GpuKernel emit() {
    // The last queries see the most keys: they start first.
    const int64_t numTiles = (queries + tiling.queries - 1) / tiling.queries;
    Lanes ofHead = f.remainder(f.block(), batch * heads);
    Lanes tile = f.i32(numTiles - 1) - f.quotient(f.block(), batch * heads);
    const TilePlace place{f.quotient(ofHead, heads), f.remainder(ofHead, heads), tile * f.i32(tiling.queries)};
    Lanes kvHead = f.quotient(place.head, heads / kvHeads);
    loadTile(rowsOf("q"), place, queries, tiling.queries, tileQ);

    Lanes last = min(place.token + f.i32(tiling.queries), f.i32(queries)) - f.i32(1);
    Lanes begin = f.quotient(firstKey(place.token), tiling.keys) * f.i32(tiling.keys);
    LaneList state(4, nothingSeen().max);
    state.append(zeros(4 + numSums()));
    state = f.loop(begin, endKey(last), tiling.keys, state,
                   [&](Lanes key, ArrayRef<Lanes> state) { return addKeys(place, {place.batch, kvHead, key}, state); });
    finishTile(place, state);
    return f.finish(numTiles * batch * heads);
  }

private:
  TilePlace rowPlace(const TilePlace &place, int64_t row) {
    return {place.batch, place.head, place.token + rowGroup * f.i32(4) + f.i32(row)};
  }

  /// Of this thread's four rows: maxima, its part of the sums, its columns of the weighted sum of values.
  LaneList addKeys(const TilePlace &place, const TilePlace &keyPlace, ArrayRef<Lanes> state) {
    const int64_t columns = columnsPerThread(), perRow = numSums() / 4;
    f.barrier(); // the tile before has been read
    loadTile(rowsOf("k"), keyPlace, keys, tiling.keys, tileKv);
    f.barrier();
    LaneList scores = dots(tileQ, tileKv), next(state);
    for (int64_t i = 0; i < 4; ++i) {
      Lanes &max = next[size_t(i)], &sum = next[size_t(4 + i)], oldMax = max;
      for (int64_t j = 0; j < columns; ++j) {
        Lanes &score = scores[size_t(i * columns + j)];
        Lanes key = keyPlace.token + columnGroup + f.i32(j * tiling.columnGroups);
        score = this->score(score, rowPlace(place, i), key);
        max = larger(max, score);
      }
      for (int64_t distance = 1; distance < tiling.columnGroups; distance *= 2)
        max = larger(max, f.exchanged(max, distance));
      Lanes rescale = f.exp2(oldMax - max);
      sum = sum * rescale;
      for (int64_t j = 0; j < columns; ++j) {
        Lanes &score = scores[size_t(i * columns + j)];
        score = f.exp2(score - max);
        sum = sum + score;
      }
      for (int64_t j = 0; j < perRow; ++j)
        next[size_t(8 + i * perRow + j)] = next[size_t(8 + i * perRow + j)] * rescale;
    }
    storeScores(scores, weights);
    f.barrier(); // all have read the keys
    loadTile(rowsOf("v"), keyPlace, keys, tiling.keys, tileKv);
    f.barrier();
    LaneList sums = addProduct(ArrayRef(next).drop_front(8), weights, tileKv, tiling.keys);
    std::copy(sums.begin(), sums.end(), next.begin() + 8);
    return next;
  }

  void finishTile(const TilePlace &place, ArrayRef<Lanes> state) {
    GpuBuffer lse = f.operand("lse", ElementType::f32);
    LaneList inverse;
    for (int64_t i = 0; i < 4; ++i) {
      Lanes max = state[size_t(i)], sum = state[size_t(4 + i)];
      for (int64_t distance = 1; distance < tiling.columnGroups; distance *= 2)
        sum = sum + f.exchanged(sum, distance);
      Lanes isEmpty = equal(sum, f.f32(0));
      inverse.push_back(select(isEmpty, f.f32(0), f.f32(1) / sum));
      TilePlace row = rowPlace(place, i);
      f.onlyIf(logicalAnd(equal(columnGroup, f.i32(0)), less(row.token, f.i32(queries))), [&] {
        Lanes ofRow = f.f32(std::numbers::ln2) * (max + f.log2(sum));
        Lanes at = (f.wide(row.batch) * f.i64(heads) + f.wide(row.head)) * f.i64(queries) + f.wide(row.token);
        f.store({select(isEmpty, f.f32(-std::numeric_limits<double>::infinity()), ofRow)}, lse, at);
      });
    }
    storeTile(state.drop_front(8), inverse, denseRows("out", heads), place, queries);
  }

  GpuBuffer tileQ, tileKv, weights;
};
} // namespace

llvm::Expected<GpuKernel> emitAttention(const Launch &launch, StringRef symbol, MLIRContext &context) {
  if (std::string problem = attentionProblem(launch); !problem.empty())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", problem.c_str());
  return AttentionKernel(launch, symbol, context).emit();
}

} // namespace llmc
