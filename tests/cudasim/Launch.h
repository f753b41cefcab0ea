// One launch of a kernel: its blocks one after the other in a seeded order, the warps of a block interleaved by a
// seeded scheduler that tries to be unkind. Whatever order the seed gives, a correct kernel gives the same result.
#pragma once

#include "tests/cudasim/Fault.h"
#include "tests/cudasim/Kernel.h"
#include "tests/cudasim/Memory.h"

namespace llmc::cudasim {

struct LaunchShape {
  std::array<uint32_t, 3> grid{1, 1, 1};
  std::array<uint32_t, 3> block{1, 1, 1};
  uint32_t dynamicSharedBytes = 0;
  /// What the function may use, static and dynamic together (48 KiB unless an attribute says more).
  uint32_t maxSharedBytes = 48 * 1024;
};

struct LaunchOptions {
  uint64_t seed = 0;
  const LaunchOrder *order = nullptr;
  /// Null: lifetimes are not checked.
  const LiveRanges *live = nullptr;
  /// Instructions of one warp after which a kernel counts as endless.
  uint64_t maxWarpInstructions = uint64_t(1) << 34;
};

struct LaunchCounts {
  /// Instructions times the lanes that executed them.
  uint64_t laneInstructions = 0;
  uint64_t warpInstructions = 0;
};

/// What a driver would refuse, in words, or nothing.
std::string launchProblem(const Kernel &kernel, const LaunchShape &shape);

/// Runs the kernel with its packed arguments to its end or its first fault.
std::optional<Fault> launch(const Kernel &kernel, const LaunchShape &shape, std::span<const std::byte> arguments,
                            Memory &memory, const LaunchOptions &options, LaunchCounts *counts = nullptr);

/// The order of launches that follow one another on one stream: every earlier one has ended.
class SequentialOrder : public LaunchOrder {
public:
  uint32_t op() const override { return current; }
  bool ended(uint32_t earlierOp) const override { return earlierOp < current; }
  std::string nameOf(uint32_t earlierOp) const override { return "launch " + std::to_string(earlierOp); }
  void advance() { ++current; }

private:
  uint32_t current = 1;
};

} // namespace llmc::cudasim
