// What the simulated cublasLt refuses, and what it finds when it runs: each rule with a planted mistake.
#include "tests/cudasim/blas/BlasBench.h"

namespace llmc::cudasim {
namespace {

using testing::HasSubstr;

struct Mistake {
  const char *words;
  std::function<void(GemmCase &)> plant;
  std::function<void(BlasBench &, cublasLtMatrixLayout_t *, cublasLtMatmulDesc_t)> spoil = {};
};

GemmCase valid(const BlasBench &bench) {
  GemmCase gemm;
  gemm.a = bench.upload(std::vector<float>(64, 1));
  gemm.b = bench.upload(std::vector<float>(64, 1));
  gemm.bias = bench.upload(std::vector<float>(64, 1));
  gemm.aux = bench.upload(std::vector<float>(64, 1));
  gemm.d = bench.allocate();
  return gemm;
}

TEST(CudaSimBlasRules, eachMistakeIsRefusedInWords) {
  const Mistake mistakes[] = {
      {"A has leading dimension 4, at least 5 is needed", [](GemmCase &g) { g.extraLd = -1; }},
      {"A has element type 2", [](GemmCase &g) { g.type = CUDA_R_16F; }},
      {"A is empty", [](GemmCase &g) { g.m = 0; }},
      {"A has order 2", [](GemmCase &g) { g.order = CUBLASLT_ORDER_COL32; }},
      {"A has 0 batches", [](GemmCase &g) { g.batchCount = 0; }},
      {"TF32 computes on f32 only",
       [](GemmCase &g) { g.compute = CUBLAS_COMPUTE_32F_FAST_TF32, g.type = CUDA_R_16BF; }},
      {"f32 operands give an f32 result", [](GemmCase &g) { g.resultType = CUDA_R_16BF; }},
      {"compute type", [](GemmCase &g) { g.compute = CUBLAS_COMPUTE_64F; }},
      {"epilogue 9999", [](GemmCase &g) { g.epilogue = 9999; }},
      {"the epilogue's bias pointer is missing", [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_BIAS, g.bias = 0; }},
      {"the epilogue's bias pointer is missing",
       [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_BGRADB, g.bias = 0; }},
      {"auxiliary pointer is missing", [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_GELU_AUX, g.aux = 0; }},
      {"auxiliary pointer is missing or not aligned",
       [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_DGELU, g.aux += 4; }},
      {"auxiliary leading dimension is 5", [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_DGELU, g.auxLd = 5; }},
      {"the epilogue's bias has type 2", [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_BIAS; },
       [](BlasBench &bench, cublasLtMatrixLayout_t *, cublasLtMatmulDesc_t operation) {
         bench.set(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, CUDA_R_16F);
       }},
      {"an epilogue needs a column-major D",
       [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_BIAS, g.order = CUBLASLT_ORDER_ROW; }},
      {"an epilogue with several batches", [](GemmCase &g) { g.epilogue = CUBLASLT_EPILOGUE_BIAS, g.batchCount = 2; }},
      {"A is null", [](GemmCase &g) { g.a = 0; }},
      {"B is not aligned to 16 bytes", [](GemmCase &g) { g.b += 4; }},
      {"D is null", [](GemmCase &g) { g.d = 0; }},
      {"op(A) is 5x3, op(B) 2x4, D 5x4", [](GemmCase &) {},
       [](BlasBench &bench, cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t) {
         bench.blas->cublasLtMatrixLayoutDestroy(layouts[1]);
         bench.blas->cublasLtMatrixLayoutCreate(&layouts[1], CUDA_R_32F, 2, 4, 3);
       }},
      {"A and B have different types", [](GemmCase &) {},
       [](BlasBench &bench, cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t) {
         bench.blas->cublasLtMatrixLayoutDestroy(layouts[1]);
         bench.blas->cublasLtMatrixLayoutCreate(&layouts[1], CUDA_R_16BF, 3, 4, 3);
       }},
      {"different numbers of batches", [](GemmCase &g) { g.batchCount = 2; },
       [](BlasBench &bench, cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t) {
         bench.set(layouts[0], CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, int32_t(1));
       }},
      {"the batches of D overlap: stride 19", [](GemmCase &g) { g.batchCount = 2; },
       [](BlasBench &bench, cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t) {
         bench.set(layouts[2], CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, int64_t(19));
       }},
      {"a handle that does not exist", [](GemmCase &) {},
       [](BlasBench &bench, cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t) { layouts[1] = nullptr; }},
  };
  for (const Mistake &mistake : mistakes) {
    SCOPED_TRACE(mistake.words);
    BlasBench bench;
    GemmCase gemm = valid(bench);
    mistake.plant(gemm);
    cublasStatus_t status = bench.run(gemm, bench.one, [&](cublasLtMatrixLayout_t *layouts, cublasLtMatmulDesc_t op) {
      if (mistake.spoil)
        mistake.spoil(bench, layouts, op);
    });
    EXPECT_EQ(status, CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_THAT(bench.words, HasSubstr(mistake.words));
    EXPECT_THAT(bench.blas->check(status, "matmul").error().message,
                HasSubstr("matmul: CUBLAS_STATUS_INVALID_VALUE (7): "));
  }
}

TEST(CudaSimBlasRules, attributesHaveTheirSizes) {
  BlasBench bench;
  cublasLtMatmulDesc_t operation = nullptr;
  bench.blas->cublasLtMatmulDescCreate(&operation, CUBLAS_COMPUTE_32F, CUDA_R_32F);
  int64_t value = 1;
  EXPECT_EQ(bench.blas->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_TRANSA, &value, 8),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(bench.problem(), "an attribute of another size");
  EXPECT_EQ(bench.blas->cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &value, 1),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(bench.problem(), "an attribute that the simulator does not know");
}

TEST(CudaSimBlasRules, anAlgorithmFitsItsProblemOnly) {
  BlasBench bench;
  bench.alignment = 256;
  GemmCase gemm = valid(bench);
  gemm.a += 16;
  EXPECT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(bench.problem(), HasSubstr("A is not aligned to 256 bytes, as the algorithm was chosen for"));
}

TEST(CudaSimBlasRules, memoryIsCheckedWhenItRuns) {
  struct Case {
    const char *words;
    std::function<void(BlasBench &, GemmCase &)> plant;
  };
  const Case cases[] = {
      {"cublasLtMatmul, A: read of uninitialized memory",
       [](BlasBench &bench, GemmCase &g) { g.a = bench.allocate(); }},
      {"cublasLtMatmul, B: access out of bounds", [](BlasBench &bench, GemmCase &g) { g.b += 224; }},
      {"cublasLtMatmul, D: access out of bounds", [](BlasBench &bench, GemmCase &g) { g.d = bench.allocate(76); }},
      {"cublasLtMatmul, C: read of uninitialized memory", [](BlasBench &, GemmCase &g) { g.beta = 1; }},
      {"cublasLtMatmul, bias: access out of bounds",
       [](BlasBench &bench, GemmCase &g) { g.bias = bench.upload({1, 2, 3, 4}), g.epilogue = CUBLASLT_EPILOGUE_BIAS; }},
      {"cublasLtMatmul, workspace: access out of bounds",
       [](BlasBench &bench, GemmCase &g) { g.workspace = bench.allocate(64), g.workspaceBytes = 4096; }},
  };
  for (const Case &wrong : cases) {
    SCOPED_TRACE(wrong.words);
    BlasBench bench;
    GemmCase gemm = valid(bench);
    wrong.plant(bench, gemm);
    ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
    EXPECT_NE(bench.driver->cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_THAT(bench.lastFault(), HasSubstr(wrong.words));
  }
}

TEST(CudaSimBlasRules, orderIsCheckedInEverySchedule) {
  for (bool waits : {true, false})
    for (uint64_t seed = 0; seed < 8; ++seed) {
      CudasimConfig config = kPlainConfig;
      config.seed = seed;
      BlasBench bench(config);
      GemmCase gemm = valid(bench);
      CUdeviceptr produced = bench.allocate();
      CUevent made = bench.newEvent();
      bench.ok(bench.fill(bench.one, produced, 0x3f800000));
      bench.ok(bench.driver->cuEventRecord(made, bench.one));
      if (waits)
        bench.ok(bench.driver->cuStreamWaitEvent(bench.two, made, 0));
      gemm.a = produced;
      ASSERT_EQ(bench.run(gemm, bench.two), CUBLAS_STATUS_SUCCESS) << bench.problem();
      EXPECT_EQ(bench.driver->cuCtxSynchronize() == CUDA_SUCCESS, waits) << "seed " << seed;
    }
}

TEST(CudaSimBlasRules, oneWorkspaceForTwoStreamsIsARace) {
  BlasBench bench;
  GemmCase gemm = valid(bench), other = valid(bench);
  gemm.workspace = other.workspace = bench.allocate(4096);
  gemm.workspaceBytes = other.workspaceBytes = 4096;
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  ASSERT_EQ(bench.run(other, bench.two), CUBLAS_STATUS_SUCCESS) << bench.problem();
  EXPECT_EQ(bench.driver->cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
  EXPECT_THAT(bench.lastFault(), HasSubstr("cublasLtMatmul, workspace: race in global memory"));
}

TEST(CudaSimBlasRules, contractionsAreCaptured) {
  BlasBench bench;
  GemmCase gemm = valid(bench);
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  bench.ok(bench.driver->cuStreamBeginCapture(bench.one, CU_STREAM_CAPTURE_MODE_GLOBAL));
  ASSERT_EQ(bench.run(gemm, bench.one), CUBLAS_STATUS_SUCCESS) << bench.problem();
  bench.ok(bench.driver->cuStreamEndCapture(bench.one, &graph));
  bench.ok(bench.driver->cuGraphInstantiate(&exec, graph, 0));
  bench.ok(bench.driver->cuGraphLaunch(exec, bench.one));
  EXPECT_EQ(bench.floats(gemm.d, 1)[0], 3.0f);
}

} // namespace
} // namespace llmc::cudasim
