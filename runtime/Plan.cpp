// Names and tables of the plan's enumerations.
#include "runtime/Plan.h"

namespace llmc {

namespace {
struct ElementInfo {
  const char *name;
  uint64_t bytes;
};
constexpr ElementInfo kElements[] = {{"f32", 4}, {"bf16", 2}, {"f16", 2}, {"f64", 8},    {"i64", 8},
                                     {"i32", 4}, {"i8", 1},   {"u8", 1},  {"boolean", 1}};
constexpr const char *kProgramNames[] = {"step-fused",       "step",       "accumulate",  "update", "forward",
                                         "step-fused-ranks", "step-ranks", "update-ranks"};
static_assert(std::size(kProgramNames) == kNumProgramKinds);
constexpr KernelInfo kKernels[] = {
#define LLMC_KERNEL(Kind, name, operands, ints, floats) {KernelKind::Kind, name, operands, ints, floats},
#include "runtime/Kernels.def"
};
} // namespace

uint64_t elementBytes(ElementType type) { return kElements[static_cast<size_t>(type)].bytes; }

const char *elementTypeName(ElementType type) { return kElements[static_cast<size_t>(type)].name; }

const char *programKindName(ProgramKind kind) { return kProgramNames[static_cast<size_t>(kind)]; }

const KernelInfo &kernelInfo(KernelKind kind) { return kKernels[static_cast<size_t>(kind)]; }

std::span<const KernelInfo> allKernels() { return kKernels; }

} // namespace llmc
