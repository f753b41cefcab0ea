// Matrix products on oneDNN: its matmul primitive (JIT kernels over strides or packed weights, bias and accumulation as
// epilogue); its sgemm only where the primitive is no JIT kernel. Kernels of oneDNN's gemm move the stack pointer into
// heap memory: whoever runs them must receive signals on another thread (llmc-run's StopSignals). A primitive that
// would fall back to oneDNN's scalar reference is never run on anything big. Accumulates in f32; same bits for a thread
// count. Levels without bf16 instructions multiply bf16 as f32.
#include "backend/cpu/Dnnl.h"
#include "backend/cpu/Parallel.h"
#include "runtime/ElementConvert.h"

#include <string_view>

namespace llmc {

struct MatMulBuffers {
  std::byte *lhs, *rhs, *bias, *dst; ///< bias: f32 or none
};

/// Fails unless a matrix of rows x columns, `ld` apart, `batch` times, lies in its operand.
static Status checkMatrix(const KernelArgs &args, const char *name, int64_t rows, int64_t columns, int64_t ld,
                          int64_t batch, int64_t stride, ElementType type) {
  if (ld < columns)
    return Error{std::string(name) + " has rows of " + std::to_string(columns) + " elements, " + std::to_string(ld) +
                 " apart"};
  __int128 last = __int128(batch - 1) * stride + __int128(rows - 1) * ld + columns - 1;
  return requireElements(args, name, last, type);
}

static Status checkShape(const KernelArgs &args, const MatMulShape &shape) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(1, {"batch", "m", "n", "k", "ldLhs", "ldRhs", "ldDst"}));
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(0, {"lhsStride", "rhsStride", "dstStride"}));
  LLMC_RETURN_IF_ERROR(checkMatrix(args, "lhs", shape.transposeLhs ? shape.k : shape.m,
                                   shape.transposeLhs ? shape.m : shape.k, shape.ldLhs, shape.batch, shape.lhsStride,
                                   shape.lhsType));
  LLMC_RETURN_IF_ERROR(
      checkMatrix(args, "dst", shape.m, shape.n, shape.ldDst, shape.batch, shape.dstStride, shape.dstType));
  if (args.operand("bias"))
    LLMC_RETURN_IF_ERROR(requireElements(args, "bias", shape.n - 1, ElementType::f32));
  if (shape.rhsLayout == RhsLayout::plain)
    return checkMatrix(args, "rhs", shape.transposeRhs ? shape.n : shape.k, shape.transposeRhs ? shape.k : shape.n,
                       shape.ldRhs, shape.batch, shape.rhsStride, shape.rhsType);
  if (shape.rhsLayout > RhsLayout::blocked16x64x2 || shape.rhsLayout < RhsLayout::plain || shape.batch != 1 ||
      shape.transposeRhs || shape.rhsType != packedType(shape.rhsLayout))
    return Error{"no such layout of rhs: " + std::to_string(static_cast<int64_t>(shape.rhsLayout))};
  return requireElements(args, "rhs", packedElements(shape.rhsLayout, shape.k, shape.n) - 1, shape.rhsType);
}

/// A product whose buffers can be changed.
class ProductKernel : public CpuKernel {
public:
  virtual void bind(const MatMulBuffers &buffers) = 0;
};

/// oneDNN's matmul primitive.
class DnnlMatMulKernel : public ProductKernel {
public:
  explicit DnnlMatMulKernel(DnnlCall call) : call(std::move(call)) {}
  uint64_t scratchBytes() const override { return call.scratchBytes(); }
  Status run(std::byte *scratch) override { return call.run(scratch); }
  void bind(const MatMulBuffers &buffers) override {
    call.bind(0, buffers.lhs);
    call.bind(1, buffers.rhs);
    call.bind(2, buffers.dst);
  }

private:
  DnnlCall call;
};

/// oneDNN's sgemm, once per batch; a bias is written to dst first.
class SgemmKernel : public ProductKernel {
public:
  MatMulShape shape;
  MatMulBuffers buffers;
  int threads = 1;

  void bind(const MatMulBuffers &other) override { buffers = other; }
  Status run(std::byte *) override {
    const float *lhs = reinterpret_cast<const float *>(buffers.lhs),
                *rhs = reinterpret_cast<const float *>(buffers.rhs);
    float *dst = reinterpret_cast<float *>(buffers.dst);
    for (int64_t b = 0; b < shape.batch; ++b) {
      float *to = dst + b * shape.dstStride;
      if (buffers.bias)
        startFromBias(to);
      dnnl_status_t status =
          dnnl_sgemm(shape.transposeLhs ? 'T' : 'N', shape.transposeRhs ? 'T' : 'N', shape.m, shape.n, shape.k, 1.0f,
                     lhs + b * shape.lhsStride, shape.ldLhs, rhs + b * shape.rhsStride, shape.ldRhs,
                     shape.accumulate || buffers.bias ? 1.0f : 0.0f, to, shape.ldDst);
      if (status != dnnl_success)
        return Error{"oneDNN's sgemm failed with status " + std::to_string(static_cast<int>(status))};
    }
    return {};
  }

private:
  void startFromBias(float *dst) const {
    const float *bias = reinterpret_cast<const float *>(buffers.bias);
    forShares(shape.m, threads, 16, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < shape.n; ++j)
          dst[i * shape.ldDst + j] = bias[j] + (shape.accumulate ? dst[i * shape.ldDst + j] : 0.0f);
    });
  }
};

using Dims = dnnl::memory::dims;

/// The layout of one operand: two dimensions, or three with a batch (of 1 where the stride is 0: oneDNN broadcasts it).
static dnnl::memory::desc matrixDesc(const MatMulShape &shape, int64_t rows, int64_t columns, bool transposed,
                                     int64_t ld, int64_t batchStride, dnnl::memory::data_type type) {
  Dims dims{rows, columns}, strides = transposed ? Dims{1, ld} : Dims{ld, 1};
  if (shape.batch > 1) {
    dims.insert(dims.begin(), batchStride == 0 ? 1 : shape.batch);
    strides.insert(strides.begin(), batchStride == 0 ? rows * columns : batchStride);
  }
  return {dims, type, strides};
}

static dnnl::matmul::primitive_desc makeMatMulDesc(const dnnl::memory::desc &lhs, const dnnl::memory::desc &rhs,
                                                   const dnnl::memory::desc &bias, const dnnl::memory::desc &dst,
                                                   const dnnl::primitive_attr &attributes) {
#if DNNL_VERSION_MAJOR >= 3
  return dnnl::matmul::primitive_desc(dnnlEngine(), lhs, rhs, bias, dst, attributes);
#else
  return dnnl::matmul::primitive_desc(dnnl::matmul::desc(lhs, rhs, bias, dst), attributes, dnnlEngine());
#endif
}

/// The primitive and the name of its implementation.
struct NamedCall {
  DnnlCall call;
  std::string implementation;
};

static Result<NamedCall> makePrimitive(const MatMulShape &shape, const MatMulBuffers &buffers) {
  auto lhsType = dnnlType(shape.lhsType), rhsType = dnnlType(shape.rhsType), dstType = dnnlType(shape.dstType);
  for (const auto *type : {&lhsType, &rhsType, &dstType})
    LLMC_RETURN_IF_ERROR(*type);
  return catchDnnl("the matmul", [&] {
    dnnl::memory::desc lhs =
        matrixDesc(shape, shape.m, shape.k, shape.transposeLhs, shape.ldLhs, shape.lhsStride, *lhsType);
    dnnl::memory::desc rhs =
        shape.rhsLayout == RhsLayout::plain
            ? matrixDesc(shape, shape.k, shape.n, shape.transposeRhs, shape.ldRhs, shape.rhsStride, *rhsType)
            : dnnl::memory::desc({shape.k, shape.n}, *rhsType, dnnlTag(shape.rhsLayout));
    dnnl::memory::desc dst = matrixDesc(shape, shape.m, shape.n, false, shape.ldDst, shape.dstStride, *dstType);
    dnnl::memory::desc bias;
    std::vector<DnnlCall::Argument> arguments = {
        {DNNL_ARG_SRC, lhs, buffers.lhs}, {DNNL_ARG_WEIGHTS, rhs, buffers.rhs}, {DNNL_ARG_DST, dst, buffers.dst}};
    if (buffers.bias) {
      Dims dims(shape.batch > 1 ? 2 : 1, 1), strides(dims.size(), shape.n);
      dims.push_back(shape.n);
      strides.push_back(1);
      bias = dnnl::memory::desc(dims, dnnl::memory::data_type::f32, strides);
      arguments.push_back({DNNL_ARG_BIAS, bias, buffers.bias});
    }
    dnnl::primitive_attr attributes;
    attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
    if (shape.accumulate) {
      dnnl::post_ops epilogue;
      epilogue.append_sum(1.0f);
      attributes.set_post_ops(epilogue);
    }
    auto desc = makeMatMulDesc(lhs, rhs, bias, dst, attributes);
    return NamedCall{DnnlCall(dnnl::matmul(desc), arguments, desc.scratchpad_desc()), desc.impl_info_str()};
  });
}

static std::unique_ptr<ProductKernel> makeSgemm(const MatMulShape &shape, const MatMulBuffers &buffers, int threads) {
  auto kernel = std::make_unique<SgemmKernel>();
  kernel->shape = shape;
  kernel->buffers = buffers;
  kernel->threads = threads;
  return kernel;
}

static Result<std::unique_ptr<ProductKernel>> makeProduct(const MatMulShape &shape, const MatMulBuffers &buffers,
                                                          const CpuTarget &target) {
  Result<NamedCall> made = makePrimitive(shape, buffers);
  bool isJit = made.ok() && (made->implementation.starts_with("brg") || made->implementation.starts_with("gemm:jit"));
  if (!isJit && shape.isF32() && shape.rhsLayout == RhsLayout::plain)
    return makeSgemm(shape, buffers, target.threads);
  LLMC_RETURN_IF_ERROR(made);
  constexpr double kSmall = 1 << 20; // multiplications that even the reference does in a millisecond or so
  if (!isJit && double(shape.batch) * double(shape.m) * double(shape.n) * double(shape.k) > kSmall)
    return Error{"oneDNN has only '" + made->implementation + "' for this product at the level " +
                 isaLevelName(target.isa)};
  return std::unique_ptr<ProductKernel>(std::make_unique<DnnlMatMulKernel>(std::move(made->call)));
}

/// Copies the bf16 operands to f32 in scratch memory and multiplies those.
class WidenedMatMulKernel : public CpuKernel {
public:
  WidenedMatMulKernel(const MatMulShape &shape, const MatMulBuffers &buffers, int threads)
      : shape(shape), buffers(buffers), threads(threads) {
    auto extent = [&](ElementType type, int64_t stride, bool transposed, int64_t rows, int64_t columns, int64_t ld) {
      if (transposed)
        std::swap(rows, columns);
      return type == ElementType::f32 ? 0 : (shape.batch - 1) * stride + (rows - 1) * ld + columns;
    };
    numLhs = extent(shape.lhsType, shape.lhsStride, shape.transposeLhs, shape.m, shape.k, shape.ldLhs);
    numRhs = extent(shape.rhsType, shape.rhsStride, shape.transposeRhs, shape.k, shape.n, shape.ldRhs);
    numDst = extent(shape.dstType, shape.dstStride, false, shape.m, shape.n, shape.ldDst);
  }

  /// Makes the product in f32.
  Status prepare(const CpuTarget &target) {
    MatMulShape wide = shape;
    wide.lhsType = wide.rhsType = wide.dstType = ElementType::f32;
    Result<std::unique_ptr<ProductKernel>> made = makeProduct(wide, buffers, target);
    LLMC_RETURN_IF_ERROR(made);
    product = std::move(*made);
    return {};
  }

  uint64_t scratchBytes() const override {
    return aligned(product->scratchBytes()) + aligned(4 * numLhs) + aligned(4 * numRhs) + aligned(4 * numDst);
  }

  Status run(std::byte *scratch) override {
    MatMulBuffers wide = buffers;
    std::byte *next = scratch + aligned(product->scratchBytes());
    auto widen = [&](int64_t count, std::byte *&buffer) {
      if (count == 0)
        return;
      toFloat(buffer, next, count);
      buffer = next;
      next += aligned(4 * count);
    };
    widen(numLhs, wide.lhs);
    widen(numRhs, wide.rhs);
    widen(numDst, wide.dst); // what is added to, and what lies between rows
    product->bind(wide);
    LLMC_RETURN_IF_ERROR(product->run(scratch));
    if (numDst)
      roundBack(wide.dst, buffers.dst, numDst);
    return {};
  }

private:
  static uint64_t aligned(uint64_t bytes) { return (bytes + 63) / 64 * 64; }

  void toFloat(const std::byte *src, std::byte *dst, int64_t count) const {
    auto *from = reinterpret_cast<const uint16_t *>(src);
    auto *to = reinterpret_cast<float *>(dst);
    forShares(count, threads, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = floatFromBf16(from[i]);
    });
  }
  void roundBack(const std::byte *src, std::byte *dst, int64_t count) const {
    auto *from = reinterpret_cast<const float *>(src);
    auto *to = reinterpret_cast<uint16_t *>(dst);
    forShares(count, threads, 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        to[i] = llmc::toBf16(from[i]);
    });
  }

  MatMulShape shape;
  MatMulBuffers buffers;
  int threads;
  int64_t numLhs, numRhs, numDst; ///< elements to convert, 0 for an operand in f32
  std::unique_ptr<ProductKernel> product;
};

Result<std::unique_ptr<CpuKernel>> makeMatMulKernel(const KernelArgs &args, const CpuTarget &target) {
  MatMulShape shape = readMatMulShape(args.source());
  LLMC_RETURN_IF_ERROR(checkShape(args, shape));
  shape.rhsLayout = layoutAt(target.isa, shape.rhsLayout);
  foldBatch(shape);
  MatMulBuffers buffers{args.operand("lhs").data, args.operand("rhs").data, args.operand("bias").data,
                        args.operand("dst").data};
  if (target.isa < IsaLevel::v4Bf16 && !shape.isF32() && shape.rhsLayout == RhsLayout::plain) {
    auto widened = std::make_unique<WidenedMatMulKernel>(shape, buffers, target.threads);
    LLMC_RETURN_IF_ERROR(widened->prepare(target));
    return std::unique_ptr<CpuKernel>(std::move(widened));
  }
  Result<std::unique_ptr<ProductKernel>> product = makeProduct(shape, buffers, target);
  LLMC_RETURN_IF_ERROR(product);
  return std::unique_ptr<CpuKernel>(std::move(*product));
}

} // namespace llmc
