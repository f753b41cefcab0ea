// Sums of what several ranks hold, in f32 and in the order given, whatever the type in memory.
#pragma once

#include "runtime/Plan.h"

#include <span>

namespace llmc {

/// dst[i] = sources[0][i] + sources[1][i] + ..., `count` elements of f32 or bf16; bf16 is rounded once, to nearest
/// even. dst may be one of the sources.
void sumInto(std::byte *dst, std::span<const std::byte *const> sources, uint64_t count, ElementType type);

} // namespace llmc
