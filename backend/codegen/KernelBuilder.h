// What the description of a kernel (EmitKernel) needs from a target: loops, and numbers in and out of buffers. The CPU
// builder makes lanes vectors; a GPU builder makes them threads. Offsets are i64 values that count elements of a
// buffer.
#pragma once

#include "backend/codegen/FusionStages.h"

namespace llmc {

/// One of a kernel's operands and what is stored there.
struct Buffer {
  unsigned operand;
  mlir::Type storage; ///< f32, bf16, i64, i32, i1 (one byte)
};

/// What is combined over the columns of a row.
struct RowReduction {
  Combine combine;
  mlir::Type type; ///< compute type
};

class KernelBuilder {
public:
  virtual ~KernelBuilder() = default;
  virtual mlir::OpBuilder &builder() = 0;
  virtual mlir::Location loc() = 0;

  /// The same i64 in every lane.
  virtual Lanes splat(mlir::Value number) = 0;
  /// One number of compute type `type` in every lane.
  virtual Lanes constant(mlir::Type type, double number) = 0;

  /// Runs `body` once for each row of the task.
  virtual void forRows(llvm::function_ref<void(mlir::Value row)> body) = 0;
  /// Runs `body` on all columns of the task, lanes by lanes, and combines what it returns over them: one number per
  /// reduction, in every lane. `body` may be emitted several times.
  virtual llvm::SmallVector<Lanes> forColumns(llvm::ArrayRef<RowReduction> reductions,
                                              llvm::function_ref<llvm::SmallVector<Lanes>()> body) = 0;
  /// Inside forColumns: the columns of the lanes, in i64.
  virtual Lanes columnIndex() = 0;

  /// Inside forColumns: the elements at `rowOffset` + columns.
  virtual Lanes loadLanes(Buffer buffer, mlir::Value rowOffset) = 0;
  virtual void storeLanes(Buffer buffer, mlir::Value rowOffset, Lanes lanes) = 0;
  /// One element, the same in every lane.
  virtual Lanes loadElement(Buffer buffer, mlir::Value offset) = 0;
  virtual void storeElement(Buffer buffer, mlir::Value offset, Lanes lanes) = 0;
  /// Inside forRows: combines the row's lanes with what the task's rows before it gave, for the buffer's row of partial
  /// results that belongs to the task. `isLanes`: inside forColumns; else the space has one column.
  virtual void combinePartial(Buffer buffer, Combine combine, Lanes lanes, bool isLanes) = 0;
};

/// The neutral number of a reduction in a compute type.
double neutralNumber(Combine combine, mlir::Type type);
/// Two numbers combined.
Lanes combineLanes(Combine combine, Lanes a, Lanes b);

/// Emits the kernel of a fusion.
void emitKernel(const FusionStages &stages, KernelBuilder &kernel);

} // namespace llmc
