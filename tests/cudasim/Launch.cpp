// Warps as groups of lanes at one instruction. The group at the lowest instruction runs, and joins the others where
// they meet: for the code that compilers emit, blocks in order, that reconverges where a GPU does.
#include "tests/cudasim/Launch.h"
#include "tests/cudasim/Context.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <random>

namespace llmc::cudasim {

namespace {

struct Group {
  uint32_t pc = 0;
  uint32_t mask = 0;
};

struct FreeAligned {
  void operator()(std::byte *memory) const { std::free(memory); }
};

struct Warp {
  std::unique_ptr<std::byte, FreeAligned> registers;
  Group now;
  /// Sorted, the lowest instruction last.
  std::vector<Group> waiting;
  uint32_t allLanes = 0; ///< that the warp began with
  uint32_t liveMask = 0;
  uint16_t warpEpoch = 0;
  bool atBarrier = false;
  uint32_t barrierPc = 0;
  uint64_t executed = 0;

  bool done() const { return liveMask == 0; }
};

class GridRun {
public:
  GridRun(const Kernel &kernel, const LaunchShape &shape, std::span<const std::byte> arguments, Memory &memory,
          const LaunchOptions &options)
      : kernel(kernel), shape(shape), options(options), random(options.seed),
        numThreads(shape.block[0] * shape.block[1] * shape.block[2]), warps((numThreads + 31) / 32),
        local(kernel.localBytes == 0 ? 0 : warps.size() * kWarpLanes) {
    context.kernel = &kernel;
    context.parameters = arguments;
    context.memory = &memory;
    context.order = options.order;
    context.live = options.live;
    context.blockThreads = shape.block;
    context.shared = &shared;
    context.local = &local;
    shared.data.resize(kernel.staticSharedBytes + shape.dynamicSharedBytes);
    shared.shadow = Shadow(shared.data.size());
    for (OnChipMemory &memoryOfThread : local) {
      memoryOfThread.data.resize(kernel.localBytes);
      memoryOfThread.shadow = Shadow(kernel.localBytes);
    }
    for (size_t i = 0; i < warps.size(); ++i)
      makeRegisters(warps[i], i);
  }

  std::optional<Fault> run(LaunchCounts *counts) {
    uint64_t numBlocks = uint64_t(shape.grid[0]) * shape.grid[1] * shape.grid[2];
    // A start and a stride without common factor with the number of blocks visit each block once.
    uint64_t block = random() % numBlocks, stride = random() % numBlocks + 1;
    while (std::gcd(stride, numBlocks) != 1)
      ++stride;
    for (uint64_t i = 0; i < numBlocks && !context.fault; ++i) {
      runBlock(block);
      block = (block + stride) % numBlocks;
    }
    if (counts)
      *counts = total;
    return context.fault;
  }

private:
  uint32_t *special(Warp &warp, Special which) {
    return reinterpret_cast<uint32_t *>(warp.registers.get()) + static_cast<uint32_t>(which) * kWarpLanes;
  }

  void fillSpecial(Warp &warp, Special which, uint32_t value) { std::fill_n(special(warp, which), kWarpLanes, value); }

  void makeRegisters(Warp &warp, size_t index) {
    size_t bytes = (kernel.fileBytes + 127) / 64 * 64;
    warp.registers.reset(static_cast<std::byte *>(std::aligned_alloc(64, bytes)));
    std::copy(kernel.constants.begin(), kernel.constants.end(), warp.registers.get() + kSpecialBytes);
    for (uint32_t lane = 0; lane < kWarpLanes; ++lane) {
      uint32_t thread = index * kWarpLanes + lane;
      special(warp, Special::tidX)[lane] = thread % shape.block[0];
      special(warp, Special::tidY)[lane] = thread / shape.block[0] % shape.block[1];
      special(warp, Special::tidZ)[lane] = thread / shape.block[0] / shape.block[1];
      special(warp, Special::laneId)[lane] = lane;
    }
    fillSpecial(warp, Special::warpId, index);
    for (uint32_t i = 0; i < 3; ++i) {
      fillSpecial(warp, static_cast<Special>(static_cast<uint32_t>(Special::ntidX) + i), shape.block[i]);
      fillSpecial(warp, static_cast<Special>(static_cast<uint32_t>(Special::nctaidX) + i), shape.grid[i]);
    }
  }

  void startBlock(uint64_t block) {
    context.linearBlock = block;
    context.block = {static_cast<uint32_t>(block % shape.grid[0]),
                     static_cast<uint32_t>(block / shape.grid[0] % shape.grid[1]),
                     static_cast<uint32_t>(block / shape.grid[0] / shape.grid[1])};
    context.blockEpoch = 0;
    shared.shadow.reset();
    for (OnChipMemory &memoryOfThread : local)
      memoryOfThread.shadow.reset();
    for (size_t i = 0; i < warps.size(); ++i) {
      Warp &warp = warps[i];
      // Registers start with a value that would show: a large negative float, an odd address.
      std::memset(warp.registers.get() + kernel.firstRegister, 0xcb, kernel.fileBytes - kernel.firstRegister);
      for (uint32_t axis = 0; axis < 3; ++axis)
        fillSpecial(warp, static_cast<Special>(static_cast<uint32_t>(Special::ctaidX) + axis), context.block[axis]);
      uint32_t here = std::min<uint32_t>(kWarpLanes, numThreads - i * kWarpLanes);
      warp.allLanes = warp.liveMask = here == kWarpLanes ? ~0u : (1u << here) - 1;
      warp.now = {0, warp.liveMask};
      warp.waiting.clear();
      warp.warpEpoch = 0;
      warp.atBarrier = false;
      warp.executed = 0;
    }
  }

  void runBlock(uint64_t block) {
    startBlock(block);
    std::vector<uint32_t> runnable;
    while (!context.fault) {
      runnable.clear();
      for (uint32_t i = 0; i < warps.size(); ++i)
        if (!warps[i].done() && !warps[i].atBarrier)
          runnable.push_back(i);
      if (runnable.empty()) {
        if (!passBarrier())
          return;
        continue;
      }
      uint64_t dice = random();
      uint32_t index = runnable[dice % runnable.size()];
      runWarp(warps[index], index, 16 + (dice >> 32) % 240);
    }
  }

  /// All warps wait or have left. False when the block is done or the barrier can never be passed.
  bool passBarrier() {
    const Warp *first = nullptr;
    for (const Warp &warp : warps)
      if (warp.atBarrier && !first)
        first = &warp;
    if (!first)
      return false;
    for (size_t i = 0; i < warps.size(); ++i) {
      if (warps[i].atBarrier && warps[i].barrierPc == first->barrierPc)
        continue;
      context.warp = i;
      std::string why = warps[i].done()
                            ? "threads have left the kernel while others wait"
                            : fmt::format("other threads wait at line {}", kernel.code[first->barrierPc].line);
      context.report(FaultKind::barrierDivergence, kernel.code[warps[i].done() ? first->barrierPc : warps[i].barrierPc],
                     0, 0, why);
      return false;
    }
    ++context.blockEpoch;
    for (Warp &warp : warps)
      warp.atBarrier = false;
    return true;
  }

  void wait(Warp &warp, Group group) {
    auto place = std::find_if(warp.waiting.begin(), warp.waiting.end(),
                              [&](const Group &other) { return other.pc <= group.pc; });
    if (place != warp.waiting.end() && place->pc == group.pc)
      place->mask |= group.mask;
    else
      warp.waiting.insert(place, group);
  }

  /// Puts the group with the lowest instruction first and joins those that stand at the same one.
  void regroup(Warp &warp) {
    if (warp.now.mask != 0)
      wait(warp, warp.now);
    warp.now = {};
    if (warp.waiting.empty())
      return;
    warp.now = warp.waiting.back();
    warp.waiting.pop_back();
  }

  bool waitsForLanes(const Group &group) const {
    InstructionKind kind = kernel.code[group.pc].kind;
    return kind == InstructionKind::exchange || kind == InstructionKind::barrier;
  }
  /// Lanes at a barrier or an exchange wait for the others, as long as these are not waiting themselves.
  void letOthersCome(Warp &warp) {
    if (warp.waiting.empty() || !waitsForLanes(warp.now))
      return;
    auto other = std::find_if(warp.waiting.rbegin(), warp.waiting.rend(),
                              [&](const Group &group) { return !waitsForLanes(group); });
    if (other == warp.waiting.rend())
      return;
    Group next = *other;
    warp.waiting.erase(std::next(other).base());
    wait(warp, warp.now);
    warp.now = next;
  }

  void runWarp(Warp &warp, uint32_t index, uint32_t quantum) {
    context.registers = warp.registers.get();
    context.warp = index;
    context.warpEpoch = warp.warpEpoch;
    context.liveMask = warp.liveMask;
    uint32_t steps = 0;
    uint64_t lanes = 0;
    for (; steps < quantum && !warp.done() && !warp.atBarrier && !context.fault; ++steps) {
      letOthersCome(warp);
      lanes += std::popcount(warp.now.mask);
      step(warp);
      if (!warp.waiting.empty() && warp.now.pc >= warp.waiting.back().pc)
        regroup(warp);
    }
    warp.warpEpoch = context.warpEpoch;
    warp.executed += steps;
    total.warpInstructions += steps;
    total.laneInstructions += lanes;
    if (warp.executed > options.maxWarpInstructions)
      context.report(FaultKind::endless, kernel.code[warp.now.pc], 0, 0,
                     fmt::format("{} instructions in one warp", warp.executed));
  }

  void step(Warp &warp) {
    const Instruction &in = kernel.code[warp.now.pc];
    uint32_t mask = warp.now.mask;
    if (in.guard != Guard::none) {
      uint32_t guard = context.predicate(in.guardSlot);
      mask &= in.guard == Guard::whenTrue ? guard : ~guard;
    }
    context.mask = mask;
    switch (in.kind) {
    case InstructionKind::lanes:
    case InstructionKind::memory:
    case InstructionKind::exchange:
      if (mask != 0)
        in.run(context, in);
      ++warp.now.pc;
      return;
    case InstructionKind::branch:
      branch(warp, in, mask);
      return;
    case InstructionKind::barrier:
      if (mask != warp.allLanes) {
        context.report(FaultKind::barrierDivergence, in, std::countr_zero(warp.allLanes), 0,
                       fmt::format("of lanes {:#010x} only {:#010x} are here", warp.allLanes, mask));
        return;
      }
      warp.atBarrier = true;
      warp.barrierPc = warp.now.pc++;
      return;
    case InstructionKind::leave:
      warp.liveMask &= ~mask;
      context.liveMask = warp.liveMask;
      warp.now.mask &= ~mask;
      ++warp.now.pc;
      if (warp.now.mask == 0)
        regroup(warp);
      return;
    }
  }

  void branch(Warp &warp, const Instruction &in, uint32_t taken) {
    auto target = static_cast<uint32_t>(in.immediate);
    uint32_t stay = warp.now.mask & ~taken;
    if (stay == 0) {
      warp.now.pc = target;
    } else if (taken == 0) {
      ++warp.now.pc;
    } else {
      wait(warp, {target, taken});
      warp.now = {warp.now.pc + 1, stay};
      regroup(warp);
    }
  }

  const Kernel &kernel;
  const LaunchShape &shape;
  const LaunchOptions &options;
  std::mt19937_64 random;
  uint32_t numThreads;
  std::vector<Warp> warps;
  OnChipMemory shared;
  std::vector<OnChipMemory> local;
  Context context;
  LaunchCounts total;
};

} // namespace

std::string launchProblem(const Kernel &kernel, const LaunchShape &shape) {
  uint64_t threads = 1, blocks = 1;
  for (int axis = 0; axis < 3; ++axis) {
    threads *= shape.block[axis];
    blocks *= shape.grid[axis];
  }
  if (threads == 0 || blocks == 0)
    return "a grid or block without threads";
  if (threads > 1024 || shape.block[2] > 64)
    return fmt::format("{} threads in a block", threads);
  if (shape.grid[1] > 65535 || shape.grid[2] > 65535 || shape.grid[0] > 0x7fffffff)
    return "the grid's y and z go to 65535, x to 2^31 - 1";
  if (blocks > 0xffffffff)
    return "the simulator counts blocks in 32 bits";
  if (kernel.requiredThreads[0] != 0 && shape.block != kernel.requiredThreads)
    return fmt::format(".reqntid asks for a block of ({}, {}, {})", kernel.requiredThreads[0],
                       kernel.requiredThreads[1], kernel.requiredThreads[2]);
  if (kernel.maxThreads != 0 && threads > kernel.maxThreads)
    return fmt::format(".maxntid allows {} threads, not {}", kernel.maxThreads, threads);
  if (kernel.staticSharedBytes + uint64_t(shape.dynamicSharedBytes) > shape.maxSharedBytes)
    return fmt::format("{} bytes of shared memory, {} allowed",
                       kernel.staticSharedBytes + uint64_t(shape.dynamicSharedBytes), shape.maxSharedBytes);
  return "";
}

std::optional<Fault> launch(const Kernel &kernel, const LaunchShape &shape, std::span<const std::byte> arguments,
                            Memory &memory, const LaunchOptions &options, LaunchCounts *counts) {
  if (std::string problem = launchProblem(kernel, shape); !problem.empty())
    return Fault{.kind = FaultKind::wrongLaunch, .kernel = kernel.name, .detail = problem};
  if (arguments.size() != kernel.parameterBytes)
    return Fault{.kind = FaultKind::wrongArguments,
                 .kernel = kernel.name,
                 .detail = fmt::format("{} bytes of arguments, the parameters have {}", arguments.size(),
                                       kernel.parameterBytes)};
  return GridRun(kernel, shape, arguments, memory, options).run(counts);
}

} // namespace llmc::cudasim
