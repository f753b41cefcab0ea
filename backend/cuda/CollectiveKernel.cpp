// Marks are copies on the collective's own stream: one before it, one behind it.
#include "backend/cuda/CollectiveKernel.h"

#include "backend/cuda/ProgramOrder.h"
#include "runtime/KernelArguments.h"

#include <fmt/format.h>

namespace llmc::cuda {

Result<CollectiveProgress> CollectiveProgress::make(Context &context, const Program &program, Copies &copies) {
  CollectiveProgress progress;
  for (const Launch &launch : program.launches)
    if (launch.kind == KernelKind::AllReduceStart)
      progress.labels.push_back(launch.name);
  std::vector<uint32_t> marks;
  for (uint32_t i = 1; i <= progress.labels.size() + 1; ++i)
    marks.push_back(i);
  Result<DeviceMemory> numbers = DeviceMemory::allocate(context, marks.size() * sizeof(uint32_t), "progress marks");
  LLMC_RETURN_IF_ERROR(numbers);
  LLMC_RETURN_IF_ERROR(copies.in(numbers->address(), std::as_bytes(std::span(marks))));
  Result<PinnedMemory> words = PinnedMemory::allocate(context, 2 * sizeof(uint32_t));
  LLMC_RETURN_IF_ERROR(words);
  LLMC_RETURN_IF_ERROR(
      context.check(context.driver().cuMemHostGetDevicePointer(&progress.mapped, words->bytes().data(), 0), "mapping"));
  progress.numbers = std::move(*numbers);
  progress.words = std::move(*words);
  progress.reset();
  return progress;
}

Status CollectiveProgress::mark(const Context &context, size_t position, bool hasEnded, CUstream stream) const {
  return context.check(context.driver().cuMemcpyDtoDAsync(mapped + hasEnded * sizeof(uint32_t),
                                                          numbers.address() + position * sizeof(uint32_t),
                                                          sizeof(uint32_t), stream),
                       "marking a collective");
}

namespace {

class AllReduceKernel : public CudaKernel {
public:
  AllReduceKernel(const Context &context, Ranks &ranks, const CollectiveProgress &progress)
      : context(context), ranks(ranks), progress(progress) {}

  Status submit(CUstream stream) override {
    LLMC_RETURN_IF_ERROR(progress.mark(context, position, /*hasEnded=*/false, stream));
    LLMC_RETURN_IF_ERROR(ranks.sum(buffer, count, type, stream));
    return progress.mark(context, position, /*hasEnded=*/true, stream);
  }

  size_t position = 0;
  CUdeviceptr buffer = 0;
  uint64_t count = 0;
  ElementType type = ElementType::f32;

private:
  const Context &context;
  Ranks &ranks;
  const CollectiveProgress &progress;
};

} // namespace

static Status checkParts(const Launch &launch, ElementType type) {
  constexpr uint64_t kAlignment = 64;
  if (type != ElementType::f32 && type != ElementType::bf16)
    return Error{"a sum over ranks of elements that are neither f32 nor bf16"};
  if (launch.operands.empty())
    return Error{"a sum over ranks of nothing"};
  uint64_t expected = launch.operands.front().offset;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const BufferRef &part = launch.operands[i];
    if (part.space != launch.operands.front().space || part.offset != expected || part.bytes % elementBytes(type) != 0)
      return Error{fmt::format("part {} does not follow the part before it", i)};
    expected = (part.offset + part.bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  return {};
}

MadeKernel makeAllReduceKernel(const Context &context, Ranks &ranks, const Launch &launch, const DeviceSpaces &spaces,
                               const CollectiveProgress &progress) {
  auto kernel = std::make_unique<AllReduceKernel>(context, ranks, progress);
  int64_t position = integerArgument(launch, "position");
  if (position < 0 || static_cast<uint64_t>(position) >= progress.size())
    return Error{fmt::format("position {} of a program with {} collectives", position, progress.size())};
  kernel->type = typeArgument(launch, "type");
  LLMC_RETURN_IF_ERROR(checkParts(launch, kernel->type));
  kernel->position = static_cast<size_t>(position);
  kernel->buffer = addressOf(launch.operands.front(), spaces);
  kernel->count = messageOf(launch).bytes / elementBytes(kernel->type);
  return std::unique_ptr<CudaKernel>(std::move(kernel));
}

} // namespace llmc::cuda
