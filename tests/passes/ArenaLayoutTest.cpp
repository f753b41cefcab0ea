// Layouts of random lifetimes: nothing that lives at the same time overlaps, and little is lost against the lower
// bound.
#include "passes/ArenaLayout.h"

#include <gtest/gtest.h>
#include <random>

namespace llmc {
namespace {

std::vector<ArenaValue> draw(uint32_t seed, unsigned count, unsigned launches) {
  std::mt19937 random(seed);
  std::vector<ArenaValue> values;
  for (unsigned i = 0; i < count; ++i) {
    unsigned first = random() % launches, length = random() % 4 == 0 ? random() % launches : random() % 3;
    values.push_back({int64_t(random() % 100000 + 1), first, std::min(first + length, launches - 1)});
  }
  return values;
}

void expectDisjoint(llvm::ArrayRef<ArenaValue> values, const ArenaLayout &layout) {
  for (size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(layout.offsets[i] % kBufferAlignment, 0);
    EXPECT_LE(layout.offsets[i] + values[i].bytes, layout.bytes);
    for (size_t j = 0; j < i; ++j) {
      bool meet = values[i].first <= values[j].last && values[j].first <= values[i].last;
      bool overlap = layout.offsets[i] < layout.offsets[j] + values[j].bytes &&
                     layout.offsets[j] < layout.offsets[i] + values[i].bytes;
      EXPECT_FALSE(meet && overlap) << i << " and " << j;
    }
  }
}

TEST(ArenaLayout, KeepsWhatLivesApart) {
  for (uint32_t seed = 0; seed < 30; ++seed) {
    std::vector<ArenaValue> values = draw(seed, 120, 60);
    ArenaLayout layout = layoutArena(values);
    expectDisjoint(values, layout);
    EXPECT_GE(layout.bytes, arenaLowerBound(values));
    EXPECT_LE(double(layout.bytes), 1.15 * double(arenaLowerBound(values))) << "seed " << seed;
  }
}

TEST(ArenaLayout, LeavesWhatHasAPlaceThere) {
  for (uint32_t seed = 0; seed < 10; ++seed) {
    std::vector<ArenaValue> values = draw(seed, 60, 30);
    int64_t end = 0;
    for (unsigned i : {3, 17, 40}) {
      values[i].offset = end;
      end += alignBuffer(values[i].bytes);
    }
    ArenaLayout layout = layoutArena(values);
    expectDisjoint(values, layout);
    for (unsigned i : {3, 17, 40})
      EXPECT_EQ(layout.offsets[i], *values[i].offset);
  }
}

TEST(ArenaLayout, IsTheSameEachTime) {
  std::vector<ArenaValue> values = draw(7, 200, 80);
  EXPECT_EQ(layoutArena(values).offsets, layoutArena(values).offsets);
}

// Forward values live until their mirror image in the backward pass: they fit without a gap.
TEST(ArenaLayout, StacksForwardAndBackward) {
  std::vector<ArenaValue> values;
  for (unsigned layer = 0; layer < 24; ++layer) {
    values.push_back({4096 * (1 + layer % 3), layer, 47 - layer});
    values.push_back({8192, 47 - layer, std::min(48 - layer, 47u)});
  }
  ArenaLayout layout = layoutArena(values);
  expectDisjoint(values, layout);
  EXPECT_LE(double(layout.bytes), 1.02 * double(arenaLowerBound(values)));
}

TEST(ArenaLayout, TakesNothing) {
  EXPECT_EQ(layoutArena({}).bytes, 0);
  EXPECT_EQ(arenaLowerBound({}), 0);
}

} // namespace
} // namespace llmc
