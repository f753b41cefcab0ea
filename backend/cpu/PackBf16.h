// Rounding a matrix to bf16 in the layout a contraction reads: in blocks of pairs, or transposed. Needs AVX-512.
#pragma once

#include <cstddef>
#include <cstdint>

namespace llmc {

struct Bf16Packing {
  int64_t k, n;         ///< of the packed matrix
  bool isTransposed;    ///< src is (n, k)
  bool isF32;           ///< src is f32, else bf16
  bool isNative;        ///< f32 is rounded by AVX512-BF16, which takes subnormals for zero; else by integers
  bool isBlocked;       ///< dst is RhsLayout::blocked16x64x2, else row-major
  const std::byte *src; ///< row-major
  std::byte *dst;
};

/// Whether there is a kernel: everything but a row-major copy.
inline bool canPackBf16(const Bf16Packing &packing) { return packing.isBlocked || packing.isTransposed; }
/// Pieces of work, to be run in any order or at once.
int64_t numPieces(const Bf16Packing &packing);
/// Runs pieces [begin, end). The same bits however the pieces are dealt.
void packBf16(const Bf16Packing &packing, int64_t begin, int64_t end);

} // namespace llmc
