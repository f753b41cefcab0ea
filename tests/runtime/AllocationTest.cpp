// Steps allocate nothing: this program's operator new counts, and what prepares a step's data must not move the count.
#include "runtime/DataLoader.h"
#include "tests/runtime/TinyPlan.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <new>

static thread_local int numAllocations = 0;

void *operator new(size_t bytes) {
  ++numAllocations;
  if (void *memory = std::malloc(bytes ? bytes : 1))
    return memory;
  std::abort();
}
// AddressSanitizer would see its own here, and the free() below as no match of it.
void *operator new(size_t bytes, const std::nothrow_t &) noexcept {
  ++numAllocations;
  return std::malloc(bytes ? bytes : 1);
}
void operator delete(void *memory) noexcept { std::free(memory); }
void operator delete(void *memory, size_t) noexcept { std::free(memory); }

namespace llmc::test {
namespace {

/// Allocations of four micro-batches after a first one, whose buffers may still grow.
int allocationsOf(BatchSource &source, const InputMap &map) {
  Batch batch = makeBatch(map);
  EXPECT_TRUE(source.fill(0, 0, batch));
  int before = numAllocations;
  for (int64_t step = 0; step < 2; ++step)
    for (int64_t micro = 0; micro < 2; ++micro)
      EXPECT_TRUE(source.fill(step, micro, batch));
  return numAllocations - before;
}

TEST(Allocations, AreSeen) {
  int before = numAllocations;
  std::vector<int> some(100);
  EXPECT_EQ(numAllocations, before + 1) << some.data();
}

TEST(Allocations, NoneToFillABatch) {
  TestFolder folder;
  TinyPlan tiny;
  Result<InputMap> map = mapInputs(tiny.plan, {});
  ASSERT_TRUE(map);
  std::string tokens;
  for (int i = 0; i < 100; ++i)
    tokens += {static_cast<char>(i % 5), '\0'};
  Result<TokenFile> file = TokenFile::open(folder.write("t.bin", tokens));
  ASSERT_TRUE(file);
  Result<DataLoader> loader = DataLoader::create(std::move(*file), *map, {.microBatches = 2});
  ASSERT_TRUE(loader);
  EXPECT_EQ(allocationsOf(*loader, *map), 0);
  Result<RandomTokens> random = RandomTokens::create(*map, 1);
  ASSERT_TRUE(random);
  EXPECT_EQ(allocationsOf(*random, *map), 0);
}

} // namespace
} // namespace llmc::test
