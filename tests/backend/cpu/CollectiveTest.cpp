// Starts and waits of a prepared program: sums over ranks that are threads, nothing at all on one rank, and what a
// damaged launch is told.
#include "tests/backend/cpu/LaunchRunner.h"
#include "tests/runtime/ThreadRanks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

using ::testing::ElementsAre;

/// Parts of 3, 1 and 16 elements: bytes 0 to 12, 64 to 68, 128 to 192 of the arena when they are f32.
std::vector<BufferRef> messageParts(ElementType type, uint64_t begin = 0) {
  uint64_t size = elementBytes(type);
  return {{Space::arena, begin, 3 * size}, {Space::arena, begin + 64, size}, {Space::arena, begin + 128, 16 * size}};
}

Launch collective(KernelKind kind, std::vector<BufferRef> parts, int64_t position, ElementType type) {
  Launch launch;
  launch.kind = kind;
  launch.name = "block.weight";
  launch.operands = std::move(parts);
  launch.ints = {position, static_cast<int64_t>(type)};
  return launch;
}

/// Two messages in flight at once: the first at byte 0, the second at byte 256.
Program twoMessages(ElementType type) {
  Program program;
  for (KernelKind kind : {KernelKind::AllReduceStart, KernelKind::AllReduceWait})
    for (int64_t position : {0, 1})
      program.launches.push_back(
          collective(kind, messageParts(type, 256 * static_cast<uint64_t>(position)), position, type));
  program.arenaBytes = 512;
  return program;
}

Status sumOnRank(CommApi *comm, int rank, ElementType type, std::vector<float> &sums) {
  std::unique_ptr<DeviceApi> device = openTestDevice(1);
  std::byte *arena = *device->allocate(512, "the arena");
  Result<std::unique_ptr<PreparedProgram>> program =
      device->prepare(twoMessages(type), {nullptr, nullptr, arena}, comm);
  LLMC_RETURN_IF_ERROR(program);
  for (int run = 0; run < 2; ++run) {
    sums.clear();
    for (uint64_t message = 0; message < 2; ++message)
      for (uint64_t i = 0; i < 512 / 2 / elementBytes(type); ++i) {
        float value = static_cast<float>(1 + message + 10 * static_cast<uint64_t>(rank));
        uint16_t half = asBf16({value})[0];
        std::memcpy(arena + 256 * message + i * elementBytes(type),
                    type == ElementType::f32 ? static_cast<void *>(&value) : &half, elementBytes(type));
      }
    LLMC_RETURN_IF_ERROR((*program)->run());
    for (uint64_t at : {0u, 64u, 128u + 15u * static_cast<unsigned>(elementBytes(type)), 256u}) {
      float value = 0;
      uint16_t half = 0;
      std::memcpy(&value, arena + at, 4);
      std::memcpy(&half, arena + at, 2);
      sums.push_back(type == ElementType::f32 ? value : fromBf16({half})[0]);
    }
  }
  program = Error{"given back before the memory it uses"};
  device->release(arena);
  return {};
}

TEST(Collectives, SumEveryPartOverRanksAgainAndAgain) {
  for (ElementType type : {ElementType::f32, ElementType::bf16}) {
    ThreadRanks ranks(3);
    std::array<std::vector<float>, 3> sums;
    Status status =
        ranks.run([&](int rank) { return sumOnRank(&ranks.of(rank), rank, type, sums[static_cast<size_t>(rank)]); });
    ASSERT_TRUE(status) << status.error().message;
    for (const std::vector<float> &ofRank : sums)
      EXPECT_THAT(ofRank, ElementsAre(33, 33, 33, 36));
    EXPECT_EQ(ranks.numSums(), 4u);
  }
}

TEST(Collectives, AreNothingOnOneRank) {
  std::vector<float> sums;
  Status status = sumOnRank(/*comm=*/nullptr, 0, ElementType::f32, sums);
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_THAT(sums, ElementsAre(1, 1, 1, 2));
}

TEST(Collectives, NameTheLaunchThatFails) {
  ThreadRanks ranks(2);
  // Rank 1 hands over one message and leaves; rank 0 waits for it at the second.
  std::vector<float> sums;
  std::string message;
  Status status = ranks.run([&](int rank) -> Status {
    if (rank == 1)
      return Error{"killed"};
    Status failed = sumOnRank(&ranks.of(rank), rank, ElementType::f32, sums);
    message = failed ? "" : failed.error().message;
    return failed;
  });
  EXPECT_FALSE(status);
  EXPECT_EQ(message, "all_reduce_wait 'block.weight': another rank has failed");
}

TEST(Collectives, RefuseWhatIsNoMessage) {
  struct Case {
    const char *message;
    void (*damage)(Launch &);
  };
  const Case cases[] = {
      {"position 1 of a program with 1 launches", [](Launch &launch) { launch.ints[0] = 1; }},
      {"position -1 of a program with 1 launches", [](Launch &launch) { launch.ints[0] = -1; }},
      {"a sum over ranks of elements that are neither f32 nor bf16",
       [](Launch &launch) { launch.ints[1] = static_cast<int64_t>(ElementType::i64); }},
      {"part 1 does not follow the part before it", [](Launch &launch) { launch.operands[1].offset = 192; }},
      {"part 2 does not follow the part before it", [](Launch &launch) { launch.operands[1].bytes = 68; }},
      {"part 0 does not follow the part before it", [](Launch &launch) { launch.operands[0].bytes = 11; }},
  };
  for (KernelKind kind : {KernelKind::AllReduceStart, KernelKind::AllReduceWait})
    for (const Case &wrong : cases) {
      std::unique_ptr<DeviceApi> device = openTestDevice(1);
      std::byte *arena = *device->allocate(512, "the arena");
      Program program;
      program.launches = {collective(kind, messageParts(ElementType::f32), 0, ElementType::f32)};
      wrong.damage(program.launches[0]);
      auto prepared = device->prepare(program, {nullptr, nullptr, arena}, /*comm=*/nullptr);
      ASSERT_FALSE(prepared.ok()) << wrong.message;
      EXPECT_EQ(prepared.error().message, std::string(kernelInfo(kind).name) + " 'block.weight': " + wrong.message);
      device->release(arena);
    }
}

} // namespace
} // namespace llmc::test
