// Launches on the CPU: operands lie one after the other in an arena, each followed by a page of a known byte.
#include "tests/backend/cpu/LaunchRunner.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>

namespace llmc::test {

static constexpr std::byte kGuard{0xa5};
static constexpr uint64_t kGuardBytes = 4096;

IsaLevel testIsa() {
  IsaLevel level = detectIsaLevel().value_or(IsaLevel::v3);
  const char *name = std::getenv("LLMC_TEST_ISA");
  return name ? std::min(level, isaLevelOf(name).value()) : level;
}

std::unique_ptr<DeviceApi> openTestDevice(int threads) {
  auto device = makeCappedCpuDevice({.threads = threads, .maxIsa = testIsa()});
  TargetPrograms target;
  target.target = "cpu";
  target.isa = isaLevelName(testIsa());
  Status loaded = device->loadCode({}, target, {});
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return device;
}

Result<std::unique_ptr<PreparedProgram>> LaunchRunner::prepare() {
  device = openTestDevice(threads);
  uint64_t arenaBytes = 0;
  for (const auto &[name, bytes] : initial) {
    launch.operands[indexIn(kernelInfo(launch.kind).operands, name)] = {Space::arena, arenaBytes, bytes.size()};
    arenaBytes += (bytes.size() + 63) / 64 * 64 + kGuardBytes;
  }
  for (const auto &[name, placed] : aliases)
    launch.operands[indexIn(kernelInfo(launch.kind).operands, name)] =
        launch.operands[indexIn(kernelInfo(launch.kind).operands, placed)];
  Result<std::byte *> memory = device->allocate(arenaBytes, "the arena");
  LLMC_RETURN_IF_ERROR(memory);
  arena = *memory;
  std::fill_n(arena, arenaBytes, kGuard);
  for (const auto &[name, bytes] : initial)
    std::copy(bytes.begin(), bytes.end(),
              arena + launch.operands[indexIn(kernelInfo(launch.kind).operands, name)].offset);

  Program program;
  program.launches = {launch};
  program.arenaBytes = arenaBytes;
  DeviceSpaces spaces;
  spaces.arena = arena;
  return device->prepare(program, spaces, /*comm=*/nullptr);
}

Status LaunchRunner::run() {
  auto prepared = prepare();
  LLMC_RETURN_IF_ERROR(prepared);
  LLMC_RETURN_IF_ERROR((*prepared)->run());
  for (const BufferRef &ref : launch.operands)
    if (ref.space == Space::arena)
      for (uint64_t i = 0; i < kGuardBytes; ++i)
        if (arena[ref.offset + ref.bytes + i] != kGuard)
          return Error{"a guard byte was overwritten"};
  return {};
}

std::span<const std::byte> LaunchRunner::content(const std::string &name) const {
  const BufferRef &ref = launch.operands[indexIn(kernelInfo(launch.kind).operands, name)];
  return {arena + ref.offset, ref.bytes};
}

} // namespace llmc::test
