// Attention for one ISA level: compiled once per level with its -march and LLMC_ISA_NAMESPACE (see CMakeLists.txt).
#include "backend/cpu/attention/Attention.h"

#include "backend/cpu/attention/Backward.h"
#include "backend/cpu/attention/Forward.h"

namespace llmc::LLMC_ISA_NAMESPACE {

/// Calls body with a null pointer to the type that the tensors are stored in.
template <typename Body> static auto withType(const AttentionShape &shape, Body body) {
  if (shape.type == ElementType::bf16)
    return body(static_cast<BFloat16 *>(nullptr));
  return body(static_cast<float *>(nullptr));
}

/// A function template over the storage type, as one function.
#define LLMC_BY_TYPE(function, shape, ...)                                                                             \
  withType(shape, [&](auto *type) { return function<std::remove_pointer_t<decltype(type)>>(__VA_ARGS__); })

static uint64_t forwardBytes(const AttentionShape &shape) { return LLMC_BY_TYPE(forwardScratchBytes, shape, shape); }
static uint64_t backwardBytes(const AttentionShape &shape) { return LLMC_BY_TYPE(backwardScratchBytes, shape, shape); }
static void forward(const AttentionForward &args, int64_t task, std::byte *scratch) {
  LLMC_BY_TYPE(forwardTask, args.shape, args, task, scratch);
}
static void backward(const AttentionBackward &args, int64_t task, std::byte *scratch) {
  LLMC_BY_TYPE(backwardTask, args.shape, args, task, scratch);
}
static void sumDq(const AttentionBackward &args, int64_t task, std::byte *scratch) {
  LLMC_BY_TYPE(sumDqTask, args.shape, args, task, scratch);
}

const AttentionFunctions kFunctions = {forwardBytes,  forward,  numStretches, dqPartsBytes,
                                       backwardBytes, backward, numSumTasks,  sumDq};

} // namespace llmc::LLMC_ISA_NAMESPACE
