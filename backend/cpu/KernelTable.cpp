// The table of factories, and arguments found by name: Kernels.def is the one list both come from.
#include "backend/cpu/CpuKernel.h"
#include "runtime/KernelArguments.h"

#include <array>

namespace llmc {

int64_t KernelArgs::integer(std::string_view name) const { return integerArgument(launch, name); }

double KernelArgs::number(std::string_view name) const { return numberArgument(launch, name); }

CpuOperand KernelArgs::operand(std::string_view name) const {
  return operandAt(argumentPlace(name, kernelInfo(launch.kind).operands));
}

CpuOperand KernelArgs::operandAt(size_t index) const {
  const BufferRef &ref = launch.operands[index];
  const std::array<std::byte *, 4> bases = {nullptr, spaces.state, spaces.gradients, spaces.arena};
  std::byte *base = bases[static_cast<size_t>(ref.space)];
  return base ? CpuOperand{base + ref.offset, ref.bytes} : CpuOperand{};
}

Status KernelArgs::requireAtLeast(int64_t least, std::initializer_list<std::string_view> names) const {
  constexpr int64_t kMost =
      int64_t(1) << 40; // keeps every product of two sizes inside 128 bits, and is beyond any memory
  for (std::string_view name : names)
    if (int64_t value = integer(name); value < least || value > kMost)
      return Error{std::string(name) + " is " + std::to_string(value)};
  return {};
}

Status requireElements(const KernelArgs &args, std::string_view name, __int128 last, ElementType type) {
  if (static_cast<size_t>(type) > static_cast<size_t>(ElementType::boolean))
    return Error{std::string(name) + " has an unknown element type"};
  CpuOperand operand = args.operand(name);
  if (last < 0 || (operand && last < static_cast<__int128>(operand.bytes / elementBytes(type))))
    return {};
  return Error{std::string(name) + " holds " + std::to_string(operand.bytes) + " bytes, element " +
               std::to_string(static_cast<int64_t>(last)) + " of " + elementTypeName(type) + " is outside"};
}

KernelFactory kernelFactory(KernelKind kind) {
  static constexpr KernelFactory kFactories[] = {
#define LLMC_KERNEL(Kind, name, operands, ints, floats) make##Kind##Kernel,
#include "runtime/Kernels.def"
  };
  return kFactories[static_cast<size_t>(kind)];
}

} // namespace llmc
