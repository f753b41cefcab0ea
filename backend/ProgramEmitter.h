// Launches and value ranges of one program of a plan.
#pragma once

#include "backend/PlanEmitter.h"

namespace llmc {

/// Emits a program in plan form. A generated launch's `entry` is the fusion's index in `fusions`.
mlir::FailureOr<Program> emitProgram(ProgramOp program, const llvm::DenseMap<mlir::Operation *, int64_t> &fusions);

} // namespace llmc
