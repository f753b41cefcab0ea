// What MemoryKernelsTest (shared with the CPU) leaves out: the status word, long tables and lists, many rows a block.
#include "tests/backend/cpu/LaunchRunner.h"

#include <gtest/gtest.h>

namespace llmc::test {
namespace {

TEST(GpuEmbedding, NamesABadTokenAndGivesZeros) {
  for (int64_t bad : {int64_t(-1), int64_t(11), INT64_MAX, INT64_MIN}) {
    std::vector<int64_t> ids(6, 3);
    ids[4] = bad;
    LaunchRunner runner(KernelKind::Embedding, 1);
    runner.ints({{"n", 6}, {"v", 11}, {"c", 4}});
    runner.operand("table", std::vector<float>(44, 1)).operand("ids", ids).operand("dst", std::vector<float>(24, 9));
    Status status = runner.run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "a bad id at position 4");
    std::vector<float> expected(24, 1);
    std::fill_n(expected.begin() + 16, 4, 0.0f);
    EXPECT_EQ(runner.result<float>("dst"), expected);
  }
}

void checkGradient(int64_t n, int64_t v, int64_t c, bool isBf16, const std::vector<int64_t> &ids) {
  std::vector<float> dOut = toBf16Precision(randomNumbers(size_t(n * c), 1)), expected(size_t(v * c));
  for (int64_t i = 0; i < n * c; ++i)
    if (int64_t id = ids[size_t(i / c)]; id >= 0 && id < v)
      expected[size_t(id * c + i % c)] += dOut[size_t(i)];
  for (int seed : {1, 2}) {
    LaunchRunner runner(KernelKind::EmbeddingGrad, seed);
    runner.ints({{"n", n}, {"v", v}, {"c", c}, {"dOutType", int64_t(isBf16 ? ElementType::bf16 : ElementType::f32)}});
    runner.operand("ids", ids).operand("dTable", std::vector<float>(size_t(v * c), NAN));
    if (isBf16)
      runner.operand("dOut", asBf16(dOut));
    else
      runner.operand("dOut", dOut);
    Status status = runner.run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(runner.result<float>("dTable"), expected);
  }
}

TEST(GpuEmbeddingGrad, ManyRowsABlock) {
  const int64_t n = 700, v = 5000; // 9 rows a block
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(i % 5 == 0 ? 4999 : i * i * 31 % v);
  checkGradient(n, v, 4, false, ids);
}

TEST(GpuEmbeddingGrad, ListsThatOverflow) {
  // One token many times, so that its block empties the list several times; and a wide row, read in several rounds.
  const int64_t n = 5000, v = 3;
  std::vector<int64_t> ids(n, 1);
  for (int64_t i = 0; i < n; i += 7)
    ids[size_t(i)] = i % 4;
  checkGradient(n, v, 5, true, ids);
  checkGradient(20, v, 1500, false, std::vector<int64_t>(ids.begin(), ids.begin() + 20));
}

TEST(GpuCopy, MovesWholeVectorsAndTailsOfTiles) {
  // 16 bytes at a time where everything divides; the simulator refuses what is not aligned.
  LaunchRunner runner(KernelKind::Copy, 1);
  runner.ints({{"bytes", 2}, {"size0", 1}, {"size1", 1}, {"size2", 1}, {"size3", 1}, {"size4", 5}, {"size5", 24}});
  runner.ints({{"srcOffset", 16}, {"srcStride4", 48}, {"srcStride5", 1}, {"dstStride4", 24}, {"dstStride5", 1}});
  std::vector<uint16_t> src(300), expected;
  for (size_t i = 0; i < src.size(); ++i)
    src[i] = uint16_t(i * 3);
  for (size_t row = 0; row < 5; ++row)
    expected.insert(expected.end(), src.begin() + 16 + row * 48, src.begin() + 16 + row * 48 + 24);
  runner.operand("src", src).operand("dst", std::vector<uint16_t>(120));
  Status status = runner.run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  EXPECT_EQ(runner.result<uint16_t>("dst"), expected);
}

} // namespace
} // namespace llmc::test
