// A launch's layouts are read and checked, described to cublasLt, and an algorithm asked for once. A bias is added by
// the library's epilogue, which wants it in the result's type: for bf16 a small kernel rounds it first.
#include "backend/cuda/MatMul.h"

#include "runtime/MatMulShape.h"

#include <fmt/format.h>

namespace llmc::cuda {

/// What cuBLAS recommends from Hopper on.
static constexpr uint64_t kWorkspaceBytes = 32 << 20;

/// dst[i] = src[i] rounded to bf16, a thread each.
static constexpr const char *kRoundingCode = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry roundBias(.param .u64 src, .param .u64 dst, .param .u32 count) {
  .reg .pred %p; .reg .b16 %h; .reg .f32 %f; .reg .b32 %r<5>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [src]; ld.param.u64 %d1, [dst]; ld.param.u32 %r0, [count];
  cvta.to.global.u64 %d0, %d0; cvta.to.global.u64 %d1, %d1;
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.s32 %r4, %r1, %r2, %r3;
  setp.ge.u32 %p, %r4, %r0;
  @%p bra DONE;
  mul.wide.u32 %d2, %r4, 4; add.s64 %d3, %d0, %d2; ld.global.f32 %f, [%d3];
  cvt.rn.bf16.f32 %h, %f;
  mul.wide.u32 %d4, %r4, 2; add.s64 %d5, %d1, %d4; st.global.b16 [%d5], %h;
DONE:
  ret;
}
)";
static constexpr uint32_t kRoundingBlock = 256;

namespace {

/// A bias to be rounded before the product.
struct Rounding {
  CUfunction function = nullptr;
  CUdeviceptr src = 0;
  DeviceMemory dst;
  uint32_t count = 0;
};

class MatMulKernel : public CudaKernel {
public:
  MatMulKernel(const Context &context, const Blas &blas, cublasLtHandle_t handle)
      : context(context), blas(blas), handle(handle) {}
  ~MatMulKernel() override {
    for (cublasLtMatrixLayout_t layout : layouts)
      if (layout)
        blas.cublasLtMatrixLayoutDestroy(layout);
    if (operation)
      blas.cublasLtMatmulDescDestroy(operation);
  }

  Status submit(CUstream stream) override {
    if (rounding.function)
      LLMC_RETURN_IF_ERROR(roundBias(stream));
    float alpha = 1;
    auto at = [](CUdeviceptr address) { return reinterpret_cast<void *>(address); };
    return blas.check(blas.cublasLtMatmul(handle, operation, &alpha, at(rhs), layouts[0], at(lhs), layouts[1], &beta,
                                          at(dst), layouts[2], at(dst), layouts[2], &algorithm, at(workspace),
                                          workspaceBytes, reinterpret_cast<cudaStream_t>(stream)),
                      "cublasLtMatmul");
  }

  const Context &context;
  const Blas &blas;
  cublasLtHandle_t handle;
  std::array<cublasLtMatrixLayout_t, 3> layouts{}; ///< rhs', lhs', dst'
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  CUdeviceptr lhs = 0, rhs = 0, dst = 0, workspace = 0;
  uint64_t workspaceBytes = 0;
  float beta = 0;
  Rounding rounding;

private:
  Status roundBias(CUstream stream) {
    CUdeviceptr to = rounding.dst.address();
    void *arguments[] = {&rounding.src, &to, &rounding.count};
    CUlaunchConfig config{};
    config.gridDimX = (rounding.count + kRoundingBlock - 1) / kRoundingBlock;
    config.blockDimX = kRoundingBlock;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    return context.check(context.driver().cuLaunchKernelEx(&config, rounding.function, arguments, nullptr),
                         "rounding the bias");
  }
};

} // namespace

/// Fails unless a matrix of rows x columns, `ld` apart, `batch` times `stride` apart, lies in its operand.
static Status checkMatrix(const Launch &launch, const char *name, std::array<int64_t, 2> rowsAndColumns, int64_t ld,
                          std::array<int64_t, 2> batchAndStride, ElementType type) {
  auto [rows, columns] = rowsAndColumns;
  auto [batch, stride] = batchAndStride;
  if (ld < columns)
    return Error{fmt::format("{} has rows of {} elements, {} apart", name, columns, ld)};
  __int128 last = __int128(batch - 1) * stride + __int128(rows - 1) * ld + columns - 1;
  uint64_t bytes = operandArgument(launch, name).bytes;
  if (last >= static_cast<__int128>(bytes / elementBytes(type)))
    return Error{fmt::format("{} holds {} bytes, element {} of {} is outside", name, bytes, static_cast<int64_t>(last),
                             elementTypeName(type))};
  return {};
}

static Status checkSizes(const Launch &launch, const MatMulShape &shape) {
  constexpr int64_t kMost = int64_t(1) << 40; // keeps every product of two sizes inside 128 bits
  for (const char *name : {"batch", "m", "n", "k", "ldLhs", "ldRhs", "ldDst", "lhsStride", "rhsStride", "dstStride"}) {
    int64_t value = integerArgument(launch, name);
    if (value < (std::string_view(name).ends_with("Stride") ? 0 : 1) || value > kMost)
      return Error{fmt::format("{} is {}", name, value)};
  }
  if (shape.batch > 1 && shape.dstStride < (shape.m - 1) * shape.ldDst + shape.n)
    return Error{fmt::format("the batches of dst overlap: {} elements apart", shape.dstStride)};
  if (shape.batch > INT32_MAX)
    return Error{fmt::format("batch is {}", shape.batch)};
  return {};
}

static Status checkShape(const Launch &launch, const MatMulShape &shape) {
  LLMC_RETURN_IF_ERROR(checkSizes(launch, shape));
  auto isKnown = [](ElementType type) { return type == ElementType::f32 || type == ElementType::bf16; };
  if (!isKnown(shape.lhsType) || shape.lhsType != shape.rhsType || !isKnown(shape.dstType) ||
      (shape.lhsType == ElementType::f32 && shape.dstType != ElementType::f32))
    return Error{"the operands must both be f32, for a result in f32, or both bf16, for f32 or bf16"};
  if (shape.rhsLayout != RhsLayout::plain)
    return Error{
        fmt::format("layout {} of rhs: a GPU reads row-major matrices", static_cast<int64_t>(shape.rhsLayout))};
  auto dims = [](bool transposed, int64_t rows, int64_t columns) {
    return transposed ? std::array{columns, rows} : std::array{rows, columns};
  };
  LLMC_RETURN_IF_ERROR(checkMatrix(launch, "lhs", dims(shape.transposeLhs, shape.m, shape.k), shape.ldLhs,
                                   {shape.batch, shape.lhsStride}, shape.lhsType));
  LLMC_RETURN_IF_ERROR(checkMatrix(launch, "rhs", dims(shape.transposeRhs, shape.k, shape.n), shape.ldRhs,
                                   {shape.batch, shape.rhsStride}, shape.rhsType));
  LLMC_RETURN_IF_ERROR(
      checkMatrix(launch, "dst", {shape.m, shape.n}, shape.ldDst, {shape.batch, shape.dstStride}, shape.dstType));
  const BufferRef &bias = operandArgument(launch, "bias");
  if (bias.space != Space::none && bias.bytes / sizeof(float) < static_cast<uint64_t>(shape.n))
    return Error{fmt::format("bias holds {} bytes, {} elements of f32 are needed", bias.bytes, shape.n)};
  return {};
}

static cudaDataType_t dataType(ElementType type) { return type == ElementType::f32 ? CUDA_R_32F : CUDA_R_16BF; }

/// The largest power of two, up to cublasLt's own default, that an address is a multiple of.
static uint32_t alignmentOf(CUdeviceptr address) {
  return static_cast<uint32_t>(std::min<CUdeviceptr>(address & -address, 256));
}

namespace {

/// Describes one launch to cublasLt, step by step.
class Description {
public:
  Description(const Blas &blas, MatMulKernel &kernel, const MatMulShape &shape)
      : blas(blas), kernel(kernel), shape(shape) {}

  Status describe(bool allowTf32) {
    // Row-major (rows, columns) is column-major (columns, rows).
    auto dims = [](bool transposed, int64_t rows, int64_t columns) {
      return transposed ? std::array{rows, columns} : std::array{columns, rows};
    };
    LLMC_RETURN_IF_ERROR(
        addLayout(0, shape.rhsType, dims(shape.transposeRhs, shape.k, shape.n), shape.ldRhs, shape.rhsStride));
    LLMC_RETURN_IF_ERROR(
        addLayout(1, shape.lhsType, dims(shape.transposeLhs, shape.m, shape.k), shape.ldLhs, shape.lhsStride));
    LLMC_RETURN_IF_ERROR(addLayout(2, shape.dstType, {shape.n, shape.m}, shape.ldDst, shape.dstStride));
    bool fast = allowTf32 && shape.lhsType == ElementType::f32;
    LLMC_RETURN_IF_ERROR(
        blas.check(blas.cublasLtMatmulDescCreate(&kernel.operation,
                                                 fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F),
                   "describing a product"));
    LLMC_RETURN_IF_ERROR(
        set<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSA, shape.transposeRhs ? CUBLAS_OP_T : CUBLAS_OP_N));
    return set<cublasOperation_t>(CUBLASLT_MATMUL_DESC_TRANSB, shape.transposeLhs ? CUBLAS_OP_T : CUBLAS_OP_N);
  }

  /// A bias of the result's type.
  Status addBias(CUdeviceptr bias) {
    LLMC_RETURN_IF_ERROR(set<int32_t>(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS));
    LLMC_RETURN_IF_ERROR(set<int32_t>(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, dataType(shape.dstType)));
    return set<CUdeviceptr>(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
  }

  Status choose() {
    cublasLtMatmulPreference_t preference = nullptr;
    LLMC_RETURN_IF_ERROR(blas.check(blas.cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm"));
    Status chosen = chooseBy(preference);
    blas.cublasLtMatmulPreferenceDestroy(preference);
    return chosen;
  }

private:
  Status addLayout(size_t index, ElementType type, std::array<int64_t, 2> dims, int64_t ld, int64_t stride) {
    cublasLtMatrixLayout_t &layout = kernel.layouts[index];
    LLMC_RETURN_IF_ERROR(
        blas.check(blas.cublasLtMatrixLayoutCreate(&layout, dataType(type), static_cast<uint64_t>(dims[0]),
                                                   static_cast<uint64_t>(dims[1]), ld),
                   "describing a matrix"));
    if (shape.batch == 1)
      return {};
    auto count = static_cast<int32_t>(shape.batch);
    LLMC_RETURN_IF_ERROR(blas.check(
        blas.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
        "describing a batch"));
    return blas.check(blas.cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                                            &stride, sizeof stride),
                      "describing a batch");
  }

  template <typename T> Status set(cublasLtMatmulDescAttributes_t what, T value) {
    return blas.check(blas.cublasLtMatmulDescSetAttribute(kernel.operation, what, &value, sizeof value),
                      "describing a product");
  }

  template <typename T>
  Status prefer(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t what, T value) {
    return blas.check(blas.cublasLtMatmulPreferenceSetAttribute(preference, what, &value, sizeof value),
                      "choosing an algorithm");
  }

  Status chooseBy(cublasLtMatmulPreference_t preference) {
    LLMC_RETURN_IF_ERROR(prefer<uint64_t>(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, kernel.workspaceBytes));
    const CUdeviceptr addresses[] = {kernel.rhs, kernel.lhs, kernel.dst, kernel.dst};
    for (int i = 0; i < 4; ++i)
      LLMC_RETURN_IF_ERROR(prefer<uint32_t>(
          preference, static_cast<cublasLtMatmulPreferenceAttributes_t>(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES + i),
          alignmentOf(addresses[i])));
    cublasLtMatmulHeuristicResult_t found{};
    int count = 0;
    LLMC_RETURN_IF_ERROR(blas.check(
        blas.cublasLtMatmulAlgoGetHeuristic(kernel.handle, kernel.operation, kernel.layouts[0], kernel.layouts[1],
                                            kernel.layouts[2], kernel.layouts[2], preference, 1, &found, &count),
        "choosing an algorithm"));
    if (count < 1)
      return Error{"cublasLt has no algorithm for this product"};
    LLMC_RETURN_IF_ERROR(blas.check(found.state, "choosing an algorithm"));
    kernel.algorithm = found.algo;
    return {};
  }

  const Blas &blas;
  MatMulKernel &kernel;
  const MatMulShape &shape;
};

} // namespace

Result<std::unique_ptr<Contractions>> Contractions::open(Context &context, const std::string &libraryPath) {
  std::unique_ptr<Contractions> made(new Contractions(context));
  Result<std::unique_ptr<Blas>> blas = Blas::load(libraryPath);
  LLMC_RETURN_IF_ERROR(blas);
  made->blas = std::move(*blas);
  LLMC_RETURN_IF_ERROR(made->blas->check(made->blas->cublasLtCreate(&made->handle), "starting cuBLAS"));
  return made;
}

Contractions::~Contractions() {
  if (context.isAbandoned())
    return;
  if (roundingModule)
    context.driver().cuModuleUnload(roundingModule);
  if (handle)
    blas->cublasLtDestroy(handle);
}

Status Contractions::loadRounding() {
  if (rounding)
    return {};
  const Driver &driver = context.driver();
  LLMC_RETURN_IF_ERROR(context.check(driver.cuModuleLoadDataEx(&roundingModule, kRoundingCode, 0, nullptr, nullptr),
                                     "loading the kernel that rounds a bias"));
  return context.check(driver.cuModuleGetFunction(&rounding, roundingModule, "roundBias"),
                       "loading the kernel that rounds a bias");
}

Result<CUdeviceptr> Contractions::workspaceOf(uint32_t streamIndex) {
  auto found = workspaces.find(streamIndex);
  if (found == workspaces.end()) {
    Result<DeviceMemory> memory = DeviceMemory::allocate(context, kWorkspaceBytes, "cuBLAS's workspace");
    LLMC_RETURN_IF_ERROR(memory);
    found = workspaces.emplace(streamIndex, std::move(*memory)).first;
  }
  return found->second.address();
}

MadeKernel Contractions::makeKernel(const Launch &launch, const DeviceSpaces &spaces, uint32_t streamIndex,
                                    bool allowTf32) {
  MatMulShape shape = readMatMulShape(launch);
  LLMC_RETURN_IF_ERROR(checkShape(launch, shape));
  foldBatch(shape);
  auto kernel = std::make_unique<MatMulKernel>(context, *blas, handle);
  kernel->lhs = addressOf(operandArgument(launch, "lhs"), spaces);
  kernel->rhs = addressOf(operandArgument(launch, "rhs"), spaces);
  kernel->dst = addressOf(operandArgument(launch, "dst"), spaces);
  kernel->beta = shape.accumulate ? 1 : 0;
  const BufferRef &planned = operandArgument(launch, "workspace"), &bias = operandArgument(launch, "bias");
  Result<CUdeviceptr> workspace =
      planned.space != Space::none ? Result<CUdeviceptr>(addressOf(planned, spaces)) : workspaceOf(streamIndex);
  LLMC_RETURN_IF_ERROR(workspace);
  kernel->workspace = *workspace;
  kernel->workspaceBytes = planned.space != Space::none ? planned.bytes : kWorkspaceBytes;
  Description description(*blas, *kernel, shape);
  LLMC_RETURN_IF_ERROR(description.describe(allowTf32));
  if (bias.space != Space::none) {
    if (shape.batch > 1)
      return Error{"a bias, for a batch whose rows do not follow each other"};
    CUdeviceptr added = addressOf(bias, spaces);
    if (shape.dstType == ElementType::bf16) {
      LLMC_RETURN_IF_ERROR(loadRounding());
      Result<DeviceMemory> rounded =
          DeviceMemory::allocate(context, static_cast<uint64_t>(shape.n) * 2, "a bias in bf16");
      LLMC_RETURN_IF_ERROR(rounded);
      kernel->rounding = {rounding, added, std::move(*rounded), static_cast<uint32_t>(shape.n)};
      added = kernel->rounding.dst.address();
    }
    LLMC_RETURN_IF_ERROR(description.addBias(added));
  }
  LLMC_RETURN_IF_ERROR(description.choose());
  return std::unique_ptr<CudaKernel>(std::move(kernel));
}

} // namespace llmc::cuda
