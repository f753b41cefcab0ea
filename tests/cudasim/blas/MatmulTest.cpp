// The simulated cublasLt against plain loops: transposes, types, layouts, batches, epilogues.
#include "tests/cudasim/blas/BlasBench.h"

#include <cmath>

namespace llmc::cudasim {
namespace {

std::vector<float> wave(size_t count, float phase) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = std::round(8 * std::sin(phase + 0.7f * static_cast<float>(i))) / 4; // few bits: exact in bf16 too
  return values;
}

/// op(A) op(B) of packed column-major matrices, (row, column) at row + column * m.
std::vector<double> expected(const GemmCase &g, const std::vector<float> &a, const std::vector<float> &b) {
  std::vector<double> result(g.m * g.n);
  for (uint64_t i = 0; i < g.m; ++i)
    for (uint64_t j = 0; j < g.n; ++j)
      for (uint64_t l = 0; l < g.k; ++l)
        result[i + j * g.m] +=
            double(g.transA ? a[l + i * g.k] : a[i + l * g.m]) * double(g.transB ? b[j + l * g.n] : b[l + j * g.k]);
  return result;
}

void expectNear(const std::vector<float> &found, const std::vector<double> &wanted, double relative = 1e-6) {
  ASSERT_EQ(found.size(), wanted.size());
  for (size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i], wanted[i], relative * (1 + std::fabs(wanted[i]))) << i;
}

TEST(CudaSimBlas, transposesAndTypes) {
  for (cublasOperation_t transA : {CUBLAS_OP_N, CUBLAS_OP_T})
    for (cublasOperation_t transB : {CUBLAS_OP_N, CUBLAS_OP_T})
      for (cudaDataType_t type : {CUDA_R_32F, CUDA_R_16BF}) {
        BlasBench bench;
        GemmCase gemm{.transA = transA, .transB = transB, .type = type, .resultType = type};
        std::vector<float> a = wave(gemm.m * gemm.k, 0), b = wave(gemm.k * gemm.n, 1);
        gemm.a = bench.upload(a, type);
        gemm.b = bench.upload(b, type);
        gemm.d = bench.allocate();
        ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
        expectNear(bench.floats(gemm.d, gemm.m * gemm.n, type), expected(gemm, a, b), type == CUDA_R_32F ? 1e-6 : 4e-3);
      }
}

TEST(CudaSimBlas, scalarsOntoTheOldValue) {
  BlasBench bench;
  GemmCase gemm{.alpha = 2, .beta = -1};
  std::vector<float> a = wave(15, 0), b = wave(12, 1), old = wave(20, 2);
  gemm.a = bench.upload(a);
  gemm.b = bench.upload(b);
  gemm.d = bench.upload(old);
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  std::vector<double> wanted = expected(gemm, a, b);
  for (size_t i = 0; i < wanted.size(); ++i)
    wanted[i] = 2 * wanted[i] - old[i];
  expectNear(bench.floats(gemm.d, 20), wanted);
}

TEST(CudaSimBlas, rowMajorBatchesAreTransposedColumnMajorOnes) {
  BlasBench bench;
  GemmCase gemm{.batchCount = 3, .order = CUBLASLT_ORDER_ROW};
  std::vector<float> a = wave(3 * 15, 0), b = wave(3 * 12, 1);
  gemm.a = bench.upload(a);
  gemm.b = bench.upload(b);
  gemm.d = bench.allocate();
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  std::vector<double> wanted(3 * 20);
  for (int batch = 0; batch < 3; ++batch)
    for (int i = 0; i < 5; ++i)
      for (int j = 0; j < 4; ++j)
        for (int l = 0; l < 3; ++l)
          wanted[batch * 20 + i * 4 + j] += double(a[batch * 15 + i * 3 + l]) * b[batch * 12 + l * 4 + j];
  expectNear(bench.floats(gemm.d, 60), wanted);
}

TEST(CudaSimBlas, tf32DropsThirteenBits) {
  BlasBench bench;
  GemmCase gemm{.m = 1, .n = 1, .k = 1, .compute = CUBLAS_COMPUTE_32F_FAST_TF32};
  gemm.a = bench.upload({1 + 0x1p-12f});
  gemm.b = bench.upload({1});
  gemm.d = bench.allocate();
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  EXPECT_EQ(bench.floats(gemm.d, 1)[0], 1.0f);
}

double gelu(double x) { return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x))); }

TEST(CudaSimBlas, biasAndGeluWithItsInput) {
  BlasBench bench;
  GemmCase gemm{.epilogue = CUBLASLT_EPILOGUE_GELU_AUX_BIAS};
  std::vector<float> a = wave(15, 0), b = wave(12, 1), bias = wave(5, 2);
  gemm.a = bench.upload(a);
  gemm.b = bench.upload(b);
  gemm.bias = bench.upload(bias);
  gemm.aux = bench.upload(std::vector<float>(8 * 4, -9)); // padding to eight rows stays as it is
  gemm.d = bench.allocate();
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  std::vector<double> before = expected(gemm, a, b), after(20), aux(32, -9);
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 5; ++i) {
      aux[j * 8 + i] = before[j * 5 + i] + bias[i];
      after[j * 5 + i] = gelu(aux[j * 8 + i]);
    }
  expectNear(bench.floats(gemm.d, 20), after);
  expectNear(bench.floats(gemm.aux, 32), aux);
  gemm.epilogue = CUBLASLT_EPILOGUE_BIAS;
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  for (size_t i = 0; i < before.size(); ++i)
    before[i] += bias[i % 5];
  expectNear(bench.floats(gemm.d, 20), before);
}

TEST(CudaSimBlas, geluGradientWithBiasGradient) {
  BlasBench bench;
  GemmCase gemm{.epilogue = CUBLASLT_EPILOGUE_DGELU_BGRAD};
  std::vector<float> a = wave(15, 0), b = wave(12, 1), aux = wave(32, 2);
  gemm.a = bench.upload(a);
  gemm.b = bench.upload(b);
  gemm.aux = bench.upload(aux);
  gemm.bias = bench.allocate(20);
  gemm.d = bench.allocate();
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  std::vector<double> wanted = expected(gemm, a, b), sums(5);
  for (int j = 0; j < 4; ++j)
    for (int i = 0; i < 5; ++i) {
      double x = aux[j * 8 + i];
      wanted[j * 5 + i] *= (gelu(x + 1e-6) - gelu(x - 1e-6)) / 2e-6;
      sums[i] += wanted[j * 5 + i];
    }
  expectNear(bench.floats(gemm.d, 20), wanted, 1e-5);
  expectNear(bench.floats(gemm.bias, 5), sums, 1e-5);
}

TEST(CudaSimBlas, gradientsOfABiasFromAnOperand) {
  for (cublasLtEpilogue_t epilogue : {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
    BlasBench bench;
    bool ofA = epilogue == CUBLASLT_EPILOGUE_BGRADA;
    GemmCase gemm{.transB = CUBLAS_OP_T, .epilogue = epilogue};
    std::vector<float> a = wave(15, 0), b = wave(12, 1);
    gemm.a = bench.upload(a);
    gemm.b = bench.upload(b);
    gemm.bias = bench.allocate(20);
    gemm.d = bench.allocate();
    ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
    expectNear(bench.floats(gemm.d, 20), expected(gemm, a, b));
    std::vector<double> sums(ofA ? 5 : 4);
    for (size_t i = 0; i < sums.size(); ++i)
      for (int l = 0; l < 3; ++l)
        sums[i] += ofA ? a[i + l * 5] : b[i + l * 4];
    expectNear(bench.floats(gemm.bias, sums.size()), sums);
  }
}

} // namespace
} // namespace llmc::cudasim
