// Which ops run as one generated kernel: clusters of a program's ops, kept in an order in which they can run. Merging
// two clusters is allowed when no value leaves one and comes back to the other through a third.
#pragma once

#include "ir/Dialect.h"

#include <memory>

namespace llmc {

/// One node of the contracted graph: a cluster of fusible ops, or one op of another kind.
struct FusionNode {
  llvm::SmallVector<mlir::Operation *> ops; ///< in program order
  llvm::SmallVector<int64_t> space;         ///< the iteration space's shape; empty and unused unless fusible
  bool isFusible = false;
  size_t order = 0; ///< position in FusionClusters::nodes()
};

/// Whether an op can be part of a generated kernel: elementwise, or a row or column reduction of a float.
bool isFusible(mlir::Operation *op);
/// Whether an op costs nothing inside a kernel, so that each kernel has its own copy: constants of one number, iota,
/// and elementwise math on single elements.
bool isFree(mlir::Operation *op);
/// Whether an op is a reduction over all axes but the last: its result is not complete before the kernel ends.
bool isColumnReduction(mlir::Operation *op);
bool isRowReduction(mlir::Operation *op);
/// The shape an op iterates over.
llvm::ArrayRef<int64_t> iterationShape(mlir::Operation *op);

class FusionClusters {
public:
  /// Every op of the block but free ones and the terminator becomes a node.
  explicit FusionClusters(mlir::Block &block);

  /// Merges the clusters of two ops. Returns the reason why not, or "" when done (or already one).
  std::string tryMerge(mlir::Operation *a, mlir::Operation *b);
  /// All nodes in an order in which they can run.
  llvm::ArrayRef<FusionNode *> nodes() const { return order; }

private:
  std::string whyNot(FusionNode &a, FusionNode &b) const;
  /// Whether a column reduction in `other` makes an operand of `op`, seeing through free ops.
  bool readsColumnSums(mlir::Operation *op, const FusionNode &other) const;
  /// Whether `to` depends on `from` through a third node; `between` gets the nodes before `to` that depend on `from`.
  bool reaches(FusionNode &from, FusionNode &to, llvm::DenseSet<FusionNode *> &between) const;

  std::vector<std::unique_ptr<FusionNode>> owned;
  std::vector<FusionNode *> order;
  llvm::DenseMap<mlir::Operation *, FusionNode *> byOp;
};

} // namespace llmc
