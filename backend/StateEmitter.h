// The state of a plan from a module in plan form.
#pragma once

#include "backend/PlanEmitter.h"

namespace llmc {

/// Fills plan.state and the sizes of its spaces, batch, sequence and vocabulary, and the payload's weights.
mlir::LogicalResult emitState(mlir::ModuleOp module, EmittedPlan &emitted);

/// A buffer of the plan from an attribute.
BufferRef bufferRef(BufferAttr buffer);
/// The buffer that plan-memory gave a value.
BufferRef bufferOf(mlir::Value value);

} // namespace llmc
