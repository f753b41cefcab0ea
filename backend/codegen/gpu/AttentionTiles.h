// What both passes of attention share on a GPU: tiles of heads in shared memory (as f32, rows of `pitch` elements,
// padded with zeros), products of tiles, and which keys a query sees. A block's threads form a grid of row groups, four
// rows each, and column groups; neighbouring threads are neighbouring column groups.
#pragma once

#include "backend/codegen/gpu/GpuFunction.h"

#include <string>

namespace llmc {

/// How a block cuts its work.
struct AttentionTiling {
  int64_t queries, keys; ///< of a tile
  int64_t columnGroups;
  uint32_t threads() const { return uint32_t(queries / 4 * columnGroups); }
  /// Elements of a tile's row for this head size, without the four that keep rows in different banks.
  int64_t paddedHead(int64_t headSize) const {
    return (headSize + 4 * columnGroups - 1) / (4 * columnGroups) * (4 * columnGroups);
  }
};

/// The most head elements that the kernels are made for.
inline constexpr int64_t kMostHeadSize = 256;
/// Shared memory that a block may have on every GPU from sm_80 on.
inline constexpr int64_t kMostSharedBytes = 99 * 1024;

/// Rows of heads in an operand: token t of batch b starts at (b * tokens + t) * stride + offset.
struct HeadRows {
  GpuBuffer buffer;
  int64_t stride, offset;
};

/// One head of one batch in an operand, and the token that a tile begins with.
struct TilePlace {
  Lanes batch, head, token; ///< i32
};

/// Maximum (of scores in units of log 2) and sum of a query's weights.
struct Softmax {
  Lanes max, sum;
};

class AttentionTiles {
protected:
  AttentionTiles(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context, AttentionTiling tiling);

  /// An operand whose stride and offset are among the integers, under this name.
  HeadRows rowsOf(const char *operand) const;
  /// A dense operand with `numHeads` heads.
  HeadRows denseRows(const char *operand, int64_t numHeads) const;
  GpuBuffer sharedTile(int64_t rows) { return f.shared(rows * pitch, f.builder.getF32Type()); }
  GpuBuffer sharedScores() { return f.shared(tiling.queries * scorePitch, f.builder.getF32Type()); }
  /// Position of the first element of a place's row.
  Lanes positionOf(const HeadRows &rows, const TilePlace &place, int64_t tokens);

  /// Fills a tile with `numRows` rows; those from token `tokens` on are zero.
  void loadTile(const HeadRows &rows, const TilePlace &place, int64_t tokens, int64_t numRows, const GpuBuffer &tile);
  /// Writes what a thread holds of the rows of a tile (four rows, its columns), times a factor for each.
  void storeTile(llvm::ArrayRef<Lanes> sums, llvm::ArrayRef<Lanes> factors, const HeadRows &rows,
                 const TilePlace &place, int64_t tokens);
  int64_t numSums() const { return 4 * (pitch - 4) / tiling.columnGroups; }
  LaneList zeros(int64_t count) { return LaneList(size_t(count), f.f32(0)); }

  /// a b^T: of this thread's rows of `a` with its columns, which are rows columnGroup + j * columnGroups of `b`.
  LaneList dots(const GpuBuffer &a, const GpuBuffer &b);
  int64_t columnsPerThread() const { return tiling.keys / tiling.columnGroups; }
  /// Adds weights (rows, depth) times tile (depth, head) to sums.
  LaneList addProduct(llvm::ArrayRef<Lanes> sums, const GpuBuffer &weights, const GpuBuffer &tile, int64_t depth);
  /// The same with the weights transposed: (depth, rows).
  LaneList addTransposed(llvm::ArrayRef<Lanes> sums, const GpuBuffer &weights, const GpuBuffer &tile, int64_t depth);
  /// Writes scores (as dots gives them) where addProduct reads them.
  void storeScores(llvm::ArrayRef<Lanes> scores, const GpuBuffer &to);

  /// A score in units of log 2 with its mask; -inf where the query does not see the key, or either does not exist.
  Lanes score(Lanes dot, const TilePlace &query, Lanes key);
  /// The first key (at least 0) that any of the queries from `query` on sees, and the end of those that queries up to
  /// `last` see.
  Lanes firstKey(Lanes query);
  Lanes endKey(Lanes last);
  /// The softmax of two sets of keys together.
  Softmax joined(const Softmax &a, const Softmax &b);
  /// A score's softmax joined to another's.
  Softmax joined(const Softmax &a, Lanes score) { return joined(a, {score, f.f32(1)}); }
  Softmax nothingSeen();
  Lanes larger(Lanes a, Lanes b);

  const int64_t batch, queries, keys, heads, kvHeads, headSize, window;
  const bool isCausal;
  const ElementType type;
  const double scale;
  const AttentionTiling tiling;
  const int64_t pitch, scorePitch;
  GpuFunction f;
  Lanes rowGroup, columnGroup;
  GpuBuffer mask;
};

/// In words why the kernels do not take a launch, or nothing.
std::string attentionProblem(const Launch &launch);

} // namespace llmc
