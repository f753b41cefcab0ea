// Kernels on GPUs: a block of threads works on one task (GpuGeometry.h says how they share it), lanes are the elements
// of one 128-bit access of a thread. Row reductions go through shuffles, and through shared memory where a row is the
// whole block's.
#pragma once

#include "backend/codegen/GpuGeometry.h"
#include "backend/codegen/KernelBuilder.h"

#include "mlir/IR/BuiltinOps.h"

namespace llmc {

class GpuKernelBuilder final : public KernelBuilder {
public:
  /// Starts the kernel `name` in `module`; its shared variables begin with that name.
  GpuKernelBuilder(mlir::ModuleOp module, llvm::StringRef name, const FusionStages &stages,
                   const GpuGeometry &geometry);
  /// Ends the kernel.
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
  using Values = llvm::SmallVector<mlir::Value>;
  struct ColumnLoop {
    llvm::ArrayRef<RowReduction> reductions;
    llvm::function_ref<llvm::SmallVector<Lanes>()> body;
  };
  /// A result that is a column reduction, summed up in shared memory: (rowsAtOnce, columns of a task).
  struct Partial {
    Buffer buffer;
    Combine combine;
    mlir::Value shared;
  };

  Lanes lanesOf(mlir::Value value) { return {&opBuilder, location, value}; }
  mlir::Type lanesType(mlir::Type element);
  mlir::Value number(int64_t n);
  mlir::Value number32(int64_t n);
  template <typename Op> mlir::Value apply(mlir::Value a, mlir::Value b) {
    return opBuilder.create<Op>(location, a, b);
  }
  mlir::Value less(mlir::Value a, mlir::Value b);
  mlir::Value elementOf(mlir::Value lanes, int64_t i);
  mlir::Value at(mlir::Value pointer, mlir::Type element, mlir::Value offset);
  mlir::Value address(Buffer buffer, mlir::Value offset);
  mlir::Value sharedVariable(const llvm::Twine &suffix, mlir::Type element, int64_t size);
  void guarded(mlir::Value condition, llvm::function_ref<void()> body);
  void barrier();

  mlir::Value threadColumn();
  void runOnce(ColumnLoop &loop, mlir::Value firstColumn, Values &accumulators);
  void runChunk(ColumnLoop &loop, int64_t chunk, bool isWhole, Values &accumulators);
  void runLoop(ColumnLoop &loop, mlir::Value begin, mlir::Value end, int64_t unroll, Values &accumulators);

  mlir::Value combineWithin(Combine combine, mlir::Value lanes);
  mlir::Value exchange(mlir::Value value, int64_t distance);
  mlir::Value combineGroup(Combine combine, mlir::Value value, int64_t size);
  llvm::SmallVector<Lanes> combineAcross(llvm::ArrayRef<RowReduction> reductions, const Values &values);

  int64_t taskColumns() const;
  void startPartials();
  void finishPartials();
  mlir::Value partialSlot(mlir::Value ofColumn);
  Lanes loadShared(const Partial &partial, mlir::Value slot);
  void storeShared(const Partial &partial, mlir::Value slot, Lanes lanes);
  mlir::Value partialOffset();

  mlir::OpBuilder opBuilder;
  mlir::ModuleOp module;
  std::string name;
  mlir::Location location;
  const FusionStages &stages;
  const GpuGeometry &geometry;
  llvm::SmallVector<mlir::Value> pointers; ///< of the operands
  mlir::Value rowBegin, colBegin, colEnd;
  mlir::Value group, member; ///< the thread's group and its place there
  mlir::Value members;       ///< i32: the lanes of the warp that share a row, as shuffles name them
  llvm::SmallVector<Partial> partials;
  unsigned numExchanges = 0;
  mlir::Value row;    ///< inside forRows
  mlir::Value column; ///< inside forColumns: that of the first lane
};

} // namespace llmc
