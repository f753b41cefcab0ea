// Descriptors and the two calls.
#include "tests/cudasim/blas/BlasBench.h"
#include "tests/cudasim/Float16.h"

#include <stdexcept>

namespace llmc::cudasim {

BlasBench::BlasBench(const CudasimConfig &config) : DriverBench(config) {
  Result<std::unique_ptr<cuda::Blas>> loaded = cuda::Blas::load(LLMC_CUDASIM_BLAS);
  if (!loaded)
    throw std::runtime_error(loaded.error().message); // GoogleTest reports it as this test's failure
  blas = std::move(*loaded);
  EXPECT_EQ(blas->cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
}

cublasStatus_t BlasBench::run(const GemmCase &gemm, CUstream stream,
                              const std::function<void(cublasLtMatrixLayout_t *, cublasLtMatmulDesc_t)> &edit) {
  bool columns = gemm.order == CUBLASLT_ORDER_COL;
  uint64_t rows[] = {gemm.transA ? gemm.k : gemm.m, gemm.transB ? gemm.n : gemm.k, gemm.m};
  uint64_t cols[] = {gemm.transA ? gemm.m : gemm.k, gemm.transB ? gemm.k : gemm.n, gemm.n};
  cublasLtMatrixLayout_t layouts[3] = {};
  for (int i = 0; i < 3; ++i) {
    int64_t ld = static_cast<int64_t>(columns ? rows[i] : cols[i]) + gemm.extraLd;
    blas->cublasLtMatrixLayoutCreate(&layouts[i], i < 2 ? gemm.type : gemm.resultType, rows[i], cols[i], ld);
    set(layouts[i], CUBLASLT_MATRIX_LAYOUT_ORDER, gemm.order);
    set(layouts[i], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, gemm.batchCount);
    set(layouts[i], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
        ld * static_cast<int64_t>(columns ? cols[i] : rows[i]));
  }
  cublasLtMatmulDesc_t operation = nullptr;
  blas->cublasLtMatmulDescCreate(&operation, gemm.compute, CUDA_R_32F);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, gemm.transA);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, gemm.transB);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE, gemm.epilogue);
  set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, gemm.bias);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, gemm.aux);
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, gemm.auxLd);
  cublasLtMatmulPreference_t preference = nullptr;
  blas->cublasLtMatmulPreferenceCreate(&preference);
  blas->cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &gemm.workspaceBytes,
                                             8);
  for (int i = CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES; i <= CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES; ++i)
    blas->cublasLtMatmulPreferenceSetAttribute(preference, static_cast<cublasLtMatmulPreferenceAttributes_t>(i),
                                               &alignment, 4);
  if (edit)
    edit(layouts, operation);
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  cublasStatus_t status = blas->cublasLtMatmulAlgoGetHeuristic(handle, operation, layouts[0], layouts[1], layouts[2],
                                                               layouts[2], preference, 1, &found, &count);
  if (status == CUBLAS_STATUS_SUCCESS)
    status = blas->cublasLtMatmul(handle, operation, &gemm.alpha, reinterpret_cast<void *>(gemm.a), layouts[0],
                                  reinterpret_cast<void *>(gemm.b), layouts[1], &gemm.beta,
                                  reinterpret_cast<void *>(gemm.d), layouts[2], reinterpret_cast<void *>(gemm.d),
                                  layouts[2], &found.algo, reinterpret_cast<void *>(gemm.workspace),
                                  gemm.workspaceBytes, reinterpret_cast<cudaStream_t>(stream));
  words = problem();
  blas->cublasLtMatmulPreferenceDestroy(preference);
  blas->cublasLtMatmulDescDestroy(operation);
  for (cublasLtMatrixLayout_t layout : layouts)
    blas->cublasLtMatrixLayoutDestroy(layout);
  return status;
}

CUdeviceptr BlasBench::upload(const std::vector<float> &values, cudaDataType_t type) const {
  std::vector<uint16_t> halves;
  for (float value : values)
    halves.push_back(toBfloat(value).bits);
  bool isHalf = type == CUDA_R_16BF;
  size_t bytes = values.size() * (isHalf ? 2 : 4);
  CUdeviceptr address = allocate(bytes);
  const void *source = isHalf ? static_cast<const void *>(halves.data()) : values.data();
  ok(driver->cuMemcpyHtoDAsync(address, source, bytes, one));
  ok(driver->cuStreamSynchronize(one));
  return address;
}

std::vector<float> BlasBench::floats(CUdeviceptr src, size_t count, cudaDataType_t type) const {
  std::vector<float> values(count);
  std::vector<uint16_t> halves(count);
  ok(driver->cuCtxSynchronize());
  if (type == CUDA_R_32F) {
    ok(driver->cuMemcpyDtoH(values.data(), src, count * 4));
    return values;
  }
  ok(driver->cuMemcpyDtoH(halves.data(), src, count * 2));
  for (size_t i = 0; i < count; ++i)
    values[i] = toFloat(Bfloat{halves[i]});
  return values;
}

} // namespace llmc::cudasim
