// The layouts of a matmul's right-hand side (weights): the numbers of `rhsLayout` and `layout` in runtime/Kernels.def.
#pragma once

#include "backend/cpu/CpuInfo.h"
#include "runtime/Plan.h"

#include <cstdint>

namespace llmc {

enum class RhsLayout : int64_t {
  /// Row-major (k, n), or (n, k) when transposed.
  plain = 0,
  /// oneDNN's BA16a64b: [ceil(n / 64)][ceil(k / 16)][16][64], zero padded; f32, for matmuls with n > 48, on AVX-512.
  /// What oneDNN's `any` chooses for f32 there; measured 0 to 2 % faster than the best plain form.
  blocked16x64 = 1,
  /// oneDNN's BA16a64b2a: [ceil(n / 64)][ceil(k / 32)][16][64][2], zero padded; the same for bf16.
  blocked16x64x2 = 2,
};

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
