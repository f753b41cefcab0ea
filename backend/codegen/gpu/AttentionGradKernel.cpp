// Gradients of attention, flash style, in one launch without atomics, so that its bits repeat: some blocks take a tile
// of keys of one head of k and v through all queries that see them and sum dk and dv, the others a tile of queries
// through its keys and sum dq. Both compute weights p = exp(score - lse) and ds = p (dOut v^T - delta) again, where
// delta = sum(dOut out) of a query.
#include "backend/codegen/gpu/AttentionTiles.h"
#include "backend/codegen/gpu/Emitters.h"

#include "runtime/KernelArguments.h"

#include <limits>
#include <numbers>

using namespace mlir;

namespace llmc {

/// Queries and keys of a tile are equally many: both are rows of sums.
static AttentionTiling tilingFor(int64_t headSize) {
  AttentionTiling tiling{32, 32, headSize <= 32 ? 8 : 16};
  auto sharedBytes = [&] {
    return 4 * tiling.queries * (4 * (tiling.paddedHead(headSize) + 4) + 2 * (tiling.keys + 4) + 3);
  };
  if (sharedBytes() > kMostSharedBytes)
    tiling.queries = tiling.keys = 16;
  return tiling;
}

/// A log-sum-exp so far from zero, in units of log 2, has lost bits that weights need (all of them, where a low finite
/// mask hides every key): maximum and sum are found again.
static constexpr double kFarMaximum = 256;

namespace {
class AttentionGradKernel : AttentionTiles {
public:
  AttentionGradKernel(const Launch &launch, StringRef symbol, MLIRContext &context)
      : AttentionTiles(launch, symbol, context, tilingFor(integerArgument(launch, "headSize"))), size(tiling.queries),
        tileQ(sharedTile(size)), tileDOut(sharedTile(size)), tileK(sharedTile(size)), tileV(sharedTile(size)),
        weights(sharedScores()), dScores(sharedScores()), maxima(f.shared(size, f.builder.getF32Type())),
        inverses(f.shared(size, f.builder.getF32Type())), deltas(f.shared(size, f.builder.getF32Type())) {}

  GpuKernel emit() {
    const int64_t keyBlocks = (keys + size - 1) / size * batch * kvHeads;
    const int64_t queryBlocks = (queries + size - 1) / size * batch * heads;
    f.preferRegisters();
    // The longest first: the first keys are seen by the most queries, the last queries see the most keys. Sums for both
    // dk and dv of a large head do not fit into a thread's registers: they are different blocks' work.
    int64_t first = 0;
    auto part = [&](int64_t blocks, llvm::function_ref<void(Lanes)> body) {
      Lanes block = f.block() - f.i32(first);
      f.onlyIf(logicalAnd(lessEqual(f.i32(0), block), less(block, f.i32(blocks))), [&] { body(block); });
      first += blocks;
    };
    if (headSize <= 128) {
      part(keyBlocks, [&](Lanes block) { sumOverQueries(block, /*ofK=*/true, /*ofV=*/true); });
    } else {
      part(keyBlocks, [&](Lanes block) { sumOverQueries(block, /*ofK=*/true, /*ofV=*/false); });
      part(keyBlocks, [&](Lanes block) { sumOverQueries(block, /*ofK=*/false, /*ofV=*/true); });
    }
    part(queryBlocks, [&](Lanes block) { sumOverKeys(f.i32(queryBlocks - 1) - block); });
    return f.finish(first);
  }

private:
  /// dk, dv, or both, of one tile.
  void sumOverQueries(Lanes block, bool ofK, bool ofV) {
    Lanes ofHead = f.remainder(block, batch * kvHeads);
    const TilePlace place{f.quotient(ofHead, kvHeads), f.remainder(ofHead, kvHeads),
                          f.quotient(block, batch * kvHeads) * f.i32(size)};
    loadTile(rowsOf("k"), place, keys, size, tileK);
    loadTile(rowsOf("v"), place, keys, size, tileV);
    const int64_t group = heads / kvHeads;
    const size_t ofOne = size_t(numSums());
    LaneList sums =
        f.loop(f.i32(0), f.i32(group), 1, zeros((ofK + ofV) * numSums()), [&](Lanes h, ArrayRef<Lanes> sums) {
          TilePlace queryPlace{place.batch, place.head * f.i32(group) + h, f.i32(0)};
          return f.loop(firstQuery(place.token), endQuery(place.token), size, sums,
                        [&](Lanes query, ArrayRef<Lanes> sums) {
                          queryPlace.token = query;
                          f.barrier(); // the tiles before have been read
                          loadQueries(queryPlace);
                          weigh(queryPlace, place.token, ofK, ofV);
                          LaneList next;
                          if (ofK)
                            next.append(addTransposed(sums.take_front(ofOne), dScores, tileQ, size));
                          if (ofV)
                            next.append(addTransposed(sums.take_back(ofOne), weights, tileDOut, size));
                          return next;
                        });
        });
    if (ofK)
      storeTile(ArrayRef(sums).take_front(ofOne), LaneList(4, f.f32(scale)), rowsOf("dk"), place, keys);
    if (ofV)
      storeTile(ArrayRef(sums).take_back(ofOne), LaneList(4, f.f32(1)), rowsOf("dv"), place, keys);
  }
  /// Queries of whole tiles that see any of the keys from `key` on.
  Lanes firstQuery(Lanes key) {
    Lanes first = isCausal ? max(f.i32(0), key + f.i32(queries - keys)) : f.i32(0);
    return f.quotient(first, size) * f.i32(size);
  }
  Lanes endQuery(Lanes key) {
    return window > 0 ? min(f.i32(queries), key + f.i32(size - 1 + queries - keys + window)) : f.i32(queries);
  }

  /// dq of one tile.
  void sumOverKeys(Lanes block) {
    Lanes ofHead = f.remainder(block, batch * heads);
    const TilePlace place{f.quotient(ofHead, heads), f.remainder(ofHead, heads),
                          f.quotient(block, batch * heads) * f.i32(size)};
    TilePlace keyPlace{place.batch, f.quotient(place.head, heads / kvHeads), f.i32(0)};
    loadQueries(place);
    Lanes last = min(place.token + f.i32(size), f.i32(queries)) - f.i32(1);
    Lanes begin = f.quotient(firstKey(place.token), size) * f.i32(size);
    LaneList sums = f.loop(begin, endKey(last), size, zeros(numSums()), [&](Lanes key, ArrayRef<Lanes> sums) {
      keyPlace.token = key;
      f.barrier(); // the tiles before have been read
      loadTile(rowsOf("k"), keyPlace, keys, size, tileK);
      loadTile(rowsOf("v"), keyPlace, keys, size, tileV);
      f.barrier();
      weigh(place, key, /*keepsGradients=*/true, /*keepsWeights=*/false);
      return addProduct(sums, dScores, tileK, size);
    });
    storeTile(sums, LaneList(4, f.f32(scale)), rowsOf("dq"), place, queries);
  }

  /// Tiles of q and dOut, and what is known of each query; ends with a barrier.
  void loadQueries(const TilePlace &place) {
    loadTile(rowsOf("q"), place, queries, size, tileQ);
    loadTile(denseRows("dOut", heads), place, queries, size, tileDOut);
    f.barrier();
    const int64_t perRow = tiling.threads() / size; ///< threads of a query, neighbours in a warp
    Lanes row = f.quotient(f.thread(), perRow), part = f.remainder(f.thread(), perRow);
    TilePlace query{place.batch, place.head, place.token + row};
    Lanes exists = less(query.token, f.i32(queries));
    const HeadRows out = denseRows("out", heads);
    Lanes first = positionOf(out, query, queries);
    Lanes delta = f.onlyIf(exists, zeros(1), [&] {
      return f.loop(part, f.i32(headSize), perRow, zeros(1), [&](Lanes d, ArrayRef<Lanes> sum) {
        return LaneList{sum[0] + f.load(tileDOut, row * f.i32(pitch) + d) * f.load(out.buffer, first + f.wide(d))};
      });
    })[0];
    for (int64_t distance = 1; distance < perRow; distance *= 2)
      delta = delta + f.exchanged(delta, distance);
    Softmax softmax = softmaxOf(query, exists, row, part, perRow);
    f.onlyIf(equal(part, f.i32(0)), [&] {
      f.store({delta}, deltas, row);
      f.store({softmax.max}, maxima, row);
      f.store({f.f32(1) / softmax.sum}, inverses, row);
    });
    f.barrier();
  }

  /// From lse. A query that sees no key, or is none, has a maximum of infinity: its weights become zero.
  Softmax softmaxOf(const TilePlace &query, Lanes exists, Lanes row, Lanes part, int64_t perRow) {
    const double infinity = std::numeric_limits<double>::infinity();
    GpuBuffer lse = f.operand("lse", ElementType::f32);
    Lanes at = (f.wide(query.batch) * f.i64(heads) + f.wide(query.head)) * f.i64(queries) + f.wide(query.token);
    Lanes value = f.onlyIf(exists, {f.f32(-infinity)}, [&] { return LaneList{f.load(lse, at)}; })[0];
    Lanes seesNone = equal(value, f.f32(-infinity)), max = value * f.f32(std::numbers::log2e);
    Softmax known{select(seesNone, f.f32(infinity), max), f.f32(1)};
    if (!mask)
      return known;
    Lanes isFar = logicalAnd(logicalNot(seesNone), less(f.f32(kFarMaximum), abs(max)));
    // Only the lanes of such queries go over keys; then all of a query's meet.
    Lanes begin = select(isFar, firstKey(query.token), f.i32(0)), end = select(isFar, endKey(query.token), f.i32(0));
    const HeadRows k = rowsOf("k");
    Lanes kvHead = f.quotient(query.head, heads / kvHeads);
    Softmax found = nothingSeen();
    LaneList state = f.loop(begin + part, end, perRow, {found.max, found.sum}, [&](Lanes key, ArrayRef<Lanes> state) {
      Lanes first = positionOf(k, {query.batch, kvHead, key}, keys);
      Lanes dot = f.loop(f.i32(0), f.i32(headSize), 1, zeros(1), [&](Lanes d, ArrayRef<Lanes> sum) {
        return LaneList{sum[0] + f.load(tileQ, row * f.i32(pitch) + d) * f.load(k.buffer, first + f.wide(d))};
      })[0];
      Softmax next = joined({state[0], state[1]}, score(dot, query, key));
      return LaneList{next.max, next.sum};
    });
    found = {state[0], state[1]};
    for (int64_t distance = 1; distance < perRow; distance *= 2)
      found = joined(found, Softmax{f.exchanged(found.max, distance), f.exchanged(found.sum, distance)});
    return {select(isFar, found.max, known.max), select(isFar, found.sum, known.sum)};
  }

  /// Weights and ds of a tile, those that are kept, into shared memory; ends with a barrier.
  void weigh(const TilePlace &place, Lanes firstKey, bool keepsGradients, bool keepsWeights) {
    const int64_t columns = columnsPerThread();
    LaneList p = dots(tileQ, tileK), ds = dots(tileDOut, tileV);
    for (int64_t i = 0; i < 4; ++i) {
      Lanes row = rowGroup * f.i32(4) + f.i32(i);
      Lanes max = f.load(maxima, row), inverse = f.load(inverses, row), delta = f.load(deltas, row);
      for (int64_t j = 0; j < columns; ++j) {
        Lanes &weight = p[size_t(i * columns + j)], &gradient = ds[size_t(i * columns + j)];
        Lanes key = firstKey + columnGroup + f.i32(j * tiling.columnGroups);
        weight = f.exp2(score(weight, {place.batch, place.head, place.token + row}, key) - max) * inverse;
        gradient = weight * (gradient - delta);
      }
    }
    if (keepsGradients)
      storeScores(ds, dScores);
    if (keepsWeights)
      storeScores(p, weights);
    f.barrier();
  }

  const int64_t size; ///< queries and keys of a tile
  GpuBuffer tileQ, tileDOut, tileK, tileV, weights, dScores, maxima, inverses, deltas;
};
} // namespace

llvm::Expected<GpuKernel> emitAttentionGrad(const Launch &launch, StringRef symbol, MLIRContext &context) {
  if (std::string problem = attentionProblem(launch); !problem.empty())
    return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", problem.c_str());
  return AttentionGradKernel(launch, symbol, context).emit();
}

} // namespace llmc
