// Streams and waits from the memory that launches touch.
#include "backend/cuda/ProgramOrder.h"

#include <gmock/gmock.h>

namespace llmc::cuda::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Launch touching(uint32_t stream, std::vector<uint64_t> offsets, KernelKind kind = KernelKind::Generated) {
  Launch launch;
  launch.kind = kind;
  launch.stream = stream;
  for (uint64_t offset : offsets)
    launch.operands.push_back({Space::arena, offset, 64});
  return launch;
}

TEST(CudaProgramOrder, oneStreamNeedsNoEvents) {
  Program program;
  program.launches = {touching(0, {0}), touching(0, {0}), touching(0, {64})};
  ProgramOrder order = orderOf(program, /*hasRanks=*/true);
  EXPECT_EQ(order.numStreams, 1u);
  EXPECT_EQ(order.commStream, 0u);
  for (const ProgramOrder::Step &step : order.steps)
    EXPECT_TRUE(step.stream == 0 && step.waits.empty() && !step.isAwaited);
}

TEST(CudaProgramOrder, streamsWaitWhereTheyTouchTheSameMemory) {
  Program program;
  program.launches = {touching(0, {0}), touching(5, {64}), touching(5, {0, 128}), touching(0, {64}),
                      touching(0, {128})};
  ProgramOrder order = orderOf(program, false);
  EXPECT_EQ(order.numStreams, 2u);
  EXPECT_EQ(order.steps[1].stream, 1u);
  EXPECT_THAT(order.steps[1].waits, IsEmpty()) << "other memory";
  EXPECT_THAT(order.steps[2].waits, ElementsAre(0u));
  EXPECT_THAT(order.steps[3].waits, ElementsAre(1u));
  EXPECT_THAT(order.steps[4].waits, ElementsAre(2u));
  EXPECT_TRUE(order.steps[0].isAwaited && order.steps[1].isAwaited && order.steps[2].isAwaited);
  EXPECT_FALSE(order.steps[3].isAwaited || order.steps[4].isAwaited);
}

TEST(CudaProgramOrder, aWaitThatAnotherOneImpliesIsLeftOut) {
  Program program;
  // 0 on A, then B waits for it, then C waits for B: C has waited for A too.
  program.launches = {touching(0, {0}), touching(1, {0, 64}), touching(2, {64, 0}), touching(2, {0})};
  ProgramOrder order = orderOf(program, false);
  EXPECT_THAT(order.steps[2].waits, ElementsAre(1u));
  EXPECT_THAT(order.steps[3].waits, IsEmpty());
}

TEST(CudaProgramOrder, collectivesHaveAStreamOfTheirOwn) {
  Program program;
  program.launches = {touching(0, {0}),
                      touching(0, {64}),
                      touching(0, {0, 64}, KernelKind::AllReduceStart),
                      touching(0, {256}),
                      touching(0, {0, 64}, KernelKind::AllReduceWait),
                      touching(0, {64})};
  ProgramOrder order = orderOf(program, /*hasRanks=*/true);
  EXPECT_EQ(order.commStream, 1u);
  EXPECT_EQ(order.steps[2].stream, 1u);
  EXPECT_THAT(order.steps[2].waits, ElementsAre(1u)) << "which comes after launch 0 on the same stream";
  EXPECT_THAT(order.steps[3].waits, IsEmpty()) << "runs beside the collective";
  EXPECT_THAT(order.steps[4].waits, ElementsAre(2u));
  EXPECT_THAT(order.steps[5].waits, IsEmpty());
  ProgramOrder alone = orderOf(program, /*hasRanks=*/false);
  EXPECT_EQ(alone.numStreams, 1u);
  EXPECT_EQ(messageOf(program.launches[2]), (BufferRef{Space::arena, 0, 128}));
}

} // namespace
} // namespace llmc::cuda::test
