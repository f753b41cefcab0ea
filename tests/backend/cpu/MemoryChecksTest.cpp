// What embeddings and copies refuse, and zero fill.
#include "tests/backend/cpu/LaunchRunner.h"

#include <gtest/gtest.h>

namespace llmc::test {
namespace {

TEST(Embedding, NamesABadToken) {
  for (int64_t bad : {int64_t(-1), int64_t(11), INT64_MAX, INT64_MIN}) {
    std::vector<int64_t> ids(6, 3);
    ids[4] = bad;
    std::string expected = "token id " + std::to_string(bad) + " at position 4 is outside [0, 11)";
    LaunchRunner runner(KernelKind::Embedding, 2);
    runner.ints({{"n", 6}, {"v", 11}, {"c", 2}});
    runner.operand("table", std::vector<float>(22)).operand("ids", ids).operand("dst", std::vector<float>(12));
    Status status = runner.run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "embedding 'node': " + expected);

    LaunchRunner gradient(KernelKind::EmbeddingGrad, 2);
    gradient.ints({{"n", 6}, {"v", 11}, {"c", 2}}).operand("ids", ids);
    gradient.operand("dOut", std::vector<float>(12)).operand("dTable", std::vector<float>(22));
    status = gradient.run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "embedding_grad 'node': " + expected);
  }
}

TEST(CopyChecks, RefusesToLeaveItsOperands) {
  LaunchRunner runner(KernelKind::Copy, 1);
  runner.ints({{"bytes", 4}, {"size0", 1}, {"size1", 1}, {"size2", 1}, {"size3", 1}, {"size4", 4}, {"size5", 4}});
  runner.ints({{"srcStride4", 4}, {"srcStride5", 1}, {"dstStride4", 5}, {"dstStride5", 1}});
  runner.operand("src", std::vector<float>(16)).operand("dst", std::vector<float>(18));
  Status status = runner.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "copy 'node': the copy leaves dst of 72 bytes");
}

TEST(Zero, FillsItsOperandAndNoMore) {
  for (int threads : {1, 2, 3})
    for (size_t n : {1, 1000, 5000}) {
      LaunchRunner runner(KernelKind::Zero, threads);
      runner.operand("dst", randomNumbers(n, 1));
      ASSERT_TRUE(runner.run().ok());
      EXPECT_EQ(runner.result<float>("dst"), std::vector<float>(n));
    }
}

} // namespace
} // namespace llmc::test
