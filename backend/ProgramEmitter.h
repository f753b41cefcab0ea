// Launches and value ranges of programs of a plan; of those for GPUs also the kernels that they need.
#pragma once

#include "backend/PlanEmitter.h"
#include "backend/codegen/GpuCode.h"

namespace llmc {

/// Emits a program in plan form. A generated launch's `entry` is the fusion's index in `fusions`.
mlir::FailureOr<Program> emitProgram(ProgramOp program, const llvm::DenseMap<mlir::Operation *, int64_t> &fusions);

/// Emits all programs of a module, whose fusions are gathered: what the launches' `entry` refers to.
mlir::FailureOr<std::vector<Program>> emitPrograms(mlir::ModuleOp module, llvm::SmallVectorImpl<FusionOp> &fusions);

/// Programs for GPUs whose kernels are still to be compiled: the launches' `entry` refers to `sources`.
struct GpuPrograms {
  std::vector<Program> programs;
  std::vector<GpuSource> sources;
};

/// Emits the programs of a module in plan form for GPUs. Fails with an error on what has no kernel there. The sources
/// refer to the module's ops.
mlir::FailureOr<GpuPrograms> emitGpuPrograms(mlir::ModuleOp module);

/// Puts the code of a target behind what is there.
void appendCode(EmittedPlan &emitted, TargetPrograms &target, llvm::ArrayRef<std::byte> bytes);

} // namespace llmc
