// Which op runs and which only looks: a view's result lies in its operand's memory, a launch is everything else that
// has a kernel. What the passes that place values and the emitter both need to know.
#pragma once

#include "mlir/IR/Operation.h"

namespace llmc {

/// Whether an op's result lies in its first operand's memory.
bool isView(mlir::Operation *op);
/// Whether an op is one launch.
bool isLaunch(mlir::Operation *op);
/// The value whose memory `value` lies in, behind any views: a result of a launch, a get, scalar or empty, or an
/// argument.
mlir::Value rootOf(mlir::Value value);

} // namespace llmc
