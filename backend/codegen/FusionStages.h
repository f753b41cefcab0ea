// What a fusion's body asks of a kernel: which values live once per kernel, per row or per lane, and in which loop over
// the columns each is computed. A row reduction ends a stage: what depends on it is computed by a later loop over the
// same row, whose loads hit the cache, so values are recomputed and never stored between stages. Nothing here knows a
// target.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// How often a value is computed: once, once a row, or for each lane of each loop.
enum class Level : uint8_t { kernel, row, lane };

/// How a reduction combines two numbers.
enum class Combine : uint8_t { sum, max };

/// A row reduction or column reduction of a body.
struct Reduction {
  Combine combine;
  bool isColumn; ///< over the rows of a block, else over the columns of a row
};

/// One loop over the columns of a row. `ops` are in the order of the body and hold what the loop's reductions and
/// results need.
struct Stage {
  llvm::SmallVector<mlir::Operation *> rowOps;     ///< once a row, before the loop
  llvm::SmallVector<mlir::Operation *> laneOps;    ///< inside the loop
  llvm::SmallVector<mlir::Operation *> reductions; ///< row reductions of lanes, complete after the loop
};

/// One result of a fusion.
struct FusionResult {
  mlir::Value value;              ///< what is stored, or for a column reduction its operand
  unsigned operand = 0;           ///< index among the kernel's operands
  mlir::Type storage;             ///< element type
  std::optional<Combine> partial; ///< a column reduction: combined over the rows of a block
};

/// A fusion analysed.
class FusionStages {
public:
  /// Fails with an error on the op for what kernels cannot hold.
  static mlir::FailureOr<FusionStages> analyze(FusionOp fusion);

  FusionOp op() const { return fusion; }
  mlir::Block &body() const { return op().getBody().front(); }

  llvm::SmallVector<int64_t> space;
  int64_t rows = 1, cols = 1, rowBlock = 1, colBlock = 1;
  llvm::SmallVector<mlir::Operation *> kernelOps;   ///< once, before all rows
  llvm::SmallVector<Stage> stages;                  ///< the last one also stores the results that are lanes
  llvm::SmallVector<mlir::Operation *> finalRowOps; ///< once a row, after the last loop
  llvm::SmallVector<FusionResult> results;

  Level level(mlir::Value value) const { return levels.lookup(value); }
  /// The kernel's code does not depend on the number of columns: one row, no reduction.
  bool isLinear() const {
    return rows == 1 && space.size() == 1 && cols > 1 && stages.size() == 1 && stages[0].reductions.empty();
  }
  /// A task is always whole rows.
  bool hasWholeRows() const { return !isLinear() && colBlock >= cols; }

private:
  mlir::LogicalResult classify(mlir::Operation *op);
  mlir::LogicalResult collectResults();
  void placeOps();

  FusionOp fusion;
  llvm::DenseMap<mlir::Value, Level> levels;
  llvm::DenseMap<mlir::Value, unsigned> depths; ///< number of row reductions a value waits for, one after another
};

/// The reduction an op is, with its direction in a space of `rank` dimensions; nothing for other ops.
std::optional<Reduction> reductionOf(mlir::Operation *op, int64_t rank);

/// See Codegen.h.
std::string kernelKey(const FusionStages &stages);

/// What a kernel does in short, for profiles: its ops' names.
std::string describeKernel(const FusionStages &stages);

/// f32 for floats, else the type itself: what numbers of a storage type are computed in.
mlir::Type computeType(mlir::Type storage);

} // namespace llmc
