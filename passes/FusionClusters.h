// Which ops run as one generated kernel: clusters of a program's ops, kept in an order in which they can run. Merging
// two clusters is allowed when no value leaves one and comes back to the other through a third.
#pragma once

#include "passes/FusibleOps.h"

#include <list>

namespace llmc {

/// One node of the contracted graph: a cluster of fusible ops, or one op of another kind.
struct FusionNode {
  llvm::SmallVector<mlir::Operation *> ops; ///< in program order
  llvm::SmallVector<int64_t> space;         ///< the iteration space's shape; empty and unused unless fusible
  bool isFusible = false;
  uint64_t order = 0;                      ///< rises along FusionClusters::nodes()
  std::list<FusionNode>::iterator place{}; ///< in FusionClusters::nodes()
};

class FusionClusters {
public:
  /// Every op of the block but free ones and the terminator becomes a node. The block must not change before the last
  /// merge.
  FusionClusters(mlir::Block &block, const FusibleOps &fusible);

  /// Merges the clusters of two ops. Returns the reason why not, or "" when done (or already one).
  std::string tryMerge(mlir::Operation *a, mlir::Operation *b);
  /// All nodes in an order in which they can run.
  const std::list<FusionNode> &nodes() const { return order; }

private:
  using Users = llvm::SmallVector<mlir::Operation *, 2>;

  std::string whyNot(FusionNode &a, FusionNode &b) const;
  size_t countBuffers(const FusionNode &a, const FusionNode &b) const;
  /// Whether a column reduction in `other` makes an operand of `op`, seeing through free ops.
  bool readsColumnSums(mlir::Operation *op, const FusionNode &other) const;
  /// Adds the ops that use a result of `op`, seeing through free ops.
  void addUsers(mlir::Operation *op, Users &users) const;
  /// The nodes before `to` that depend on `from`, in order; nothing when `to` depends on one of them.
  std::optional<llvm::SmallVector<FusionNode *>> dependentsBetween(FusionNode &from, FusionNode &to) const;
  /// Puts nodes behind another.
  void moveBehind(FusionNode &node, llvm::ArrayRef<FusionNode *> moved);
  void number();

  const FusibleOps &fusible;
  std::list<FusionNode> order;
  llvm::DenseMap<mlir::Operation *, FusionNode *> byOp;
  llvm::DenseMap<mlir::Operation *, Users> usersOf; ///< of the ops of all nodes
};

} // namespace llmc
