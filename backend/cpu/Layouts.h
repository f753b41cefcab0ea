// The layouts of a matmul's right-hand side (weights): the numbers of `rhsLayout` and `layout` in runtime/Kernels.def.
#pragma once

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

} // namespace llmc
