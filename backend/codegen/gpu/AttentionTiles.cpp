// Tiles and their products. Each product reads 128 bits at a time: of four rows of one side and of a few columns of the
// other, so that one load serves at least eight multiplications.
#include "backend/codegen/gpu/AttentionTiles.h"
#include "backend/codegen/LaneOps.h"
#include "runtime/KernelArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

#include <cfloat>
#include <limits>
#include <numbers>

using namespace mlir;

namespace llmc {

static constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string attentionProblem(const Launch &launch) {
  int64_t headSize = integerArgument(launch, "headSize");
  if (headSize > kMostHeadSize)
    return "head size " + std::to_string(headSize) + ", GPU kernels take up to " + std::to_string(kMostHeadSize);
  return "";
}

AttentionTiles::AttentionTiles(const Launch &launch, StringRef symbol, MLIRContext &context, AttentionTiling tiling)
    : batch(integerArgument(launch, "batch")), queries(integerArgument(launch, "queries")),
      keys(integerArgument(launch, "keys")), heads(integerArgument(launch, "heads")),
      kvHeads(integerArgument(launch, "kvHeads")), headSize(integerArgument(launch, "headSize")),
      window(integerArgument(launch, "window")), isCausal(integerArgument(launch, "causal") != 0),
      type(typeArgument(launch, "type")), scale(numberArgument(launch, "scale")), tiling(tiling),
      pitch(tiling.paddedHead(headSize) + 4), scorePitch(tiling.keys + 4), f(launch, symbol, context, tiling.threads()),
      rowGroup(f.quotient(f.thread(), tiling.columnGroups)), columnGroup(f.remainder(f.thread(), tiling.columnGroups)),
      mask(f.operand("mask", ElementType::f32)) {}

HeadRows AttentionTiles::rowsOf(const char *operand) const {
  return {f.operand(operand, type), integerArgument(f.launch, std::string(operand) + "RowStride"),
          integerArgument(f.launch, std::string(operand) + "Offset")};
}

HeadRows AttentionTiles::denseRows(const char *operand, int64_t numHeads) const {
  return {f.operand(operand, type), numHeads * headSize, 0};
}

Lanes AttentionTiles::positionOf(const HeadRows &rows, const TilePlace &place, int64_t tokens) {
  Lanes row = f.wide(place.batch) * f.i64(tokens) + f.wide(place.token);
  return row * f.i64(rows.stride) + f.wide(place.head) * f.i64(headSize) + f.i64(rows.offset);
}

void AttentionTiles::loadTile(const HeadRows &rows, const TilePlace &place, int64_t tokens, int64_t numRows,
                              const GpuBuffer &tile) {
  const int64_t width = accessWidth(4, {headSize, rows.stride, rows.offset});
  const int64_t perRow = (pitch - 4) / width, numUnits = numRows * perRow, perThread = numUnits / tiling.threads();
  const int64_t unroll = accessWidth(pitch > 132 ? 2 : 4, {perThread}); ///< loads on their way at once
  Lanes first = positionOf(rows, place, tokens), numValid = f.i32(tokens) - place.token;
  f.loop(f.i32(0), f.i32(numUnits), unroll * tiling.threads(), [&](Lanes base) {
    SmallVector<LaneList> loaded;
    SmallVector<Lanes> slots;
    for (int64_t i = 0; i < unroll; ++i) {
      Lanes unit = base + f.i32(i * tiling.threads()) + f.thread();
      Lanes row = f.quotient(unit, perRow), column = f.remainder(unit, perRow) * f.i32(width);
      Lanes isInside = logicalAnd(less(row, numValid), less(column, f.i32(headSize)));
      loaded.push_back(f.onlyIf(isInside, zeros(width), [&] {
        return f.load(rows.buffer, first + f.wide(row) * f.i64(rows.stride) + f.wide(column), width);
      }));
      slots.push_back(row * f.i32(pitch) + column);
    }
    for (int64_t i = 0; i < unroll; ++i)
      f.store(loaded[size_t(i)], tile, slots[size_t(i)]);
  });
}

void AttentionTiles::storeTile(ArrayRef<Lanes> sums, ArrayRef<Lanes> factors, const HeadRows &rows,
                               const TilePlace &place, int64_t tokens) {
  const int64_t width = accessWidth(4, {headSize, rows.stride, rows.offset}), perRow = numSums() / 4;
  Lanes first = positionOf(rows, place, tokens), numValid = f.i32(tokens) - place.token;
  for (int64_t i = 0; i < 4; ++i) {
    Lanes row = rowGroup * f.i32(4) + f.i32(i);
    f.onlyIf(less(row, numValid), [&] {
      for (int64_t j = 0; j < perRow; j += width) {
        Lanes column = columnGroup * f.i32(4) + f.i32(j / 4 * 4 * tiling.columnGroups + j % 4);
        LaneList numbers;
        for (int64_t k = 0; k < width; ++k)
          numbers.push_back(sums[size_t(i * perRow + j + k)] * factors[size_t(i)]);
        f.onlyIf(less(column, f.i32(headSize)),
                 [&] { f.store(numbers, rows.buffer, first + f.wide(row) * f.i64(rows.stride) + f.wide(column)); });
      }
    });
  }
}

LaneList AttentionTiles::dots(const GpuBuffer &a, const GpuBuffer &b) {
  const int64_t columns = columnsPerThread();
  return f.loop(f.i32(0), f.i32((headSize + 3) / 4 * 4), 4, zeros(4 * columns), [&](Lanes d, ArrayRef<Lanes> sums) {
    LaneList next(sums);
    SmallVector<LaneList> ofA;
    for (int64_t i = 0; i < 4; ++i)
      ofA.push_back(f.load(a, (rowGroup * f.i32(4) + f.i32(i)) * f.i32(pitch) + d, 4));
    for (int64_t j = 0; j < columns; ++j) {
      LaneList ofB = f.load(b, (columnGroup + f.i32(j * tiling.columnGroups)) * f.i32(pitch) + d, 4);
      for (int64_t i = 0; i < 4; ++i)
        for (size_t k = 0; k < 4; ++k) {
          Lanes &sum = next[size_t(i * columns + j)];
          sum = sum + ofA[size_t(i)][k] * ofB[k];
        }
    }
    return next;
  });
}

/// sums (4, perRow) += weights (4) x the row's columns.
static void addOuter(LaneList &sums, ArrayRef<Lanes> weights, ArrayRef<LaneList> columns) {
  for (size_t i = 0; i < 4; ++i)
    for (size_t chunk = 0; chunk < columns.size(); ++chunk)
      for (size_t k = 0; k < 4; ++k) {
        Lanes &sum = sums[(i * columns.size() + chunk) * 4 + k];
        sum = sum + weights[i] * columns[chunk][k];
      }
}

LaneList AttentionTiles::addProduct(ArrayRef<Lanes> sums, const GpuBuffer &weights, const GpuBuffer &tile,
                                    int64_t depth) {
  return f.loop(f.i32(0), f.i32(depth), 4, sums, [&](Lanes s, ArrayRef<Lanes> sums) {
    LaneList next(sums);
    SmallVector<LaneList> ofRows;
    for (int64_t i = 0; i < 4; ++i)
      ofRows.push_back(f.load(weights, (rowGroup * f.i32(4) + f.i32(i)) * f.i32(scorePitch) + s, 4));
    for (int64_t k = 0; k < 4; ++k) {
      SmallVector<LaneList> columns;
      for (int64_t chunk = 0; chunk < pitch - 4; chunk += 4 * tiling.columnGroups)
        columns.push_back(f.load(tile, (s + f.i32(k)) * f.i32(pitch) + columnGroup * f.i32(4) + f.i32(chunk), 4));
      LaneList ofDepth;
      for (const LaneList &row : ofRows)
        ofDepth.push_back(row[size_t(k)]);
      addOuter(next, ofDepth, columns);
    }
    return next;
  });
}

LaneList AttentionTiles::addTransposed(ArrayRef<Lanes> sums, const GpuBuffer &weights, const GpuBuffer &tile,
                                       int64_t depth) {
  return f.loop(f.i32(0), f.i32(depth), 2, sums, [&](Lanes m, ArrayRef<Lanes> sums) {
    LaneList next(sums);
    for (int64_t k = 0; k < 2; ++k) {
      LaneList ofRows = f.load(weights, (m + f.i32(k)) * f.i32(scorePitch) + rowGroup * f.i32(4), 4);
      SmallVector<LaneList> columns;
      for (int64_t chunk = 0; chunk < pitch - 4; chunk += 4 * tiling.columnGroups)
        columns.push_back(f.load(tile, (m + f.i32(k)) * f.i32(pitch) + columnGroup * f.i32(4) + f.i32(chunk), 4));
      addOuter(next, ofRows, columns);
    }
    return next;
  });
}

void AttentionTiles::storeScores(ArrayRef<Lanes> scores, const GpuBuffer &to) {
  const int64_t columns = columnsPerThread();
  for (int64_t i = 0; i < 4; ++i)
    for (int64_t j = 0; j < columns; ++j)
      f.store({scores[size_t(i * columns + j)]}, to,
              (rowGroup * f.i32(4) + f.i32(i)) * f.i32(scorePitch) + columnGroup + f.i32(j * tiling.columnGroups));
}

Lanes AttentionTiles::score(Lanes dot, const TilePlace &query, Lanes key) {
  Lanes newest = query.token + f.i32(keys - queries), sees = less(key, f.i32(keys));
  sees = logicalAnd(sees, less(query.token, f.i32(queries)));
  if (isCausal)
    sees = logicalAnd(sees, lessEqual(key, newest));
  if (window > 0)
    sees = logicalAnd(sees, less(newest - f.i32(window), key));
  Lanes scaled = dot * f.f32(scale * std::numbers::log2e);
  if (!mask)
    return select(sees, scaled, f.f32(-kInfinity));
  return f.onlyIf(sees, {f.f32(-kInfinity)}, [&] {
    auto stride = [&](const char *name) { return f.i64(integerArgument(f.launch, name)); };
    Lanes at = f.wide(query.batch) * stride("maskBatchStride") + f.wide(query.head) * stride("maskHeadStride") +
               f.wide(query.token) * stride("maskQueryStride") + f.wide(key) * stride("maskKeyStride");
    Lanes added = f.load(mask, at);
    // A finite mask stays finite in units of log 2.
    Lanes inUnits = larger(added * f.f32(std::numbers::log2e), f.f32(-FLT_MAX));
    return LaneList{scaled + select(equal(added, f.f32(-kInfinity)), added, inUnits)};
  })[0];
}

Lanes AttentionTiles::firstKey(Lanes query) {
  return window > 0 ? max(f.i32(0), query + f.i32(keys - queries - window + 1)) : f.i32(0);
}

Lanes AttentionTiles::endKey(Lanes last) {
  return isCausal ? min(f.i32(keys), last + f.i32(keys - queries + 1)) : f.i32(keys);
}

Lanes AttentionTiles::larger(Lanes a, Lanes b) { return apply<arith::MaxNumFOp>(a, b); }

// The maximum starts finite, so that a query that sees no key keeps the sum 0.
Softmax AttentionTiles::nothingSeen() { return {f.f32(-FLT_MAX), f.f32(0)}; }

Softmax AttentionTiles::joined(const Softmax &a, const Softmax &b) {
  Lanes max = larger(a.max, b.max);
  return {max, a.sum * f.exp2(a.max - max) + b.sum * f.exp2(b.max - max)};
}

} // namespace llmc
