// Runs a program on the host in f64, op by op: the oracle that tests hold passes and kernels against. Slow and plain.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// Evaluates ops by EvaluableOpInterface, and the ones that meet the world (variables, hyperparameters) from its own
/// tables.
class Interpreter {
public:
  llvm::StringMap<HostTensor> variables; ///< by symbol; what get reads and set writes
  llvm::StringMap<double> scalars;       ///< hyperparameters by name

  /// Gives a value, such as a block argument, before a run.
  void bind(mlir::Value value, HostTensor tensor) { values[value] = std::move(tensor); }
  /// Of a value that was bound or computed.
  const HostTensor &at(mlir::Value value) const { return values.find(value)->second; }
  /// Runs all ops of a block but its terminator; fails with a diagnostic at the op that cannot be evaluated.
  mlir::LogicalResult run(mlir::Block &block);
  /// Binds a program's arguments, runs it and returns its results.
  mlir::FailureOr<llvm::SmallVector<HostTensor>> run(ProgramOp program, llvm::ArrayRef<HostTensor> arguments);

private:
  mlir::LogicalResult evaluate(mlir::Operation &op, llvm::SmallVectorImpl<HostTensor> &results);

  llvm::DenseMap<mlir::Value, HostTensor> values;
};

} // namespace llmc
