// One contraction on the simulated cublasLt, put together the way a backend does: layouts, operation, algorithm, call.
#pragma once

#include "backend/cuda/Blas.h"
#include "tests/cudasim/driver/DriverBench.h"

#include <functional>

namespace llmc::cudasim {

/// D (m, n) = op(A) (m, k) · op(B) (k, n), column-major, f32, packed, unless a test says otherwise.
struct GemmCase {
  uint64_t m = 5, n = 4, k = 3;
  cublasOperation_t transA = CUBLAS_OP_N, transB = CUBLAS_OP_N;
  cudaDataType_t type = CUDA_R_32F, resultType = CUDA_R_32F;
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  int32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  float alpha = 1, beta = 0;
  int64_t extraLd = 0;
  int32_t batchCount = 1;
  int32_t order = CUBLASLT_ORDER_COL;
  CUdeviceptr a = 0, b = 0, d = 0, bias = 0, aux = 0, workspace = 0;
  int64_t auxLd = 8;
  uint64_t workspaceBytes = 0;
};

class BlasBench : public DriverBench {
public:
  explicit BlasBench(const CudasimConfig &config = kPlainConfig);

  /// Makes the descriptors, lets `edit` spoil them, chooses and calls. The last status, and why in problem().
  cublasStatus_t run(const GemmCase &gemm, CUstream stream,
                     const std::function<void(cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t)> &edit = {});
  std::string problem() const { return reinterpret_cast<const char *(*)()>(blas->symbol("cudasimBlasProblem"))(); }

  /// Device memory with these floats, as f32 or rounded to bf16.
  CUdeviceptr upload(const std::vector<float> &values, cudaDataType_t type = CUDA_R_32F) const;
  std::vector<float> floats(CUdeviceptr src, size_t count, cudaDataType_t type = CUDA_R_32F) const;

  template <typename T> void set(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t what, T value) const {
    EXPECT_EQ(blas->cublasLtMatmulDescSetAttribute(operation, what, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }
  template <typename T> void set(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t what, T value) const {
    EXPECT_EQ(blas->cublasLtMatrixLayoutSetAttribute(layout, what, &value, sizeof value), CUBLAS_STATUS_SUCCESS);
  }

  std::unique_ptr<cuda::Blas> blas;
  cublasLtHandle_t handle = nullptr;
  /// problem() after the calls of the last run.
  std::string words;
  /// Asked of the heuristic, for A, B, C and D.
  uint32_t alignment = 16;
};

} // namespace llmc::cudasim
