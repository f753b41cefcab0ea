// The integers of a matmul launch (Kernels.def) as every device reads them.
#pragma once

#include "runtime/KernelArguments.h"

namespace llmc {

/// The numbers of `rhsLayout` and `layout`: how a matmul's right-hand side (weights) lies in memory.
enum class RhsLayout : int64_t {
  /// Row-major (k, n), or (n, k) when transposed.
  plain = 0,
  /// oneDNN's BA16a64b: [ceil(n / 64)][ceil(k / 16)][16][64], zero padded; f32, for matmuls with n > 48, on AVX-512.
  /// What oneDNN's `any` chooses for f32 there; measured 0 to 2 % faster than the best plain form.
  blocked16x64 = 1,
  /// oneDNN's BA16a64b2a: [ceil(n / 64)][ceil(k / 32)][16][64][2], zero padded; the same for bf16.
  blocked16x64x2 = 2,
};

struct MatMulShape {
  int64_t batch, m, n, k;
  bool transposeLhs, transposeRhs;
  int64_t ldLhs, ldRhs, ldDst, lhsStride, rhsStride, dstStride;
  ElementType lhsType, rhsType, dstType;
  bool accumulate;
  RhsLayout rhsLayout;

  bool isF32() const {
    return lhsType == ElementType::f32 && rhsType == ElementType::f32 && dstType == ElementType::f32;
  }
};

inline MatMulShape readMatMulShape(const Launch &launch) {
  auto integer = [&](const char *name) { return integerArgument(launch, name); };
  auto type = [&](const char *name) { return typeArgument(launch, name); };
  return {.batch = integer("batch"),
          .m = integer("m"),
          .n = integer("n"),
          .k = integer("k"),
          .transposeLhs = integer("transposeLhs") != 0,
          .transposeRhs = integer("transposeRhs") != 0,
          .ldLhs = integer("ldLhs"),
          .ldRhs = integer("ldRhs"),
          .ldDst = integer("ldDst"),
          .lhsStride = integer("lhsStride"),
          .rhsStride = integer("rhsStride"),
          .dstStride = integer("dstStride"),
          .lhsType = type("lhsType"),
          .rhsType = type("rhsType"),
          .dstType = type("dstType"),
          .accumulate = integer("accumulate") != 0,
          .rhsLayout = static_cast<RhsLayout>(integer("rhsLayout"))};
}

/// A batch that shares its rhs is one taller product when its rows follow each other.
inline void foldBatch(MatMulShape &shape) {
  if (shape.batch == 1 || shape.rhsStride != 0 || shape.transposeLhs || shape.lhsStride != shape.m * shape.ldLhs ||
      shape.dstStride != shape.m * shape.ldDst)
    return;
  shape.m *= shape.batch;
  shape.batch = 1;
}

} // namespace llmc
