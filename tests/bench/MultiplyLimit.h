// What the cores could do: a loop of independent multiply-adds that touches no memory, to hold kernels against on a
// machine whose clock and neighbours change.
#pragma once

#include "runtime/Plan.h"

namespace llmc::test {

/// Runs FMAs (f32) or bf16 dot products (bf16, where the CPU has them, else FMAs) on the calling thread for a fifth
/// of a millisecond; returns their FLOPs.
double runMultiplyLimit(ElementType type);

} // namespace llmc::test
