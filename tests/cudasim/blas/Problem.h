// One contraction as cublasLt describes it, D = epilogue(alpha op(A) op(B) + beta C), in plain numbers; and the rules
// that the real library states but does not check when the descriptors are made.
#pragma once

#include "tests/cudasim/driver/Simulator.h"

#include <cublasLt.h>

namespace llmc::cudasim {

/// A matrix's layout, as its descriptor says.
struct MatrixLayout {
  cudaDataType_t type = CUDA_R_32F;
  uint64_t rows = 0;
  uint64_t cols = 0;
  int64_t ld = 0;
  /// As numbers, here and below: an attribute may hold one that its enumeration does not know.
  int32_t order = CUBLASLT_ORDER_COL;
  int32_t batchCount = 1;
  int64_t batchStride = 0;

  uint64_t elementBytes() const { return type == CUDA_R_32F ? 4 : 2; }
  bool isColumnMajor() const { return order == CUBLASLT_ORDER_COL; }
  /// Elements from one (row, column) of a batch to the matrix's begin.
  uint64_t offset(uint64_t row, uint64_t col, uint64_t batch = 0) const {
    return batch * batchStride + (isColumnMajor() ? row + col * ld : row * ld + col);
  }
  bool operator==(const MatrixLayout &) const = default;
};

struct MatmulOperation {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType_t scale = CUDA_R_32F;
  int32_t transA = CUBLAS_OP_N;
  int32_t transB = CUBLAS_OP_N;
  int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  uint64_t bias = 0;
  /// -1: as D.
  int32_t biasType = -1;
  uint64_t aux = 0;
  int64_t auxLd = 0;
  int32_t auxType = -1;
  int32_t smCountTarget = 0;

  bool has(int bit) const { return (epilogue & bit) != 0; }
  /// The epilogue adds, or writes, a vector at `bias`.
  bool addsBias() const { return has(CUBLASLT_EPILOGUE_BIAS); }
  bool writesBiasGradient() const {
    return has(16) || epilogue == CUBLASLT_EPILOGUE_BGRADA || epilogue == CUBLASLT_EPILOGUE_BGRADB;
  }
  bool usesBias() const { return addsBias() || writesBiasGradient(); }
  bool usesAux() const { return has(128); }
  bool isGelu() const { return has(32); }
  bool isGeluGradient() const { return has(64); }
  /// Pointers and the SM target may change between an algorithm's choice and its use.
  bool sameKind(const MatmulOperation &other) const;
};

struct MatmulPreference {
  uint64_t maxWorkspaceBytes = 0;
  /// Of A, B, C, D; the library's default.
  std::array<uint32_t, 4> alignments{256, 256, 256, 256};
};

struct MatmulProblem {
  MatmulOperation operation;
  MatrixLayout a, b, c, d;
  uint64_t m() const { return d.rows; }
  uint64_t n() const { return d.cols; }
  uint64_t k() const { return operation.transA == CUBLAS_OP_N ? a.cols : a.rows; }
};

struct MatmulPointers {
  uint64_t a = 0, b = 0, c = 0, d = 0;
  float alpha = 1, beta = 0;
};

/// What is wrong with the shapes, types and epilogue, or nothing.
std::string problemOf(const MatmulProblem &problem);
/// What is wrong with the addresses for an algorithm that was chosen for these alignments, or nothing.
std::string problemOf(const MatmulProblem &problem, const MatmulPointers &pointers,
                      const std::array<uint32_t, 4> &alignments);

/// Computes on the host, after looking at every range that is read or written.
std::optional<Fault> runMatmul(Simulator &sim, const MatmulProblem &problem, const MatmulPointers &pointers,
                               uint64_t workspace, uint64_t workspaceBytes, const LaunchOrder &order,
                               const LiveRanges *live);

} // namespace llmc::cudasim
