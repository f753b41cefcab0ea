// PTX as LLVM makes it, against loops on the host; every schedule gives the same bits, and a barrier left out is found.
#include "tests/cudasim/SimRun.h"

#include <bit>
#include <cmath>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace llmc::cudasim {
namespace {

/// The module of LlvmKernels.c, and one of its kernels to launch.
class LlvmKernels : public SimBench {
public:
  explicit LlvmKernels(const std::string &file = "LlvmKernels.ptx") : SimBench(textOf(file)) {}

  static std::string textOf(const std::string &file) {
    std::ifstream stream(std::string(LLMC_CUDASIM_PTX) + "/" + file);
    std::stringstream text;
    text << stream.rdbuf();
    return text.str();
  }
};

std::vector<float> wave(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i)
    values[i] = std::sin(0.37f * static_cast<float>(i)) * 3;
  return values;
}

TEST(CudaSimLlvm, layerNormIsTheSameForEverySchedule) {
  constexpr int kRows = 5, kWidth = 200;
  std::vector<float> src = wave(kRows * kWidth), weight(kWidth, 0.5f), first;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    LlvmKernels bench;
    uint64_t x = bench.upload(src), w = bench.upload(weight), y = bench.reserve(src.size() * 4);
    std::optional<Fault> fault = bench.runNamed("layerNorm", kRows, 128,
                                                {SimBench::argument(x), SimBench::argument(w), SimBench::argument(y),
                                                 SimBench::argument(kWidth), SimBench::argument(1e-5f)},
                                                seed);
    ASSERT_FALSE(fault) << fault->describe();
    std::vector<float> dst = bench.download<float>(y, src.size());
    if (seed == 0)
      first = dst;
    ASSERT_EQ(dst, first) << "seed " << seed;
  }
  for (int row = 0; row < kRows; ++row) {
    double mean = 0, variance = 0;
    for (int i = 0; i < kWidth; ++i)
      mean += src[row * kWidth + i] / double(kWidth);
    for (int i = 0; i < kWidth; ++i)
      variance += std::pow(src[row * kWidth + i] - mean, 2) / kWidth;
    for (int i = 0; i < kWidth; ++i)
      ASSERT_NEAR(first[row * kWidth + i], (src[row * kWidth + i] - mean) / std::sqrt(variance + 1e-5) * 0.5, 1e-5);
  }
}

TEST(CudaSimLlvm, missingBarrierIsFound) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    LlvmKernels bench("MissingBarrier.ptx");
    uint64_t x = bench.upload(wave(200)), w = bench.upload(wave(200)), y = bench.reserve(800);
    std::optional<Fault> fault = bench.runNamed("layerNorm", 1, 128,
                                                {SimBench::argument(x), SimBench::argument(w), SimBench::argument(y),
                                                 SimBench::argument(200), SimBench::argument(1e-5f)},
                                                seed);
    ASSERT_TRUE(fault) << "seed " << seed;
    EXPECT_EQ(fault->kind, FaultKind::sharedRace) << fault->describe();
  }
}

TEST(CudaSimLlvm, geluInVectors) {
  LlvmKernels bench;
  std::vector<float> src = wave(4 * 100);
  uint64_t x = bench.upload(src), y = bench.reserve(src.size() * 4);
  std::optional<Fault> fault =
      bench.runNamed("gelu", 2, 32, {SimBench::argument(x), SimBench::argument(y), SimBench::argument<int64_t>(100)});
  ASSERT_FALSE(fault) << fault->describe();
  std::vector<float> dst = bench.download<float>(y, src.size());
  for (size_t i = 0; i < src.size(); ++i) {
    double v = src[i], u = 0.7978845608 * (v + 0.044715 * v * v * v);
    ASSERT_NEAR(dst[i], 0.5 * v * (1 + std::tanh(u)), 1e-6 * (1 + std::fabs(v))) << i;
  }
}

TEST(CudaSimLlvm, crossEntropy) {
  LlvmKernels bench;
  constexpr int kRows = 3, kVocabulary = 77;
  std::vector<float> logits = wave(kRows * kVocabulary);
  std::vector<int64_t> targets{5, 0, 76};
  uint64_t l = bench.upload(logits), t = bench.upload(targets), y = bench.reserve(kRows * 4);
  std::optional<Fault> fault = bench.runNamed(
      "crossEntropy", kRows, 64,
      {SimBench::argument(l), SimBench::argument(t), SimBench::argument(y), SimBench::argument(kVocabulary)});
  ASSERT_FALSE(fault) << fault->describe();
  std::vector<float> losses = bench.download<float>(y, kRows);
  for (int row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int i = 0; i < kVocabulary; ++i)
      sum += std::exp(double(logits[row * kVocabulary + i]));
    EXPECT_NEAR(losses[row], std::log(sum) - logits[row * kVocabulary + targets[row]], 1e-5);
  }
  // A target beyond the vocabulary reads beyond the logits in the last row.
  targets[2] = 77;
  uint64_t wrong = bench.upload(targets);
  fault = bench.runNamed(
      "crossEntropy", kRows, 64,
      {SimBench::argument(l), SimBench::argument(wrong), SimBench::argument(y), SimBench::argument(kVocabulary)});
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, FaultKind::outOfBounds);
}

TEST(CudaSimLlvm, bf16AndIntegers) {
  LlvmKernels bench;
  std::vector<uint32_t> src(4 * 40, 0x40003f80); // pairs of 1 and 2
  uint64_t x = bench.upload(src), y = bench.reserve(src.size() * 4);
  std::optional<Fault> fault = bench.runNamed(
      "scaleBf16", 2, 32,
      {SimBench::argument(x), SimBench::argument(y), SimBench::argument(1.5f), SimBench::argument<int64_t>(40)});
  ASSERT_FALSE(fault) << fault->describe();
  EXPECT_EQ(bench.download<uint32_t>(y, src.size()), std::vector<uint32_t>(src.size(), 0x40403fc0));

  constexpr int kN = 5;
  std::vector<uint16_t> values(64);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint16_t>(i * 1021 + 3);
  uint64_t v = bench.upload(values), out = bench.reserve(256);
  fault = bench.runNamed("mixed", 1, 64, {SimBench::argument(v), SimBench::argument(out), SimBench::argument(kN)});
  ASSERT_FALSE(fault) << fault->describe();
  std::vector<int32_t> results = bench.download<int32_t>(out, 64);
  int table[64];
  for (int i = 0; i < 64; ++i)
    table[i * kN & 63] = i * 3 - kN;
  for (int i = 0; i < 64; ++i) {
    int value = values[i];
    int64_t product = int64_t(value) * kN;
    int which = value & 7;
    int expected = which == 0   ? static_cast<int>(product / 7)
                   : which == 1 ? static_cast<int>(product % 13)
                   : which == 2 ? std::popcount(static_cast<uint32_t>(value)) - kN
                   : which == 3 ? static_cast<int8_t>(value)
                                : static_cast<int>(product >> 3);
    EXPECT_EQ(results[i], expected + table[i]) << i;
  }
}

TEST(CudaSimLlvm, damagedTextNeverCrashes) {
  std::string text = LlvmKernels::textOf("LlvmKernels.ptx");
  size_t refused = 0;
  for (size_t length = 0; length < text.size(); length += 61) {
    Memory memory;
    refused += !Module::load(std::string_view(text).substr(0, length), memory);
  }
  EXPECT_GT(refused, text.size() / 61 / 2);
  for (size_t at = 0; at < text.size(); at += 17) {
    std::string damaged = text;
    damaged[at] = static_cast<char>("%{;0.\n\""[at % 7]);
    Memory memory;
    Result<Module> loaded = Module::load(damaged, memory);
    EXPECT_TRUE(loaded || !loaded.error().message.empty());
  }
}

} // namespace
} // namespace llmc::cudasim
