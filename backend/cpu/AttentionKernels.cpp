// Attention and its gradient as launches: arguments checked once, tasks handed to threads, each with scratch of its
// own.
#include "backend/cpu/CpuKernel.h"
#include "backend/cpu/Parallel.h"
#include "backend/cpu/attention/Attention.h"

namespace llmc {

const AttentionFunctions &attentionFunctions(IsaLevel level) {
  static constexpr const AttentionFunctions *kByLevel[] = {&attention_v3::kFunctions, &attention_v4::kFunctions,
                                                           &attention_v4_bf16::kFunctions};
  return *kByLevel[static_cast<size_t>(level)];
}

static Result<AttentionShape> readShape(const KernelArgs &args) {
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(1, {"batch", "queries", "keys", "heads", "kvHeads", "headSize"}));
  LLMC_RETURN_IF_ERROR(
      args.requireAtLeast(0, {"window", "maskBatchStride", "maskHeadStride", "maskQueryStride", "maskKeyStride"}));
  AttentionShape shape;
  shape.batch = args.integer("batch");
  shape.queries = args.integer("queries");
  shape.keys = args.integer("keys");
  shape.heads = args.integer("heads");
  shape.kvHeads = args.integer("kvHeads");
  shape.headSize = args.integer("headSize");
  shape.causal = args.flag("causal");
  shape.window = args.integer("window");
  shape.type = args.type("type");
  shape.scale = static_cast<float>(args.number("scale"));
  shape.maskBatchStride = args.integer("maskBatchStride");
  shape.maskHeadStride = args.integer("maskHeadStride");
  shape.maskQueryStride = args.integer("maskQueryStride");
  shape.maskKeyStride = args.integer("maskKeyStride");
  if (shape.type != ElementType::f32 && shape.type != ElementType::bf16)
    return Error{"attention takes f32 or bf16"};
  if (shape.heads % shape.kvHeads != 0)
    return Error{std::to_string(shape.heads) + " heads cannot share " + std::to_string(shape.kvHeads)};
  if (std::max(shape.queries, shape.keys) > INT32_MAX / 4)
    return Error{"the sequence is too long"};
  __int128 lastMask =
      __int128(shape.batch - 1) * shape.maskBatchStride + __int128(shape.heads - 1) * shape.maskHeadStride +
      __int128(shape.queries - 1) * shape.maskQueryStride + __int128(shape.keys - 1) * shape.maskKeyStride;
  if (args.operand("mask"))
    LLMC_RETURN_IF_ERROR(requireElements(args, "mask", lastMask, ElementType::f32));
  LLMC_RETURN_IF_ERROR(
      requireElements(args, "lse", __int128(shape.batch) * shape.heads * shape.queries - 1, ElementType::f32));
  return shape;
}

/// Rows of `columns` elements in an operand, at the stride and offset that the named integers give.
static Result<AttentionRows> readRows(const KernelArgs &args, const char *operand, const std::string &prefix,
                                      int64_t numRows, int64_t columns, ElementType type) {
  const std::string strideName = prefix + "RowStride", offsetName = prefix + "Offset";
  LLMC_RETURN_IF_ERROR(args.requireAtLeast(0, {strideName, offsetName}));
  int64_t stride = args.integer(strideName), offset = args.integer(offsetName);
  if (stride < columns)
    return Error{strideName + " is " + std::to_string(stride) + ", a row has " + std::to_string(columns) + " elements"};
  LLMC_RETURN_IF_ERROR(requireElements(args, operand, __int128(numRows - 1) * stride + offset + columns - 1, type));
  return AttentionRows{args.operand(operand).data + offset * static_cast<int64_t>(elementBytes(type)), stride};
}

/// Rows of a dense operand.
static Result<AttentionRows> denseRows(const KernelArgs &args, const char *operand, int64_t numRows, int64_t columns,
                                       ElementType type) {
  LLMC_RETURN_IF_ERROR(requireElements(args, operand, __int128(numRows) * columns - 1, type));
  return AttentionRows{args.operand(operand).data, columns};
}

/// Reads rows into a member of args, or returns the error.
#define LLMC_READ(member, expression)                                                                                  \
  do {                                                                                                                 \
    Result<AttentionRows> rows = (expression);                                                                         \
    LLMC_RETURN_IF_ERROR(rows);                                                                                        \
    (member) = *rows;                                                                                                  \
  } while (false)

/// What both passes read.
template <typename Pass> static Status readInputs(const KernelArgs &args, const AttentionShape &shape, Pass &pass) {
  int64_t queryRows = shape.batch * shape.queries, keyRows = shape.batch * shape.keys;
  int64_t columns = shape.heads * shape.headSize, kvColumns = shape.kvHeads * shape.headSize;
  pass.shape = shape;
  LLMC_READ(pass.q, readRows(args, "q", "q", queryRows, columns, shape.type));
  LLMC_READ(pass.k, readRows(args, "k", "k", keyRows, kvColumns, shape.type));
  LLMC_READ(pass.v, readRows(args, "v", "v", keyRows, kvColumns, shape.type));
  LLMC_READ(pass.out, denseRows(args, "out", queryRows, columns, shape.type));
  pass.mask = args.operand("mask").as<float>();
  pass.lse = args.operand("lse").as<float>();
  return {};
}

/// Scratch of a thread in whole pages, one cache line off so that threads do not meet in the same cache sets.
static uint64_t threadScratch(uint64_t bytes) { return (bytes + 4095) / 4096 * 4096 + 64; }

class AttentionKernel : public CpuKernel {
public:
  AttentionKernel(const AttentionFunctions &functions, AttentionForward pass, int threads)
      : functions(functions), pass(pass), threads(threads),
        threadBytes(threadScratch(functions.forwardScratchBytes(pass.shape))) {
    // Panels do not depend on each other: shorter stretches cost no more than packing keys more often.
    while (threads > 1 && this->pass.taskQueries > 64 && numTasks() < 4 * threads)
      this->pass.taskQueries /= 2;
  }

  uint64_t scratchBytes() const override { return threadBytes * static_cast<uint64_t>(threads); }
  Status run(std::byte *scratch) override {
    forTasks(numTasks(), threads, [&](int64_t task, int thread) {
      functions.forward(pass, task, scratch + static_cast<uint64_t>(thread) * threadBytes);
    });
    return {};
  }

private:
  int64_t numTasks() const {
    const AttentionShape &shape = pass.shape;
    return shape.batch * shape.heads * ((shape.queries + pass.taskQueries - 1) / pass.taskQueries);
  }

  const AttentionFunctions &functions;
  AttentionForward pass;
  int threads;
  uint64_t threadBytes;
};

class AttentionGradKernel : public CpuKernel {
public:
  AttentionGradKernel(const AttentionFunctions &functions, AttentionBackward pass, int threads)
      : functions(functions), pass(pass), threads(threads), numHeads(pass.shape.batch * pass.shape.kvHeads),
        threadBytes(threadScratch(functions.backwardScratchBytes(pass.shape))) {
    // Whole heads need no memory for parts of dq: they are cut only where some threads would idle for longer than an
    // eighth of the time.
    int64_t rounds = (numHeads + threads - 1) / threads;
    isCut = functions.numStretches(pass.shape) > 1 && numHeads * 8 < rounds * threads * 7;
  }

  uint64_t scratchBytes() const override {
    return threadBytes * static_cast<uint64_t>(threads) + (isCut ? functions.dqPartsBytes(pass.shape) : 0);
  }
  Status run(std::byte *scratch) override {
    auto runTasks = [&](int64_t numTasks, auto *runTask) {
      forTasks(numTasks, threads, [&](int64_t task, int thread) {
        runTask(pass, task, scratch + static_cast<uint64_t>(thread) * threadBytes);
      });
    };
    if (!isCut) {
      runTasks(numHeads, functions.backward);
      return {};
    }
    pass.dqParts = reinterpret_cast<float *>(scratch + threadBytes * static_cast<uint64_t>(threads));
    runTasks(numHeads * functions.numStretches(pass.shape), functions.backward);
    runTasks(functions.numSumTasks(pass.shape), functions.sumDq);
    return {};
  }

private:
  const AttentionFunctions &functions;
  AttentionBackward pass;
  int threads;
  int64_t numHeads;
  uint64_t threadBytes;
  bool isCut;
};

Result<std::unique_ptr<CpuKernel>> makeAttentionKernel(const KernelArgs &args, const CpuTarget &target) {
  Result<AttentionShape> shape = readShape(args);
  LLMC_RETURN_IF_ERROR(shape);
  AttentionForward pass;
  LLMC_RETURN_IF_ERROR(readInputs(args, *shape, pass));
  return std::unique_ptr<CpuKernel>(
      std::make_unique<AttentionKernel>(attentionFunctions(target.isa), pass, target.threads));
}

Result<std::unique_ptr<CpuKernel>> makeAttentionGradKernel(const KernelArgs &args, const CpuTarget &target) {
  Result<AttentionShape> shape = readShape(args);
  LLMC_RETURN_IF_ERROR(shape);
  AttentionBackward pass;
  LLMC_RETURN_IF_ERROR(readInputs(args, *shape, pass));
  int64_t queryRows = shape->batch * shape->queries, keyRows = shape->batch * shape->keys;
  int64_t columns = shape->heads * shape->headSize, kvColumns = shape->kvHeads * shape->headSize;
  LLMC_READ(pass.dOut, denseRows(args, "dOut", queryRows, columns, shape->type));
  LLMC_READ(pass.dq, readRows(args, "dq", "dq", queryRows, columns, shape->type));
  LLMC_READ(pass.dk, readRows(args, "dk", "dk", keyRows, kvColumns, shape->type));
  LLMC_READ(pass.dv, readRows(args, "dv", "dv", keyRows, kvColumns, shape->type));
  return std::unique_ptr<CpuKernel>(
      std::make_unique<AttentionGradKernel>(attentionFunctions(target.isa), pass, target.threads));
}

} // namespace llmc
