// A remark that knows which program it speaks of: a plan has several, and what is decided in one is decided again in
// the next. The program's name travels as what is said of the location, where --remarks and --report find it.
#pragma once

#include "ir/Dialect.h"

#include "mlir/IR/Location.h"

namespace llmc {

/// Begins a remark on a place of a program: that of `op`, or the one it stands in. What follows starts with its kind,
/// "applied: ", "declined: " or "info: "; without one it tells of something done.
inline mlir::InFlightDiagnostic remarkAt(mlir::Location location, mlir::Operation *op) {
  auto program = llvm::dyn_cast<ProgramOp>(op);
  if (!program)
    program = op->getParentOfType<ProgramOp>();
  if (program)
    location = mlir::FusedLocWith<mlir::StringAttr>::get({location}, program.getSymNameAttr(), op->getContext());
  return mlir::emitRemark(location);
}

/// Begins a remark on an op.
inline mlir::InFlightDiagnostic remarkOn(mlir::Operation *op) { return remarkAt(op->getLoc(), op); }

/// The program that a remark's location speaks of; "" for one of the whole module.
inline llvm::StringRef programOfRemark(mlir::Location location) {
  auto fused = llvm::dyn_cast<mlir::FusedLocWith<mlir::StringAttr>>(location);
  return fused ? fused.getMetadata().getValue() : llvm::StringRef();
}

} // namespace llmc
