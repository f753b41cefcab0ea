// Attention for one ISA level: compiled once per level with its -march and LLMC_ISA_NAMESPACE (see CMakeLists.txt).
#include "backend/cpu/attention/Attention.h"

#include "backend/cpu/attention/Backward.h"
#include "backend/cpu/attention/Forward.h"

namespace llmc::LLMC_ISA_NAMESPACE {

static void forward(const AttentionForward &args, int64_t task, std::byte *scratch) {
  if (args.shape.type == ElementType::bf16)
    forwardTask<BFloat16>(args, task, scratch);
  else
    forwardTask<float>(args, task, scratch);
}

static void backward(const AttentionBackward &args, int64_t task, std::byte *scratch) {
  if (args.shape.type == ElementType::bf16)
    backwardTask<BFloat16>(args, task, scratch);
  else
    backwardTask<float>(args, task, scratch);
}

const AttentionFunctions kFunctions = {numForwardTasks,  forwardScratchBytes,  forward,
                                       numBackwardTasks, backwardScratchBytes, backward};

} // namespace llmc::LLMC_ISA_NAMESPACE
