// The math functions that no instruction computes, as arithmetic on lanes: exp, log, tanh, erf, sin, cos on f32, and
// integer division that cannot trap. No call to a library remains in generated code.
#pragma once

#include "mlir/IR/Operation.h"

namespace llmc {

/// Replaces every such op under `root`. f32 results are within 3 units in the last place of the true value
/// (tests/backend/codegen holds them to that), subnormals, infinities and NaN included; sin and cos for |x| < 2^50.
/// `isAvx512`: lanes fill a register of AVX-512, which
/// has an instruction that multiplies by a power of two.
void expandMath(mlir::Operation *root, bool isAvx512);

} // namespace llmc
