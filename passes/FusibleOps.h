// What the ops of a block are to generated kernels: part of one, free inside one, or neither.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// Whether an op is a reduction along the last axis.
bool isRowReduction(mlir::Operation *op);
/// Whether an op is a reduction over all axes but the last: its result is not complete before the kernel ends.
bool isColumnReduction(mlir::Operation *op);
/// The shape an op iterates over.
llvm::ArrayRef<int64_t> iterationShape(mlir::Operation *op);

/// The free ops of a block, found once: whether an op is free depends on all its users, and everybody asks.
class FusibleOps {
public:
  explicit FusibleOps(mlir::Block &block);
  /// Whether an op costs nothing inside a kernel, so that each kernel has its own copy: constants of one number, iota,
  /// and elementwise math on single elements.
  bool isFree(mlir::Operation *op) const { return free.contains(op); }
  /// Whether an op can be part of a generated kernel: elementwise, or a row or column reduction of a float.
  bool isFusible(mlir::Operation *op) const;

private:
  llvm::DenseSet<mlir::Operation *> free;
};

} // namespace llmc
