// Packing to bf16 against loops over the layout's formula: from f32 and bf16, transposed, with edges, and past the size
// from which results are written past the caches.
#include "backend/cpu/Layouts.h"
#include "runtime/ElementConvert.h"
#include "tests/backend/cpu/LaunchRunner.h"

#include <gtest/gtest.h>
#include <limits>

namespace llmc::test {
namespace {

struct PackCase {
  int64_t k, n;
  bool isTransposed, isF32;
  RhsLayout layout = RhsLayout::blocked16x64x2;
};

/// Where element (i, j) of a packed matrix lies.
size_t placeOf(RhsLayout layout, const PackCase &c, int64_t i, int64_t j) {
  if (layout == RhsLayout::plain)
    return size_t(i * c.n + j);
  int64_t rowBlocks = (c.k + 31) / 32;
  return size_t(((j / 64 * rowBlocks + i / 32) * 16 + i % 32 / 2) * 128 + j % 64 * 2 + i % 2);
}

void checkPack(const PackCase &c) {
  SCOPED_TRACE(testing::Message() << c.k << " x " << c.n << " transposed " << c.isTransposed << " f32 " << c.isF32);
  std::vector<float> values = randomNumbers(size_t(c.k * c.n), 7);
  values[1] = std::numeric_limits<float>::infinity();
  RhsLayout layout = layoutAt(testIsa(), c.layout);
  std::vector<uint16_t> expected(size_t(packedElements(c.layout, c.k, c.n)), 0);
  for (int64_t i = 0; i < c.k; ++i)
    for (int64_t j = 0; j < c.n; ++j)
      expected[placeOf(layout, c, i, j)] = toBf16(values[size_t(c.isTransposed ? j * c.k + i : i * c.n + j)]);

  LaunchRunner runner(KernelKind::Pack, 2);
  runner.ints({{"k", c.k}, {"n", c.n}, {"transpose", c.isTransposed}, {"layout", int64_t(c.layout)}});
  runner.ints(
      {{"srcType", int64_t(c.isF32 ? ElementType::f32 : ElementType::bf16)}, {"dstType", int64_t(ElementType::bf16)}});
  if (c.isF32)
    runner.operand("src", values);
  else
    runner.operand("src", asBf16(values));
  Status status = runner.operand("dst", std::vector<uint16_t>(expected.size())).run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_TRUE(runner.result<uint16_t>("dst") == expected);
}

TEST(Pack, Blocks) {
  for (auto [k, n] : {std::pair<int64_t, int64_t>{32, 64}, {77, 130}, {96, 256}, {33, 50}, {1, 3}})
    for (bool isTransposed : {false, true})
      for (bool isF32 : {false, true})
        checkPack({k, n, isTransposed, isF32});
}

TEST(Pack, BlocksBeyondTheCaches) {
  for (bool isTransposed : {false, true})
    for (bool isF32 : {false, true})
      checkPack({2050, 4100, isTransposed, isF32});
}

TEST(Pack, TransposedRows) {
  for (auto [k, n] : {std::pair<int64_t, int64_t>{32, 32}, {77, 130}, {130, 77}, {2, 3}, {33000, 257}, {33001, 256}})
    for (bool isF32 : {false, true})
      checkPack({k, n, true, isF32, RhsLayout::plain});
}

} // namespace
} // namespace llmc::test
