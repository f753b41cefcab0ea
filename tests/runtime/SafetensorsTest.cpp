// Files written and read back, and hostile headers.
#include "runtime/Safetensors.h"

#include "tests/runtime/TinyPlan.h"

#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string withHeader(const std::string &header, const std::string &data, uint64_t size = ~0ull) {
  size = size == ~0ull ? header.size() : size;
  return std::string(reinterpret_cast<const char *>(&size), 8) + header + data;
}

TEST(Safetensors, RoundTrip) {
  TestFolder folder;
  std::vector<SafetensorsInfo> infos = {
      {"b \"quoted\"", ElementType::f32, {2, 1}}, {"a", ElementType::i64, {}}, {"empty", ElementType::bf16, {0, 3}}};
  auto writer = SafetensorsWriter::create(folder.path("x"), infos);
  ASSERT_TRUE(writer);
  std::vector<float> values = {1.5f, -2};
  int64_t scalar = -7;
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(values))));
  EXPECT_THAT(writer->commit().error().message, HasSubstr("bytes written, expected"));
  EXPECT_FALSE(std::filesystem::exists(folder.path("x")));
  ASSERT_TRUE(writer->append(std::as_bytes(std::span(&scalar, 1))));
  ASSERT_TRUE(writer->commit());
  auto file = SafetensorsFile::open(folder.path("x"));
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 3u);
  EXPECT_THAT(file->find("b \"quoted\"")->shape, ElementsAre(2, 1));
  EXPECT_EQ(std::memcmp(file->find("b \"quoted\"")->bytes.data(), values.data(), 8), 0);
  EXPECT_EQ(file->find("a")->type, ElementType::i64);
  EXPECT_THAT(file->find("c").error().message, StartsWith("has no tensor 'c'; it has: a, b \"quoted\", empty"));
  std::string content = readFile(folder.path("x"));
  EXPECT_THAT(content, HasSubstr("\"__metadata__\":{\"format\":\"pt\"}"));
  uint64_t headerBytes = 0;
  std::memcpy(&headerBytes, content.data(), 8);
  EXPECT_EQ(headerBytes % 8, 0u);
}

TEST(Safetensors, RefusesHostileHeaders) {
  TestFolder folder;
  auto message = [&](const std::string &content) {
    auto file = SafetensorsFile::open(folder.write("h", content));
    return file ? std::string("accepted") : file.error().message;
  };
  const char *good = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  EXPECT_EQ(message(withHeader(good, "1234")), "accepted");
  EXPECT_THAT(message("1234567"), HasSubstr("not a safetensors file: 7 bytes"));
  EXPECT_THAT(message(withHeader(good, "1234", 1ull << 62)), HasSubstr("a header of 4611686018427387904 bytes"));
  EXPECT_THAT(message(withHeader(good, "1234", 50'000'000)), HasSubstr("a header of 50000000 bytes"));
  EXPECT_THAT(message(withHeader(good, "123")), HasSubstr("outside of 3 bytes"));
  EXPECT_THAT(message(withHeader(good, "12345")), HasSubstr("left over"));
  EXPECT_THAT(message(withHeader("[]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(message(withHeader("{", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(message(withHeader(std::string(1000000, '['), "")), HasSubstr("no JSON object"));
  std::string deep = "{\"a\":";
  for (int i = 0; i < 100000; ++i)
    deep += "{\"a\":";
  EXPECT_THAT(message(withHeader(deep, "")), HasSubstr("no JSON object"));
  auto tensor = [&](const char *text) { return message(withHeader(std::string("{\"a\":") + text + "}", "1234")); };
  EXPECT_THAT(tensor("3"), HasSubstr("tensor 'a': is no object"));
  EXPECT_THAT(tensor(R"({"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]})"),
              HasSubstr("type F8_E4M3, which is not supported"));
  EXPECT_THAT(tensor(R"({"shape":[1],"data_offsets":[0,4]})"), HasSubstr("no dtype"));
  EXPECT_THAT(tensor(R"({"dtype":"F32","shape":[-1],"data_offsets":[0,4]})"), HasSubstr("no valid shape"));
  EXPECT_THAT(tensor(R"({"dtype":"F32","shape":[1.5],"data_offsets":[0,4]})"), HasSubstr("no valid shape"));
  EXPECT_THAT(tensor(R"({"dtype":"F32","shape":[1],"data_offsets":[4,0]})"), HasSubstr("lies at bytes 4 to 0"));
  EXPECT_THAT(tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,4]})"), HasSubstr("need another number"));
  EXPECT_THAT(tensor(R"({"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]})"),
              HasSubstr("need another number"));
  EXPECT_THAT(
      message(withHeader(
          R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
          "1234")),
      HasSubstr("overlap or leave a hole"));
}

TEST(Safetensors, SurvivesEveryFlippedByte) {
  TestFolder folder;
  std::string content = withHeader(
      R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}})",
      "123456");
  for (size_t i = 0; i < content.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      std::string flipped = content;
      flipped[i] = static_cast<char>(flipped[i] ^ (1 << bit));
      (void)SafetensorsFile::open(folder.write("f", flipped)).ok();
    }
}

} // namespace
} // namespace llmc::test
