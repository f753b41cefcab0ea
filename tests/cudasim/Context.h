// What an instruction sees while it runs: the warp's registers, the active lanes, the block's memories, and where to
// report a fault.
#pragma once

#include "tests/cudasim/Fault.h"
#include "tests/cudasim/Kernel.h"
#include "tests/cudasim/Memory.h"

#include <bit>
#include <optional>

namespace llmc::cudasim {

/// Generic addresses of shared and local memory start here; device memory lies far above.
inline constexpr uint64_t kSharedWindow = 0x1000000000;
inline constexpr uint64_t kLocalWindow = 0x2000000000;
inline constexpr uint64_t kWindowBytes = 0x1000000000;

/// A block's shared memory, or a thread's local one: bytes with their shadow.
struct OnChipMemory {
  std::vector<std::byte> data;
  Shadow shadow{0};
};

class Context {
public:
  std::byte *registers = nullptr;
  /// Lanes that execute this instruction, and all lanes of the warp that have not left.
  uint32_t mask = 0;
  uint32_t liveMask = 0;
  uint32_t warp = 0;
  /// Barriers of the block and of the warp (bar.warp.sync) that were passed.
  uint16_t blockEpoch = 0;
  uint16_t warpEpoch = 0;
  uint64_t linearBlock = 0;
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> blockThreads{};

  const Kernel *kernel = nullptr;
  std::span<const std::byte> parameters;
  Memory *memory = nullptr;
  Allocation *recentAllocation = nullptr;
  const LaunchOrder *order = nullptr;
  const LiveRanges *live = nullptr;
  OnChipMemory *shared = nullptr;
  std::vector<OnChipMemory> *local = nullptr;
  std::optional<Fault> fault;

  template <typename T> T *slot(uint32_t offset) { return reinterpret_cast<T *>(registers + offset); }
  uint32_t &predicate(uint32_t offset) { return *slot<uint32_t>(offset); }

  /// Reports the first fault of a launch; later ones are ignored.
  void report(FaultKind kind, const Instruction &instruction, uint32_t lane, uint64_t address, std::string detail) {
    if (fault)
      return;
    uint32_t thread = warp * kWarpLanes + lane;
    std::array<uint32_t, 3> place{thread % blockThreads[0], thread / blockThreads[0] % blockThreads[1],
                                  thread / blockThreads[0] / blockThreads[1]};
    fault = Fault{kind, kernel->name, instruction.line, block, place, address, std::move(detail)};
  }

  Access accessOf(uint32_t lane) const {
    return {.op = order->op(),
            .block = static_cast<uint32_t>(linearBlock),
            .thread = static_cast<uint16_t>(warp * kWarpLanes + lane),
            .breadth = Access::oneThread,
            .blockEpoch = blockEpoch,
            .warpEpoch = warpEpoch};
  }
};

/// Calls f(lane) for each active lane.
template <typename F> inline void forLanes(uint32_t mask, F f) {
  if (mask == ~0u) {
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane)
      f(lane);
    return;
  }
  for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
    f(static_cast<uint32_t>(std::countr_zero(rest)));
}

} // namespace llmc::cudasim
