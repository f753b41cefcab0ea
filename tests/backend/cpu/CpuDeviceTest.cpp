// The device itself: memory, the choice of a target, loaded code and the grid it runs over, errors and profiles.
#include "backend/cpu/CpuMemory.h"
#include "tests/backend/cpu/LaunchRunner.h"

#include <fstream>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

/// Compiled from C at -O1: adds 1000 * (rowEnd - rowBegin) + (colEnd - colBegin) to each element of its block of
/// operands[0], a float matrix with operands[1][0] columns.
constexpr uint8_t kBlockCode[] = {
    0x49, 0x89, 0xd1, 0x48, 0x8b, 0x17, 0x48, 0x8b, 0x47, 0x08, 0x48, 0x8b, 0x00, 0x4c, 0x39, 0xce, 0x7d, 0x6d, 0x4c,
    0x89, 0xcf, 0x48, 0x29, 0xf7, 0x48, 0x69, 0xff, 0xe8, 0x03, 0x00, 0x00, 0x4d, 0x89, 0xc2, 0x49, 0x29, 0xca, 0x4c,
    0x01, 0xd7, 0x4c, 0x8d, 0x14, 0x85, 0x00, 0x00, 0x00, 0x00, 0x48, 0x0f, 0xaf, 0xc6, 0x4c, 0x01, 0xc0, 0x48, 0x8d,
    0x14, 0x82, 0x48, 0x89, 0xc8, 0x4c, 0x29, 0xc0, 0x4c, 0x8d, 0x1c, 0x85, 0x00, 0x00, 0x00, 0x00, 0xeb, 0x2d, 0x66,
    0x0f, 0xef, 0xc9, 0xf3, 0x48, 0x0f, 0x2a, 0xcf, 0x4a, 0x8d, 0x04, 0x1a, 0x0f, 0x28, 0xc1, 0xf3, 0x0f, 0x58, 0x00,
    0xf3, 0x0f, 0x11, 0x00, 0x48, 0x83, 0xc0, 0x04, 0x48, 0x39, 0xd0, 0x75, 0xec, 0x48, 0x83, 0xc6, 0x01, 0x4c, 0x01,
    0xd2, 0x49, 0x39, 0xf1, 0x74, 0x07, 0x4c, 0x39, 0xc1, 0x7c, 0xce, 0xeb, 0xed, 0xc3};

Launch blockLaunch(int64_t rows, int64_t cols, int64_t rowBlock, int64_t colBlock) {
  Launch launch;
  launch.kind = KernelKind::Generated;
  launch.name = "block";
  launch.operands = {{Space::arena, 0, uint64_t(rows * cols) * 4}, {Space::state, 0, 8}};
  launch.entry = 1;
  launch.ints = {rows, cols, rowBlock, colBlock};
  return launch;
}

TargetPrograms blockTarget() {
  TargetPrograms target;
  target.target = "cpu";
  target.isa = isaLevelName(testIsa());
  target.entries = {{.name = "other"}, {.name = "block", .offset = 64}};
  return target;
}

std::vector<std::byte> blockBlob() {
  std::vector<std::byte> blob(64 + sizeof(kBlockCode));
  std::memcpy(blob.data() + 64, kBlockCode, sizeof(kBlockCode));
  return blob;
}

TEST(CpuDevice, RunsLoadedCodeOverEveryBlockOnce) {
  for (int threads : {1, 2, 3})
    for (auto [rowBlock, colBlock] : {std::pair<int64_t, int64_t>{1, 23}, {4, 8}, {100, 100}, {10, 5}}) {
      const int64_t rows = 10, cols = 23;
      auto device = makeCappedCpuDevice({.threads = threads, .maxIsa = testIsa()});
      ASSERT_TRUE(device->loadCode({}, blockTarget(), blockBlob()).ok());
      DeviceSpaces spaces;
      spaces.arena = *device->allocate(rows * cols * 4, "the arena");
      spaces.state = *device->allocate(8, "the state");
      std::memcpy(spaces.state, &cols, 8);
      Program program;
      program.launches = {blockLaunch(rows, cols, rowBlock, colBlock)};
      auto prepared = device->prepare(program, spaces, /*comm=*/nullptr);
      ASSERT_TRUE(prepared.ok()) << prepared.error().message;
      double ms = -1;
      ASSERT_TRUE((*prepared)->run().ok());
      ASSERT_TRUE((*prepared)->runProfiled({&ms, 1}).ok());
      EXPECT_GE(ms, 0);
      const float *got = reinterpret_cast<const float *>(spaces.arena);
      for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) {
          int64_t blockRows = std::min(rowBlock, rows - r / rowBlock * rowBlock);
          int64_t blockCols = std::min(colBlock, cols - c / colBlock * colBlock);
          ASSERT_EQ(got[r * cols + c], float(2 * (1000 * blockRows + blockCols))) << r << ", " << c;
        }
    }
}

TEST(CpuDevice, RefusesAnEntryThatIsNotThere) {
  auto device = makeCappedCpuDevice({.threads = 1, .maxIsa = testIsa()});
  ASSERT_TRUE(device->loadCode({}, blockTarget(), blockBlob()).ok());
  Program program;
  program.launches = {blockLaunch(1, 1, 1, 1)};
  program.launches[0].entry = 2;
  auto prepared = device->prepare(program, {}, /*comm=*/nullptr);
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().message, "generated 'block': code entry 2 is not in the loaded code");
}

TEST(CpuDevice, PicksTheHighestLevelItHas) {
  auto device = makeCappedCpuDevice({.threads = 1, .maxIsa = IsaLevel::v3});
  Plan plan;
  for (const char *isa : {"sm_80", "x86-64-v4", "x86-64-v3", "x86-64-v4-bf16"}) {
    TargetPrograms target;
    target.target = std::string(isa) == "sm_80" ? "cuda" : "cpu";
    target.isa = isa;
    plan.targets.push_back(target);
  }
  ASSERT_TRUE(device->pickTarget(plan).ok());
  EXPECT_EQ(*device->pickTarget(plan), 2u);
  if (detectIsaLevel() == IsaLevel::v4Bf16) {
    EXPECT_EQ(*makeCpuDevice(1)->pickTarget(plan), 3u);
  }
  plan.targets.erase(plan.targets.begin() + 2);
  auto picked = device->pickTarget(plan);
  ASSERT_FALSE(picked.ok());
  EXPECT_EQ(picked.error().message,
            "the plan has cuda sm_80, cpu x86-64-v4, cpu x86-64-v4-bf16; this device is cpu x86-64-v3");
  EXPECT_FALSE(device->loadCode(plan, plan.targets[1], {}).ok());
  EXPECT_FALSE(device->pickTarget(Plan()).ok());
}

TEST(CpuDevice, IsaLevelsHaveNames) {
  for (IsaLevel level : {IsaLevel::v3, IsaLevel::v4, IsaLevel::v4Bf16})
    EXPECT_EQ(isaLevelOf(isaLevelName(level)), level);
  EXPECT_EQ(isaLevelOf("x86-64-v2"), std::nullopt);
}

uint64_t residentBytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * 4096;
}

TEST(CpuDevice, MemoryIsZeroAlignedAndFreeUntilTouched) {
  auto device = openTestDevice(1);
  uint64_t before = residentBytes();
  std::vector<std::byte *> all;
  for (uint64_t bytes : {uint64_t(1), uint64_t(5000), uint64_t(3) << 20, uint64_t(2) << 30}) {
    Result<std::byte *> memory = device->allocate(bytes, "a test");
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(*memory) % 4096, 0u);
    EXPECT_EQ((*memory)[0], std::byte(0));
    EXPECT_EQ((*memory)[bytes - 1], std::byte(0));
    all.push_back(*memory);
  }
  EXPECT_LT(residentBytes(), before + (uint64_t(64) << 20));
  for (std::byte *memory : all)
    device->release(memory);
  EXPECT_EQ(*device->allocate(0, "nothing"), nullptr);
  Result<std::byte *> tooMuch = device->allocate(UINT64_MAX - 5, "everything");
  ASSERT_FALSE(tooMuch.ok());
  uint64_t most = CpuMemory::ofMachine();
  EXPECT_EQ(tooMuch.error().message, "cannot allocate 18446744073709551610 bytes for everything: 0 are in use, this "
                                     "machine has " +
                                         std::to_string(most) + " in all");
  // Each would fit, both do not.
  ASSERT_TRUE(device->allocate(most / 2, "one half").ok());
  EXPECT_FALSE(device->allocate(most / 2 + 8192, "more than the other").ok());
  EXPECT_GT(device->peakBytes(), uint64_t(1) << 20);
}

TEST(CpuDevice, Copies) {
  auto device = openTestDevice(1);
  std::byte *memory = *device->allocate(100, "a test");
  std::vector<std::byte> in(100, std::byte(7)), out(100);
  ASSERT_TRUE(device->copyIn(memory, in).ok());
  ASSERT_TRUE(device->zero(memory, 50).ok());
  ASSERT_TRUE(device->copyOut(out, memory).ok());
  EXPECT_EQ(out[49], std::byte(0));
  EXPECT_EQ(out[50], std::byte(7));
}

} // namespace
} // namespace llmc::test
