// Bytes by kind of launch, counted by hand.
#include "backend/LaunchTraffic.h"

#include <gtest/gtest.h>

namespace llmc {
namespace {

Launch launchOf(KernelKind kind, std::vector<uint64_t> bytes, std::vector<int64_t> ints) {
  Launch launch;
  launch.kind = kind;
  for (uint64_t size : bytes)
    launch.operands.push_back({Space::arena, 4096 * launch.operands.size(), size});
  launch.ints = std::move(ints);
  return launch;
}

TEST(LaunchTraffic, ACopyMovesWhatItCopies) {
  // 3 x 5 elements of 4 bytes out of 1000 bytes and into 2000.
  EXPECT_EQ(trafficBytes(launchOf(KernelKind::Copy, {1000, 2000},
                                  {4, 1, 1, 1, 1, 3, 5, 0, 0, 0, 0, 0, 10, 1, 0, 0, 0, 0, 0, 20, 1})),
            2 * 3 * 5 * 4);
}

TEST(LaunchTraffic, OperandsAreTouchedOnce) {
  EXPECT_EQ(trafficBytes(launchOf(KernelKind::Zero, {100}, {})), 100);
  Launch packed = launchOf(KernelKind::Attention, {300, 300, 300, 0, 100, 10, 50}, std::vector<int64_t>(18, 1));
  packed.operands[1] = packed.operands[2] = packed.operands[0];
  EXPECT_EQ(trafficBytes(packed), 300 + 100 + 10 + 50);
}

TEST(LaunchTraffic, AccumulatingReadsTheSumToo) {
  std::vector<int64_t> ints(17, 0);
  EXPECT_EQ(trafficBytes(launchOf(KernelKind::MatMul, {100, 200, 0, 50, 0}, ints)), 350);
  ints[15] = 1;
  EXPECT_EQ(trafficBytes(launchOf(KernelKind::MatMul, {100, 200, 0, 50, 0}, ints)), 400);
}

TEST(LaunchTraffic, AnEmbeddingReadsTheRowsOfItsTokens) {
  // n = 2 tokens of a table of v = 10 rows.
  EXPECT_EQ(trafficBytes(launchOf(KernelKind::Embedding, {1000, 16, 200}, {2, 10, 25, 0, 0})), 200 + 16 + 200);
}

} // namespace
} // namespace llmc
