// Token files, the order of windows, fixed inputs.
#include "runtime/DataLoader.h"
#include "runtime/FixedInputs.h"
#include "runtime/Prefetcher.h"
#include "runtime/Random.h"
#include "runtime/Safetensors.h"
#include "tests/runtime/TinyPlan.h"

#include <cstring>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <sys/stat.h>

namespace llmc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T> std::string toBytes(const std::vector<T> &values) {
  return std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(T));
}

std::string llmcFile(const std::vector<uint16_t> &tokens) {
  std::vector<int32_t> header(256);
  header[0] = 20240520;
  header[1] = 1;
  header[2] = static_cast<int32_t>(tokens.size());
  return toBytes(header) + toBytes(tokens);
}

std::string npyFile(const std::string &type, const std::string &shape, const std::string &data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(118, ' ');
  return std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + data;
}

std::vector<int64_t> readAll(const TokenFile &file) {
  std::vector<int64_t> tokens(file.numTokens());
  EXPECT_TRUE(file.read(0, tokens));
  return tokens;
}

TEST(TokenFile, ReadsEveryFormat) {
  TestFolder folder;
  auto expectTokens = [&](const std::string &path, const char *format, std::vector<int64_t> tokens, uint64_t offset) {
    auto file = TokenFile::open(path);
    ASSERT_TRUE(file) << file.error().message;
    EXPECT_STREQ(file->format(), format);
    EXPECT_EQ(readAll(*file), tokens);
    EXPECT_EQ(file->byteOffset(0), offset);
  };
  expectTokens(folder.write("a.bin", llmcFile({3, 65535, 7})), "llm.c", {3, 65535, 7}, 1024);
  expectTokens(folder.write("b.bin", toBytes<uint16_t>({1, 2, 40000})), "raw uint16", {1, 2, 40000}, 0);
  expectTokens(folder.write("c.npy", npyFile("<u2", "(2,)", toBytes<uint16_t>({9, 50000}))), "npy", {9, 50000}, 128);
  expectTokens(folder.write("d.npy", npyFile("<i4", "(2,)", toBytes<int32_t>({-9, 70000}))), "npy", {-9, 70000}, 128);
  expectTokens(folder.write("e.npy", npyFile("<i8", "(2,)", toBytes<int64_t>({1ll << 40, -1}))), "npy", {1ll << 40, -1},
               128);
}

TEST(TokenFile, SaysWhatIsWrong) {
  TestFolder folder;
  auto message = [&](const char *name, const std::string &content) {
    auto file = TokenFile::open(folder.write(name, content));
    return file ? std::string("accepted") : file.error().message;
  };
  std::string good = llmcFile({1, 2, 3});
  EXPECT_THAT(message("a.bin", good.substr(0, 1023)),
              HasSubstr("a.bin: truncated llm.c header: 1023 bytes, expected 1024"));
  EXPECT_THAT(message("a.bin", good + "xx"), HasSubstr("byte 8 counts 3 tokens, but 8 bytes follow"));
  EXPECT_THAT(message("a.bin", good.substr(0, good.size() - 1)), HasSubstr("counts 3 tokens, but 5 bytes follow"));
  std::string version = good;
  version[4] = 7;
  EXPECT_THAT(message("a.bin", version), HasSubstr("llm.c token file of version 7, expected 1"));
  std::string magic = good;
  magic[0] ^= 1;
  EXPECT_THAT(message("a.bin", magic), HasSubstr("bad magic"));
  EXPECT_THAT(message("b.bin", "abc"), HasSubstr("3 bytes is no whole number of uint16 tokens"));
  EXPECT_THAT(message("c.npy", "abcd"), HasSubstr("bad magic at byte 0"));
  EXPECT_THAT(message("c.npy", npyFile("<f4", "(1,)", "abcd")), HasSubstr("expected uint16, int32 or int64"));
  EXPECT_THAT(message("c.npy", npyFile("<u2", "(2, 2)", "abcdefgh")), HasSubstr("expected one dimension"));
  EXPECT_THAT(message("c.npy", npyFile("<u2", "(5,)", "abcdefgh")), HasSubstr("counts 5 tokens, but 8 bytes follow"));
  EXPECT_THAT(message("c.npy", npyFile("<u2", "(5,)", "").substr(0, 60)), HasSubstr("truncated .npy header"));
  EXPECT_THAT(TokenFile::open(folder.path("none")).error().message, HasSubstr("No such file"));
  EXPECT_THAT(TokenFile::open(folder.path("")).error().message, HasSubstr("not a regular file"));
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0); // nobody writes into it
  EXPECT_THAT(TokenFile::open(folder.path("pipe")).error().message, HasSubstr("not a regular file"));
  EXPECT_THAT(SafetensorsFile::open(folder.path("pipe")).error().message, HasSubstr("not a regular file"));
}

class LoaderTest : public ::testing::Test {
protected:
  LoaderTest() { map = *mapInputs(tiny.plan, {}); }

  Result<DataLoader> open(const std::string &content, DataOptions options = {}) {
    Result<TokenFile> file = TokenFile::open(folder.write("t.bin", content));
    LLMC_RETURN_IF_ERROR(file);
    return DataLoader::create(std::move(*file), map, options);
  }

  static std::vector<int64_t> ids(const Batch &batch, size_t input) {
    std::vector<int64_t> values;
    for (uint64_t i = 0; i < batch.inputs[input].size() / 8; ++i)
      values.push_back(loadId(batch.inputs[input], ElementType::i64, i));
    return values;
  }

  TestFolder folder;
  TinyPlan tiny; // B = 2, T = 3, V = 5
  InputMap map;
};

/// Token i is i % 5: a window's place shows in its ids.
std::vector<uint16_t> countingTokens(size_t count) {
  std::vector<uint16_t> tokens(count);
  for (size_t i = 0; i < count; ++i)
    tokens[i] = static_cast<uint16_t>(i % 5);
  return tokens;
}

TEST_F(LoaderTest, ShiftsLabelsAndVisitsEveryWindowOnce) {
  auto loader = open(llmcFile(countingTokens(3 * 4 + 1)));
  ASSERT_TRUE(loader) << loader.error().message;
  EXPECT_EQ(loader->numWindows(), 4u);
  EXPECT_EQ(loader->stepsPerEpoch(), 2);
  std::multiset<int64_t> firsts;
  for (int64_t step : {0, 1}) {
    Batch batch = makeBatch(map);
    ASSERT_TRUE(loader->fill(step, 0, batch));
    EXPECT_EQ(batch.numTokens, 6);
    EXPECT_EQ(batch.numLabels, 6);
    std::vector<int64_t> tokens = ids(batch, 0), labels = ids(batch, 1);
    for (size_t i = 0; i < 6; ++i)
      EXPECT_EQ(labels[i], (tokens[i] + 1) % 5);
    firsts.insert(tokens[0]);
    firsts.insert(tokens[3]);
  }
  EXPECT_THAT(firsts, ElementsAre(0, 1, 3, 4)); // windows start at 0, 3, 6, 9
}

TEST_F(LoaderTest, UnshiftedLabelsAreTheTokens) {
  tiny.entry("targets").role = "labels_unshifted";
  map = *mapInputs(tiny.plan, {});
  EXPECT_THAT(map.describe(), HasSubstr("labels to targets, unshifted"));
  auto loader = open(llmcFile(countingTokens(13)));
  Batch batch = makeBatch(map);
  ASSERT_TRUE(loader->fill(0, 0, batch));
  EXPECT_EQ(ids(batch, 0), ids(batch, 1));
  EXPECT_EQ(batch.numLabels, 4) << "the graph drops each row's first label";
}

TEST_F(LoaderTest, CountsLabelsByTheGraphWhateverTheWindow) {
  for (bool shifted : {true, false}) {
    InputOverrides overrides;
    overrides.labelsShifted = shifted;
    tiny.entry("targets").role = "labels_unshifted";
    map = *mapInputs(tiny.plan, overrides);
    auto loader = open(llmcFile(countingTokens(13)));
    Batch batch = makeBatch(map);
    ASSERT_TRUE(loader->fill(0, 0, batch));
    EXPECT_EQ(batch.numLabels, 4);
    tiny.entry("targets").role = "labels";
    map = *mapInputs(tiny.plan, overrides);
    EXPECT_EQ(countLabels(map, batch), 6);
  }
}

TEST_F(LoaderTest, RefusesIdsThatDoNotFitTheInput) {
  StateEntry &labels = tiny.entry("targets");
  labels.type = ElementType::i32;
  labels.ignoreIndex = std::numeric_limits<int64_t>::min();
  labels.buffer.bytes /= 2;
  map = *mapInputs(tiny.plan, {});
  Batch batch = makeBatch(map);
  Status status = storeRow(map, 0, {}, batch);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().message, "input 'targets': element 0 is -9223372036854775808: too large for i32");
}

TEST_F(LoaderTest, FillsTheLastStepUpWithIgnoredLabels) {
  auto loader = open(llmcFile(countingTokens(3 * 3 + 2)), {.seed = 1});
  ASSERT_TRUE(loader);
  EXPECT_EQ(loader->stepsPerEpoch(), 2);
  Batch batch = makeBatch(map);
  ASSERT_TRUE(loader->fill(1, 0, batch));
  EXPECT_EQ(batch.numTokens, 3);
  EXPECT_EQ(batch.numLabels, 3);
  std::vector<int64_t> tokens = ids(batch, 0), labels = ids(batch, 1);
  EXPECT_THAT(std::vector(tokens.begin() + 3, tokens.end()), ElementsAre(0, 0, 0));
  EXPECT_THAT(std::vector(labels.begin() + 3, labels.end()), ElementsAre(-1, -1, -1));

  auto dropping = open(llmcFile(countingTokens(3 * 3 + 2)), {.seed = 1, .dropLast = true});
  EXPECT_EQ(dropping->stepsPerEpoch(), 1);
}

TEST_F(LoaderTest, OrderDependsOnSeedAndEpochOnly) {
  std::string content = llmcFile(countingTokens(3 * 64 + 1));
  auto sequence = [&](uint64_t seed, int64_t micros, int64_t firstStep, int64_t numSteps) {
    auto loader = open(content, {.seed = seed, .microBatches = micros});
    std::vector<int64_t> all;
    for (int64_t step = firstStep; step < firstStep + numSteps; ++step)
      for (int64_t micro = 0; micro < micros; ++micro) {
        Batch batch = makeBatch(map);
        EXPECT_TRUE(loader->fill(step, micro, batch));
        std::vector<int64_t> part = ids(batch, 0);
        all.insert(all.end(), part.begin(), part.end());
      }
    return all;
  };
  EXPECT_EQ(sequence(5, 1, 0, 32), sequence(5, 4, 0, 8)) << "one rank or four, the same windows in the same order";
  EXPECT_NE(sequence(5, 1, 0, 32), sequence(6, 1, 0, 32));
  EXPECT_NE(sequence(5, 1, 0, 32), sequence(5, 1, 32, 32)) << "the next epoch has another order";
}

TEST_F(LoaderTest, NamesTokensOutsideTheVocabulary) {
  std::vector<uint16_t> tokens = countingTokens(13);
  tokens[7] = 5;
  auto loader = open(llmcFile(tokens));
  ASSERT_TRUE(loader);
  std::string message;
  Batch batch = makeBatch(map);
  for (int64_t step : {0, 1})
    if (Status status = loader->fill(step, 0, batch); !status)
      message = status.error().message;
  EXPECT_EQ(message, folder.path("t.bin") + ": token 5 at byte 1038 is outside of the vocabulary [0, 5)");
}

TEST_F(LoaderTest, RefusesTooLittleData) {
  EXPECT_THAT(open(llmcFile({1, 2, 3})).error().message, HasSubstr("3 tokens are less than one window of 3 + 1"));
  EXPECT_THAT(open(llmcFile(countingTokens(4)), {.dropLast = true}).error().message,
              HasSubstr("do not fill one step of 2 rows"));
  tiny.entry("mask").kind = StateKind::input;
  map = *mapInputs(tiny.plan, {});
  EXPECT_THAT(open(llmcFile(countingTokens(13))).error().message,
              HasSubstr("input 'mask' (f32 3) is neither tokens nor labels: give its values with --inputs"));
}

TEST_F(LoaderTest, SurvivesEveryFlippedByte) {
  auto isRefusedOrRead = [&](const std::string &path) {
    Result<TokenFile> tokens = TokenFile::open(path);
    if (!tokens)
      return true;
    Result<DataLoader> loader = DataLoader::create(std::move(*tokens), map, {});
    if (!loader)
      return true;
    Batch batch = makeBatch(map);
    for (int64_t step : {0, 1}) {
      Status status = loader->fill(step, 0, batch);
      if (!status && status.error().message.find("outside of the vocabulary") == std::string::npos)
        return false;
    }
    return true;
  };
  for (const std::string &content : {llmcFile(countingTokens(13)), npyFile("<i8", "(13,)", std::string(13 * 8, '\1')),
                                     toBytes(countingTokens(13))}) {
    std::string path = folder.write("flip.bin", content);
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    auto put = [&](size_t at, int value) {
      file.seekp(static_cast<std::streamoff>(at)).put(static_cast<char>(value)).flush();
    };
    for (size_t i = 0; i < content.size(); ++i) {
      put(i, content[i] ^ (1 << (i % 8)));
      EXPECT_TRUE(isRefusedOrRead(path)) << "byte " << i;
      put(i, content[i]);
    }
  }
}

TEST(InputMap, OverridesNameOtherInputs) {
  TinyPlan tiny;
  tiny.entry("idx").role = tiny.entry("targets").role = "";
  EXPECT_EQ(mapInputs(tiny.plan, {})->tokens, std::nullopt);
  auto map = mapInputs(tiny.plan, {"idx", "targets", false});
  ASSERT_TRUE(map) << map.error().message;
  EXPECT_EQ(map->describe(), "tokens go to idx, labels to targets, unshifted (the graph shifts them)");
  EXPECT_THAT(mapInputs(tiny.plan, {"ids", "", {}}).error().message,
              HasSubstr("the plan has no input 'ids'; its inputs are: idx, targets"));
  EXPECT_THAT(mapInputs(tiny.plan, {"idx", "idx", {}}).error().message, HasSubstr("cannot take both"));
  tiny.entry("idx").role = tiny.entry("targets").role = "tokens";
  EXPECT_THAT(mapInputs(tiny.plan, {}).error().message, HasSubstr("choose one with --tokens-input"));
  tiny.entry("targets").role = "labels";
  tiny.entry("targets").shape = {1, 3};
  tiny.entry("targets").buffer.bytes = 24;
  EXPECT_THAT(mapInputs(tiny.plan, {}).error().message, HasSubstr("they differ in size"));
}

TEST(RandomTokens, AreTheSameForTheSameSeed) {
  TinyPlan tiny;
  InputMap map = *mapInputs(tiny.plan, {});
  auto first = RandomTokens::create(map, 3), second = RandomTokens::create(map, 3);
  Batch a = makeBatch(map), b = makeBatch(map);
  ASSERT_TRUE(first->fill(4, 0, a));
  ASSERT_TRUE(second->fill(4, 0, b));
  EXPECT_EQ(a.inputs, b.inputs);
  ASSERT_TRUE(second->fill(5, 0, b));
  EXPECT_NE(a.inputs, b.inputs);
  EXPECT_EQ(a.numLabels, 6);
}

TEST(Permutation, IsOne) {
  for (uint64_t size : {1, 2, 3, 5, 16, 17, 1000, 4097}) {
    std::vector<bool> seen(size);
    Permutation permutation(size, size * 7);
    for (uint64_t i = 0; i < size; ++i) {
      ASSERT_LT(permutation(i), size);
      ASSERT_FALSE(seen[permutation(i)]);
      seen[permutation(i)] = true;
    }
  }
  // Written down once: the order of data must not change between versions.
  Permutation permutation(1000, 42);
  EXPECT_THAT((std::vector{permutation(0), permutation(1), permutation(2)}), ElementsAre(733, 55, 700));
}

class FixedInputsTest : public LoaderTest {
protected:
  std::string write(ElementType type, std::vector<int64_t> shape, std::vector<int64_t> tokens) {
    std::vector<SafetensorsInfo> infos = {{"idx", type, shape}, {"targets", ElementType::i64, shape}};
    auto writer = SafetensorsWriter::create(folder.path("in.safetensors"), infos);
    std::vector<std::byte> bytes(tokens.size() * elementBytes(type));
    for (size_t i = 0; i < tokens.size(); ++i)
      EXPECT_TRUE(storeId(bytes, type, i, tokens[i]));
    std::vector<int64_t> labels(tokens.size(), -1);
    labels.back() = 4;
    EXPECT_TRUE(writer->append(bytes));
    EXPECT_TRUE(writer->append(std::as_bytes(std::span(labels))));
    EXPECT_TRUE(writer->commit());
    return folder.path("in.safetensors");
  }
};

TEST_F(FixedInputsTest, ConvertsIntegersAndDealsRows) {
  auto fixed = FixedInputs::load(write(ElementType::i32, {4, 3}, {0, 1, 2, 3, 4, 0, 1, 1, 1, 2, 2, 2}), map, 2);
  ASSERT_TRUE(fixed) << fixed.error().message;
  Batch batch = makeBatch(map);
  ASSERT_TRUE(fixed->fill(9, 1, batch));
  EXPECT_THAT(ids(batch, 0), ElementsAre(1, 1, 1, 2, 2, 2));
  EXPECT_EQ(batch.numLabels, 1);
  ASSERT_TRUE(fixed->fill(9, 0, batch));
  EXPECT_EQ(batch.numLabels, 0);
}

TEST_F(FixedInputsTest, SaysWhatIsWrong) {
  auto message = [&](const std::string &path) {
    auto fixed = FixedInputs::load(path, map, 1);
    return fixed ? std::string("accepted") : fixed.error().message;
  };
  EXPECT_THAT(message(write(ElementType::i64, {3, 2}, {0, 0, 0, 0, 0, 0})),
              HasSubstr("input 'idx': is i64 (3, 2), expected i64 (2, 3)"));
  EXPECT_THAT(message(write(ElementType::i64, {2, 3}, {0, 0, 0, 0, 5, 0})),
              HasSubstr("input 'idx': element 4 is 5: outside of the vocabulary [0, 5)"));
  EXPECT_THAT(message(write(ElementType::f32, {2, 3}, {0, 0, 0, 0, 0, 0})), HasSubstr("is f32 (2, 3), expected i64"));
  std::vector<SafetensorsInfo> none;
  ASSERT_TRUE(SafetensorsWriter::create(folder.path("none.safetensors"), none)->commit());
  EXPECT_THAT(message(folder.path("none.safetensors")), HasSubstr("has no tensor 'idx'"));
}

TEST_F(LoaderTest, PrefetcherHandsStepsOutInOrderAndPassesErrors) {
  std::vector<uint16_t> tokens = countingTokens(3 * 8 + 1);
  auto loader = open(llmcFile(tokens), {.microBatches = 2});
  auto other = open(llmcFile(tokens), {.microBatches = 2}); // the prefetcher's thread has the first to itself
  Prefetcher batches(*loader, map, 0, 5, 2);
  for (int64_t step = 0; step < 5; ++step) {
    auto got = batches.next();
    ASSERT_TRUE(got);
    ASSERT_EQ(got->size(), 2u);
    Batch expected = makeBatch(map);
    ASSERT_TRUE(other->fill(step, 1, expected));
    EXPECT_EQ((*got)[1].inputs, expected.inputs);
  }
  tokens[20] = 99;
  auto bad = open(llmcFile(tokens));
  Prefetcher failing(*bad, map, 0, 4, 1);
  bool failed = false;
  for (int64_t step = 0; step < 4 && !failed; ++step)
    failed = !failing.next().ok();
  EXPECT_TRUE(failed);
  {
    Prefetcher unused(*other, map, 0, 1000, 2);
  } // stops without being asked for anything
}

} // namespace
} // namespace llmc::test
