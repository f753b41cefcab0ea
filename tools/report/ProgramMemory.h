// Memory of a program over its launches, by category: computed from the plan's value ranges alone.
#pragma once

#include "runtime/Plan.h"

#include <map>

namespace llmc {

/// The categories of memory, in the order in which they are shown.
inline constexpr std::array<const char *, 6> kMemoryCategories = {"weights",     "optimizer", "inputs and outputs",
                                                                  "activations", "gradients", "workspace"};

/// Bytes by category, in kMemoryCategories' order.
using CategoryBytes = std::array<uint64_t, kMemoryCategories.size()>;
/// The place of a category's name; "activations" for a name that is none.
size_t categoryIndex(std::string_view name);
uint64_t sum(const CategoryBytes &bytes);

struct ProgramMemory {
  CategoryBytes resident = {};        ///< held during the whole program: the state, and gradients kept for it
  std::vector<CategoryBytes> live;    ///< by launch: dense bytes of the arena's values
  uint32_t peakLaunch = 0;            ///< where most of the arena is alive
  CategoryBytes peak = {};            ///< resident and arena there
  uint64_t lowerBoundBytes = 0;       ///< the largest sum of dense live sizes in the arena
  uint64_t paddedLowerBoundBytes = 0; ///< the same with each value's size rounded up to the arena's alignment
  bool usesKeptGradients = false;     ///< it names the gradient space
};

ProgramMemory programMemory(const Plan &plan, const Program &program);

} // namespace llmc
