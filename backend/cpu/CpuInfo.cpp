// CPU features by the compiler's built-in CPUID reader, which also asks the operating system for its register state.
#include "backend/cpu/CpuInfo.h"

#include <array>

namespace llmc {

static constexpr std::array<const char *, 3> kNames = {"x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"};

const char *isaLevelName(IsaLevel level) { return kNames[static_cast<size_t>(level)]; }

std::optional<IsaLevel> isaLevelOf(std::string_view name) {
  for (size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i])
      return static_cast<IsaLevel>(i);
  return std::nullopt;
}

std::optional<IsaLevel> detectIsaLevel() {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("x86-64-v3"))
    return std::nullopt;
  if (!__builtin_cpu_supports("x86-64-v4"))
    return IsaLevel::v3;
  return __builtin_cpu_supports("avx512bf16") ? IsaLevel::v4Bf16 : IsaLevel::v4;
}

} // namespace llmc
