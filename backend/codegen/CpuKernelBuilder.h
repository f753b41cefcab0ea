// Kernels on CPUs: lanes are vectors of one register's f32 (integers of the same count), a task's loops are scf.for,
// the columns that do not fill a vector are masked.
#pragma once

#include "backend/codegen/Codegen.h"
#include "backend/codegen/KernelBuilder.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc {

class CpuKernelBuilder final : public KernelBuilder {
public:
  /// Starts the function `name` (a GeneratedKernel) in `module`.
  CpuKernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const FusionStages &stages, const CpuIsa &target);
  /// Ends the function.
  void finish();

  mlir::OpBuilder &builder() override { return opBuilder; }
  mlir::Location loc() override { return location; }
  Lanes splat(mlir::Value number) override;
  Lanes constant(mlir::Type type, double number) override;
  void forRows(llvm::function_ref<void(mlir::Value row)> body) override;
  llvm::SmallVector<Lanes> forColumns(llvm::ArrayRef<RowReduction> reductions,
                                      llvm::function_ref<llvm::SmallVector<Lanes>()> body) override;
  Lanes columnIndex() override;
  Lanes loadLanes(Buffer buffer, mlir::Value rowOffset) override;
  void storeLanes(Buffer buffer, mlir::Value rowOffset, Lanes lanes) override;
  Lanes loadElement(Buffer buffer, mlir::Value offset) override;
  void storeElement(Buffer buffer, mlir::Value offset, Lanes lanes) override;
  void combinePartial(Buffer buffer, Combine combine, Lanes lanes, bool isLanes) override;

private:
  using Accumulators = llvm::SmallVector<mlir::Value>; ///< per reduction
  struct ColumnLoop;

  Lanes lanesOf(mlir::Value value) { return {&opBuilder, location, value}; }
  mlir::VectorType vectorOf(mlir::Type element);
  mlir::Value number(int64_t n);
  mlir::Value address(Buffer buffer, mlir::Value offset);
  void runOnce(ColumnLoop &loop, mlir::Value firstColumn, llvm::MutableArrayRef<mlir::Value> accumulators);
  void runLoop(ColumnLoop &loop, int64_t begin, int64_t end, unsigned unroll, Accumulators &accumulators);
  llvm::SmallVector<Lanes> wholeRow(ColumnLoop &loop);
  void partOfRow(ColumnLoop &loop);
  mlir::Value combineAcross(Combine combine, mlir::Value lanes);

  mlir::OpBuilder opBuilder;
  mlir::Location location;
  const FusionStages &stages;
  const CpuIsa &target;
  llvm::SmallVector<mlir::Value> pointers; ///< of the operands
  mlir::Value rowBegin, rowEnd, colBegin, colEnd;
  mlir::Value row, isFirstRow; ///< inside forRows; whether it is the task's first
  mlir::Value column;          ///< inside forColumns: that of the first lane
  mlir::Value mask;            ///< inside forColumns: lanes that exist; null when all do
};

} // namespace llmc
