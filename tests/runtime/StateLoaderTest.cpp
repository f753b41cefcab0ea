// Weights of several chunks, loaded by one thread and by many.
#include "runtime/StateLoader.h"

#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TinyPlan.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>

namespace llmc::test {
namespace {

using ::testing::HasSubstr;

/// The tiny plan with two constants more: one over four chunks, and a small one after it.
class StateLoaderTest : public ::testing::Test {
protected:
  StateLoaderTest() : large(3 * kWeightsChunkBytes / sizeof(float) + 77), small(5) {
    std::iota(large.begin(), large.end(), 0.5f);
    std::iota(small.begin(), small.end(), -7.0f);
    payload = tiny.payload();
    add("large", large, 256);
    add("small", small, 256 + large.size() * sizeof(float));
    EXPECT_TRUE(writePlan(folder.path("large.plan"), tiny.plan, payload));
  }

  void add(const char *name, const std::vector<float> &values, uint64_t fileOffset) {
    StateEntry entry = tiny.entry("mask");
    entry.name = name;
    entry.shape = {static_cast<int64_t>(values.size())};
    entry.buffer = {Space::state, tiny.plan.stateBytes, values.size() * sizeof(float)};
    entry.fileOffset = fileOffset;
    tiny.plan.stateBytes += (entry.buffer.bytes + 63) / 64 * 64;
    tiny.plan.state.push_back(entry);
    payload.weights.push_back({fileOffset, std::as_bytes(std::span(values))});
  }

  /// Loads a file's weights into `state`; the error's message, or "".
  std::string load(const std::string &path, int threads) {
    Result<PlanFile> file = PlanFile::open(path);
    EXPECT_TRUE(file);
    state.assign(tiny.plan.stateBytes, std::byte(0));
    FakeDevice::Log log;
    FakeDevice device(log);
    Status status = loadWeights(*file, device, state.data(), threads);
    return status ? "" : status.error().message;
  }

  void expectValues(const char *name, const std::vector<float> &values) {
    const std::byte *begin = state.data() + tiny.entry(name).buffer.offset;
    EXPECT_EQ(std::memcmp(begin, values.data(), values.size() * sizeof(float)), 0) << name;
  }

  TestFolder folder;
  TinyPlan tiny;
  std::vector<float> large, small;
  PlanPayload payload;
  std::vector<std::byte> state;
};

TEST_F(StateLoaderTest, EveryEntryIsWholeForAnyNumberOfThreads) {
  for (int threads : {0, 1, 2, 3, 9}) {
    ASSERT_EQ(load(folder.path("large.plan"), threads), "") << threads << " threads";
    expectValues("table", tiny.table);
    expectValues("mask", tiny.mask);
    expectValues("large", large);
    expectValues("small", small);
  }
}

TEST_F(StateLoaderTest, NamesTheFirstDamagedChunkForAnyNumberOfThreads) {
  std::string content = readFile(folder.path("large.plan"));
  size_t begin = content.find(std::string(reinterpret_cast<const char *>(tiny.table.data()), 80));
  ASSERT_NE(begin, std::string::npos);
  for (size_t chunk : {1, 2, 3})
    content[begin + chunk * kWeightsChunkBytes + 5] ^= 1;
  std::string path = folder.write("damaged.plan", content);
  for (int threads : {1, 2, 9})
    EXPECT_THAT(load(path, threads),
                HasSubstr("damaged plan: the checksum of weights at byte " + std::to_string(kWeightsChunkBytes)));
}

} // namespace
} // namespace llmc::test
