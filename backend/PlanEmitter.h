// A module in plan form becomes a runtime/Plan.h Plan: state, programs for each ISA level with their machine code, and
// the weights, which stay where they are (in the mapped model file) until the plan is written.
#pragma once

#include "backend/codegen/Codegen.h"
#include "backend/codegen/GpuModule.h"
#include "runtime/PlanWriter.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace llmc {

/// A plan with its payload. Weights refer into the module's attributes: the module must outlive it.
struct EmittedPlan {
  Plan plan;
  PlanPayload payload;
  std::vector<std::byte> code;                  ///< what payload.code refers to
  std::vector<std::vector<std::byte>> expanded; ///< weights that the module holds in a shorter form
};

/// Emits what verify-plannable passed, with code for each of the levels. Says nothing of where the model came from:
/// modelName, precision, optimizer, splice and payload.model are the caller's. Fails with an error on the op that
/// cannot be emitted.
mlir::FailureOr<EmittedPlan> emitPlan(mlir::ModuleOp module, llvm::ArrayRef<CpuIsa> isas);

/// Adds programs for GPUs to a plan: `module` is in plan form for them (PipelineOptions::isGpu) and of the same model
/// as what the plan was emitted from. Fails with an error on what has no kernel there, or where its state differs.
mlir::LogicalResult addGpuTarget(EmittedPlan &emitted, mlir::ModuleOp module, const GpuIsa &isa);

/// Adds the names of the ONNX nodes that an op came from, in order.
void collectNames(mlir::Location location, llvm::SetVector<llvm::StringRef> &names);
/// What people know an op by: the names of the ONNX nodes it came from, a few of them when there are many.
std::string nodeNames(mlir::Location location);

} // namespace llmc
