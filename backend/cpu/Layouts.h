// What CPUs make of the layouts of a matmul's right-hand side (weights).
#pragma once

#include "backend/cpu/CpuInfo.h"
#include "runtime/MatMulShape.h"

namespace llmc {

/// Elements of a packed (k, n) matrix, padding included.
inline int64_t packedElements(RhsLayout layout, int64_t k, int64_t n) {
  int64_t rowBlock = layout == RhsLayout::blocked16x64x2 ? 32 : 16;
  return layout == RhsLayout::plain ? k * n : (k + rowBlock - 1) / rowBlock * rowBlock * ((n + 63) / 64 * 64);
}

/// What a packed layout's elements are.
inline ElementType packedType(RhsLayout layout) {
  return layout == RhsLayout::blocked16x64x2 ? ElementType::bf16 : ElementType::f32;
}

/// The layout in which a level keeps what the plan calls `layout`: one plan's buffers serve all levels, and oneDNN
/// reads blocks only where it has kernels for them.
inline RhsLayout layoutAt(IsaLevel level, RhsLayout layout) {
  IsaLevel needed = layout == RhsLayout::blocked16x64x2 ? IsaLevel::v4Bf16 : IsaLevel::v4;
  return level >= needed ? layout : RhsLayout::plain;
}

} // namespace llmc
