// A sweep over the launches: what begins and what ends at each.
#include "tools/report/ProgramMemory.h"

#include <algorithm>
#include <numeric>

namespace llmc {

static constexpr uint64_t kAlignment = 64; ///< of every value in the arena (Plan.h: BufferRef)

size_t categoryIndex(std::string_view name) {
  auto found = std::find(kMemoryCategories.begin(), kMemoryCategories.end(), name);
  return found == kMemoryCategories.end() ? 3 : size_t(found - kMemoryCategories.begin());
}

uint64_t sum(const CategoryBytes &bytes) { return std::accumulate(bytes.begin(), bytes.end(), uint64_t{0}); }

static size_t categoryOf(StateKind kind) {
  switch (kind) {
  case StateKind::parameter:
  case StateKind::constant:
    return categoryIndex("weights");
  case StateKind::moment:
    return categoryIndex("optimizer");
  case StateKind::input:
  case StateKind::scalar:
  case StateKind::output:
    return categoryIndex("inputs and outputs");
  }
  return 0;
}

/// The largest sum over time of size(value), for sizes that a value has from its first launch to its last.
template <typename F> static uint64_t largestSum(const Program &program, F size) {
  std::vector<int64_t> change(program.launches.size() + 1);
  for (const ValueRange &value : program.values)
    if (value.buffer.space == Space::arena) {
      change[value.firstLaunch] += int64_t(size(value));
      change[value.lastLaunch + 1] -= int64_t(size(value));
    }
  int64_t live = 0, largest = 0;
  for (int64_t bytes : change)
    largest = std::max(largest, live += bytes);
  return uint64_t(largest);
}

ProgramMemory programMemory(const Plan &plan, const Program &program) {
  ProgramMemory memory;
  for (const StateEntry &entry : plan.state)
    if (entry.buffer.space == Space::state)
      memory.resident[categoryOf(entry.kind)] += entry.buffer.bytes;
  for (const Launch &launch : program.launches)
    for (const BufferRef &operand : launch.operands)
      memory.usesKeptGradients = memory.usesKeptGradients || operand.space == Space::gradients;
  if (memory.usesKeptGradients)
    memory.resident[categoryIndex("gradients")] += plan.gradientBytes;
  memory.live.resize(program.launches.size());
  for (const ValueRange &value : program.values)
    if (value.buffer.space == Space::arena)
      for (uint32_t launch = value.firstLaunch; launch <= value.lastLaunch; ++launch)
        memory.live[launch][categoryIndex(value.category)] += value.buffer.bytes;
  for (uint32_t launch = 0; launch < memory.live.size(); ++launch)
    if (sum(memory.live[launch]) > sum(memory.live[memory.peakLaunch]))
      memory.peakLaunch = launch;
  memory.peak = memory.resident;
  if (!memory.live.empty())
    for (size_t i = 0; i < memory.peak.size(); ++i)
      memory.peak[i] += memory.live[memory.peakLaunch][i];
  memory.lowerBoundBytes = largestSum(program, [](const ValueRange &value) { return value.buffer.bytes; });
  memory.paddedLowerBoundBytes = largestSum(
      program, [](const ValueRange &value) { return (value.buffer.bytes + kAlignment - 1) / kAlignment * kAlignment; });
  return memory;
}

} // namespace llmc
