// What every device promises (runtime/Device.h), run on each device that this build has.
#include "backend/cpu/CpuDevice.h"
#ifdef LLMC_CUDASIM_DRIVER
#include "backend/cuda/CudaDevice.h"
#endif
#include "tests/backend/cuda/CopyCode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

namespace llmc {
namespace {

struct DeviceCase {
  const char *name;
  const char *isa; ///< of a plan that the device runs
  std::function<std::unique_ptr<DeviceApi>()> make;
};

class Device : public ::testing::TestWithParam<DeviceCase> {
protected:
  std::unique_ptr<DeviceApi> device = GetParam().make();

  std::vector<std::byte> read(const std::byte *memory, size_t bytes) {
    std::vector<std::byte> host(bytes, std::byte(0xff));
    EXPECT_TRUE(device->copyOut(host, memory).ok());
    return host;
  }
};

/// A plan that has programs for one target.
Plan planFor(const std::string &target, const std::string &isa) {
  Plan plan;
  plan.targets.push_back({});
  plan.targets.back().target = target;
  plan.targets.back().isa = isa;
  return plan;
}

TEST_P(Device, SaysWhatItIs) {
  EXPECT_FALSE(device->describe().empty());
  ASSERT_TRUE(device->allocate(4096, "a page").ok());
  EXPECT_GT(device->peakBytes(), 0u);
}

TEST_P(Device, MemoryIsZeroedAlignedAndOwn) {
  for (uint64_t bytes : {uint64_t(1), uint64_t(4096), uint64_t(5 << 20) + 3}) {
    Result<std::byte *> first = device->allocate(bytes, "first"), second = device->allocate(bytes, "second");
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*first) % 4096, 0u);
    EXPECT_EQ(read(*first, bytes), std::vector<std::byte>(bytes, std::byte(0)));
    std::vector<std::byte> ones(bytes, std::byte(1));
    ASSERT_TRUE(device->copyIn(*first, ones).ok());
    EXPECT_EQ(read(*second, bytes), std::vector<std::byte>(bytes, std::byte(0)));
    device->release(*first);
    device->release(*second);
  }
  Result<std::byte *> nothing = device->allocate(0, "nothing");
  ASSERT_TRUE(nothing.ok());
  EXPECT_EQ(*nothing, nullptr);
}

TEST_P(Device, CopiesAndZeroes) {
  Result<std::byte *> memory = device->allocate(1000, "values");
  ASSERT_TRUE(memory.ok());
  std::vector<std::byte> values(1000);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = std::byte(i * 7 % 251);
  ASSERT_TRUE(device->copyIn(*memory, values).ok());
  EXPECT_EQ(read(*memory, 1000), values);
  ASSERT_TRUE(device->zero(*memory + 64, 100).ok());
  std::fill_n(values.begin() + 64, 100, std::byte(0));
  EXPECT_EQ(read(*memory, 1000), values);
  device->release(*memory);
}

TEST_P(Device, RefusesAForeignPlanByName) {
  Result<size_t> picked = device->pickTarget(planFor("abacus", "wood"));
  ASSERT_FALSE(picked.ok());
  EXPECT_NE(picked.error().message.find("abacus"), std::string::npos) << picked.error().message;
}

TEST_P(Device, RunsLaunchesInOrderAgainAndAgain) {
  Result<std::byte *> memory = device->allocate(4096, "arena");
  ASSERT_TRUE(memory.ok());
  // Copies 64 bytes on from place to place: the last place is right only when each launch follows the one before.
  Program program;
  for (uint64_t place = 0; place < 3; ++place) {
    Launch launch;
    launch.kind = KernelKind::Copy;
    launch.name = "hop";
    launch.operands = {{Space::arena, place * 64, 64}, {Space::arena, (place + 1) * 64, 64}};
    launch.ints = {4, 1, 1, 1, 1, 1, 16, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1};
    program.launches.push_back(launch);
  }
  program.arenaBytes = 4096;
  Plan plan = planFor(GetParam().name, GetParam().isa);
  std::span<const std::byte> code;
  if (plan.targets[0].target == "cuda") {
    plan.targets[0].entries = {{.name = "copy", .offset = 0, .symbol = "copy", .gridX = 1, .blockX = 16}};
    for (Launch &launch : program.launches)
      launch.entry = 0;
    code = std::as_bytes(std::span(test::kCopyCode));
  }
  EXPECT_FALSE(device->prepare(program, {nullptr, nullptr, *memory}, /*comm=*/nullptr).ok()) << "no code is loaded";
  Status loaded = device->loadCode(plan, plan.targets[0], code);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  Result<std::unique_ptr<PreparedProgram>> prepared =
      device->prepare(program, {nullptr, nullptr, *memory}, /*comm=*/nullptr);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  for (int run = 1; run <= 4; ++run) {
    std::vector<std::byte> values(64, std::byte(run));
    ASSERT_TRUE(device->copyIn(*memory, values).ok());
    std::vector<double> launchMs(3, -1);
    ASSERT_TRUE(run == 2 ? (*prepared)->runProfiled(launchMs).ok() : (*prepared)->run().ok());
    EXPECT_EQ(read(*memory + 3 * 64, 64), values);
    if (run == 2) {
      EXPECT_TRUE(std::all_of(launchMs.begin(), launchMs.end(), [](double ms) { return ms >= 0; }));
    }
  }
  prepared = Error{"given back before the memory it uses"};
  device->release(*memory);
}

#ifdef LLMC_CUDASIM_DRIVER
std::unique_ptr<DeviceApi> makeSimulatedDevice() {
  CudaDeviceOptions options;
  options.driverLibrary = LLMC_CUDASIM_DRIVER;
  auto device = makeCudaDevice(options);
  EXPECT_TRUE(device.ok()) << device.error().message;
  return std::move(*device);
}
#endif

INSTANTIATE_TEST_SUITE_P(All, Device,
                         ::testing::Values(
#ifdef LLMC_CUDASIM_DRIVER
                             DeviceCase{"cuda", "sm_80", makeSimulatedDevice},
#endif
                             DeviceCase{"cpu", "x86-64-v3", [] { return makeCpuDevice(2); }}),
                         [](const auto &info) { return std::string(info.param.name); });

} // namespace
} // namespace llmc
