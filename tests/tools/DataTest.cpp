// The token file writer's limits, which are too large or too rare for the command line's test.
#include "tools/llmc-data/TextToTokens.h"
#include "tools/llmc-data/TokenFileWriter.h"

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

using namespace llmc;

namespace {

class TokenFileWriterTest : public testing::Test {
protected:
  void SetUp() override {
    folder = testing::TempDir() + "/llmc-data-test-" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(folder);
    std::filesystem::create_directory(folder);
  }
  void TearDown() override { std::filesystem::remove_all(folder); }
  std::string folder;
};

TEST_F(TokenFileWriterTest, dropsWhatWasNotFinished) {
  {
    Result<TokenFileWriter> writer = TokenFileWriter::create(folder + "/t.bin");
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    ASSERT_TRUE(writer->append(std::vector<uint16_t>(1000, 7)).ok());
    EXPECT_FALSE(std::filesystem::exists(folder + "/t.bin"));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(TokenFileWriterTest, keepsWideTokensAndCutsTheTail) {
  Result<TokenFileWriter> writer = TokenFileWriter::create(folder + "/t.bin");
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  std::vector<uint16_t> tokens = {0, 65535, 50256, 4};
  ASSERT_TRUE(writer->append(tokens).ok());
  EXPECT_EQ(writer->numTokens(), 4u);
  ASSERT_TRUE(writer->finish(3, folder + "/v.bin").ok());
  EXPECT_EQ(std::filesystem::file_size(folder + "/t.bin"), kTokenHeaderBytes + 2);
  EXPECT_EQ(std::filesystem::file_size(folder + "/v.bin"), kTokenHeaderBytes + 6);
}

TEST_F(TokenFileWriterTest, leavesNothingWhenTheTailCannotBeWritten) {
  Result<TokenFileWriter> writer = TokenFileWriter::create(folder + "/t.bin");
  ASSERT_TRUE(writer.ok()) << writer.error().message;
  ASSERT_TRUE(writer->append(std::vector<uint16_t>(10, 1)).ok());
  Status status = writer->finish(5, folder + "/none/v.bin");
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message, testing::HasSubstr("none/v.bin: cannot create"));
  EXPECT_FALSE(std::filesystem::exists(folder + "/t.bin"));
}

TEST(ValidationPath, goesBeforeTheExtension) {
  EXPECT_EQ(validationPath("train.bin"), "train.val.bin");
  EXPECT_EQ(validationPath("a.b/train"), "a.b/train.val");
  EXPECT_EQ(validationPath("/x/a.b.bin"), "/x/a.b.val.bin");
}

} // namespace
