// Is every offset, size and index of a plan in range? Asked before a plan is written and after one is read, so that
// nothing behind this check needs to look again.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// Sizes of the sections a plan refers into.
struct SectionSizes {
  uint64_t weights = 0;
  uint64_t code = 0;
  uint64_t model = 0;
};

/// No space of a plan is larger than this (64 TiB): sums of two offsets cannot overflow.
inline constexpr uint64_t kMaxSpaceBytes = 1ull << 46;

/// The first thing that is out of range, in words that name the entry or launch.
Status checkPlan(const Plan &plan, const SectionSizes &sizes);

/// True when launches of a kind run code of the plan on a target ("cpu", "cuda"); false when the device, a library or
/// the driver has the code.
bool needsEntry(std::string_view target, KernelKind kind);

/// Elements of a shape; nothing when a dimension is negative or the product exceeds kMaxSpaceBytes.
std::optional<uint64_t> numElements(std::span<const int64_t> shape);

} // namespace llmc
