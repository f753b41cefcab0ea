// Launches and value ranges of one program of a plan.
#pragma once

#include "backend/PlanEmitter.h"

namespace llmc {

/// Emits a program in plan form. A generated launch's `entry` is the fusion's index in `fusions`.
mlir::FailureOr<Program> emitProgram(ProgramOp program, const llvm::DenseMap<mlir::Operation *, int64_t> &fusions);

/// Emits all programs of a module, whose fusions are gathered: what the launches' `entry` refers to.
mlir::FailureOr<std::vector<Program>> emitPrograms(mlir::ModuleOp module, llvm::SmallVectorImpl<FusionOp> &fusions);

/// Puts the code of a target behind what is there.
void appendCode(EmittedPlan &emitted, TargetPrograms &target, llvm::ArrayRef<std::byte> bytes);

} // namespace llmc
