// Which of the plan's ISA levels this CPU has.
#pragma once

#include <optional>
#include <string_view>

namespace llmc {

/// The ISA levels that plans come in, each a superset of the one before.
enum class IsaLevel { v3 = 0, v4 = 1, v4Bf16 = 2 };

/// "x86-64-v3", "x86-64-v4", "x86-64-v4-bf16": the names in TargetPrograms::isa.
const char *isaLevelName(IsaLevel level);
/// The level of a name, or none.
std::optional<IsaLevel> isaLevelOf(std::string_view name);

/// The highest level that this CPU and the operating system support (by CPUID), or none: the CPU is older than
/// x86-64-v3.
std::optional<IsaLevel> detectIsaLevel();

} // namespace llmc
