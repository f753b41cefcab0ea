// What a core could do: a loop of independent multiply-adds that touches no memory, to hold kernels against on a
// machine whose clock and neighbours change.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// Runs `rounds` rounds of FMAs (f32) or bf16 dot products (bf16, where the CPU has them, else FMAs) on the calling
/// thread, in the widest vectors it has; returns their FLOPs.
double runMultiplyLoop(ElementType type, int64_t rounds);

} // namespace llmc
