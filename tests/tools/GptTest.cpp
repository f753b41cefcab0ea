// llmc-gpt's random numbers against the published vectors and against f64, its tensors piece by piece, its graph's
// names and tie.
#include "tools/llmc-gpt/GptConfig.h"
#include "tools/llmc-gpt/GptGraph.h"
#include "tools/llmc-gpt/GptTensor.h"
#include "tools/llmc-gpt/RandomNormal.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numbers>
#include <set>
#include <vector>

using namespace llmc;
using testing::ElementsAre;

namespace {

// The known answers of Random123 1.x, kat_vectors, philox4x32 10.
TEST(Philox, givesThePublishedNumbers) {
  EXPECT_THAT(philox({0, 0, 0, 0}, {0, 0}), ElementsAre(0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8));
  EXPECT_THAT(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}), ElementsAre(0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd));
  EXPECT_THAT(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
              ElementsAre(0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1));
}

/// The same normals with the C library's functions in f64, straight from the definition.
std::vector<double> normalsInDouble(uint64_t seed, uint64_t stream, size_t numBlocks) {
  std::vector<double> values;
  for (size_t block = 0; block < numBlocks; ++block) {
    std::array<uint32_t, 4> bits =
        philox({static_cast<uint32_t>(block), 0, static_cast<uint32_t>(stream), static_cast<uint32_t>(stream >> 32)},
               {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
    for (int pair = 0; pair < 2; ++pair) {
      double u = ((bits[2 * pair] >> 9) + 0.5) * 0x1p-23;
      uint32_t angleBits = bits[2 * pair + 1];
      double angle = ((angleBits >> 30) + (angleBits & 0x3fffffff) * 0x1p-30 - 0.5) * std::numbers::pi / 2;
      double radius = std::sqrt(-2 * std::log(u));
      values.push_back(radius * std::cos(angle));
      values.push_back(radius * std::sin(angle));
    }
  }
  return values;
}

TEST(FillNormal, followsTheFormula) {
  uint64_t seed = 0x123456789abcdef, stream = streamNumber("transformer.wte.weight");
  std::vector<double> expected = normalsInDouble(seed, stream, 50000);
  std::vector<float> values(expected.size());
  fillNormal(seed, stream, 0, values);
  double largest = 0;
  for (size_t i = 0; i < values.size(); ++i)
    largest = std::max(largest, std::abs(values[i] - expected[i]) / (1 + std::abs(expected[i])));
  EXPECT_LT(largest, 1e-6);
}

TEST(FillNormal, isNormal) {
  std::vector<float> values(4000000);
  fillNormal(1, streamNumber("x"), 0, values);
  auto n = static_cast<double>(values.size());
  double mean = 0, square = 0, fourth = 0, neighbours = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    double x = values[i];
    mean += x / n;
    square += x * x / n;
    fourth += x * x * x * x / n;
    neighbours += i ? x * values[i - 1] / n : 0;
  }
  // Four standard errors each: sqrt(1/n), sqrt(2/n), sqrt(96/n), sqrt(1/n).
  double error = 4 / std::sqrt(n);
  EXPECT_NEAR(mean, 0, error);
  EXPECT_NEAR(square, 1, error * std::sqrt(2));
  EXPECT_NEAR(fourth, 3, error * std::sqrt(96));
  EXPECT_NEAR(neighbours, 0, error);

  // Kolmogorov-Smirnov: the largest distance of the distribution functions, 1.95 / sqrt(n) at one in a thousand.
  std::ranges::sort(values);
  double distance = 0;
  for (size_t i = 0; i < values.size(); ++i)
    distance =
        std::max(distance, std::abs(0.5 * std::erfc(-values[i] / std::numbers::sqrt2) - static_cast<double>(i) / n));
  EXPECT_LT(distance, 1.95 / std::sqrt(n));
}

TEST(FillNormal, isTheSameInAnyPieces) {
  std::vector<float> whole(5000), pieces(5000);
  fillNormal(3, 9, 0, whole);
  for (size_t begin = 0, size = 1; begin < pieces.size(); begin += size, size = size * 3 % 1031 + 1) {
    size = std::min(size, pieces.size() - begin);
    fillNormal(3, 9, begin, std::span(pieces).subspan(begin, size));
  }
  EXPECT_EQ(whole, pieces);
}

TEST(FillNormal, dependsOnSeedAndStreamAndPastFourBillion) {
  auto firstOf = [](uint64_t seed, uint64_t stream, uint64_t first) {
    float value;
    fillNormal(seed, stream, first, {&value, 1});
    return value;
  };
  std::set<float> values = {
      firstOf(1, 1, 0), firstOf(2, 1, 0),         firstOf(1ull << 32 | 1, 1, 0), firstOf(1, 1ull << 32 | 1, 0),
      firstOf(1, 2, 0), firstOf(1, 1, 1ull << 34)};
  EXPECT_EQ(values.size(), 6u);
}

std::vector<std::byte> bytesOf(const GptTensor &tensor, uint64_t seed) {
  std::vector<std::byte> bytes(tensor.numBytes());
  fillTensor(tensor, seed, 0, bytes);
  return bytes;
}

std::vector<float> floatsOf(const GptTensor &tensor, uint64_t seed) {
  std::vector<float> values(tensor.numElements());
  fillTensor(tensor, seed, 0, std::as_writable_bytes(std::span(values)));
  return values;
}

const GptTensor &tensorOf(const GptModel &model, const std::string &name) {
  static const GptTensor kNone;
  auto found = std::ranges::find(model.tensors, name, &GptTensor::name);
  EXPECT_NE(found, model.tensors.end()) << name;
  return found == model.tensors.end() ? kNone : *found;
}

TEST(GptTensor, causalMaskHidesTheFuture) {
  GptTensor mask{.name = "mask", .shape = {3, 3}, .rule = TensorRule::causalMask};
  const std::byte no{0}, yes{1};
  EXPECT_THAT(bytesOf(mask, 1), ElementsAre(no, yes, yes, no, no, yes, no, no, no));
}

GptConfig tinyConfig() {
  GptConfig config;
  config.layers = 2;
  config.heads = 3;
  config.width = 15;
  config.vocab = 31;
  config.context = 9;
  config.sequence = 7;
  config.batch = 2;
  return config;
}

TEST(GptGraph, textbookHasTheColumnsOfFused) {
  GptConfig config = tinyConfig();
  GptModel fused = buildGpt(config);
  config.style = GptStyle::textbook;
  GptModel textbook = buildGpt(config);
  for (std::string layer : {"transformer.h.0.attn", "transformer.h.1.attn"}) {
    std::vector<float> whole = floatsOf(tensorOf(fused, layer + ".c_attn.weight"), 5);
    int third = 0;
    for (const char *part : {".query", ".key", ".value"}) {
      std::vector<float> values = floatsOf(tensorOf(textbook, layer + part + ".weight"), 5);
      ASSERT_EQ(values.size(), 15u * 15u);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_EQ(values[i], whole[i / 15 * 45 + third * 15 + i % 15]) << layer << part << " " << i;
      ++third;
    }
  }
  for (const GptTensor &tensor : textbook.tensors) {
    if (std::ranges::find(fused.tensors, tensor.name, &GptTensor::name) != fused.tensors.end()) {
      EXPECT_EQ(bytesOf(tensor, 5), bytesOf(tensorOf(fused, tensor.name), 5)) << tensor.name;
    }
  }
}

TEST(GptGraph, beginsAsGpt2Does) {
  GptModel model = buildGpt(tinyConfig());
  EXPECT_FLOAT_EQ(tensorOf(model, "transformer.wte.weight").deviation, 0.02f);
  EXPECT_FLOAT_EQ(tensorOf(model, "transformer.wpe.weight").deviation, 0.02f);
  EXPECT_FLOAT_EQ(tensorOf(model, "transformer.h.1.attn.c_attn.weight").deviation, 0.02f);
  EXPECT_FLOAT_EQ(tensorOf(model, "transformer.h.1.mlp.c_fc.weight").deviation, 0.02f);
  EXPECT_FLOAT_EQ(tensorOf(model, "transformer.h.0.attn.c_proj.weight").deviation, 0.01f); // 0.02 / sqrt(2 * 2)
  EXPECT_FLOAT_EQ(tensorOf(model, "transformer.h.1.mlp.c_proj.weight").deviation, 0.01f);
  for (const GptTensor &tensor : model.tensors) {
    if (tensor.shape.size() == 1) {
      EXPECT_EQ(tensor.rule, tensor.name.ends_with(".bias") ? TensorRule::zeros : TensorRule::ones) << tensor.name;
    }
  }
}

TEST(GptGraph, tiesTheHeadAndNamesEverythingOnce) {
  GptModel model = buildGpt(tinyConfig());
  std::vector<std::string> usersOfWte;
  std::set<std::string> names;
  for (const onnx::NodeProto &node : model.proto.graph().node()) {
    EXPECT_TRUE(names.insert(node.name()).second) << node.name();
    if (std::ranges::find(node.input(), "transformer.wte.weight") != node.input().end())
      usersOfWte.push_back(node.op_type());
  }
  EXPECT_THAT(usersOfWte, ElementsAre("Gather", "Transpose"));
  std::set<std::string> tensors;
  for (const GptTensor &tensor : model.tensors)
    EXPECT_TRUE(tensors.insert(tensor.name).second) << tensor.name;
}

TEST(GptConfig, presetsHaveTheirKnownSizes) {
  const std::vector<std::pair<std::string, uint64_t>> kSizes = {{"small", 10844160},
                                                                {"gpt2", 124439808},
                                                                {"gpt2-medium", 354823168},
                                                                {"gpt2-large", 774030080},
                                                                {"gpt2-xl", 1557611200}};
  for (const auto &[name, size] : kSizes) {
    std::optional<GptConfig> config = gptPreset(name);
    ASSERT_TRUE(config) << name;
    EXPECT_EQ(whyInvalid(*config), "");
    uint64_t parameters = 0;
    for (const GptTensor &tensor : buildGpt(*config).tensors)
      parameters += tensor.rule == TensorRule::causalMask ? 0 : tensor.numElements();
    EXPECT_EQ(parameters, size) << name;
  }
  EXPECT_FALSE(gptPreset("gpt5"));
}

TEST(GptConfig, saysWhyItIsInvalid) {
  GptConfig config = tinyConfig();
  config.heads = 4;
  EXPECT_EQ(whyInvalid(config), "--width 15 is not a multiple of --heads 4");
  config = tinyConfig();
  config.sequence = 10;
  EXPECT_EQ(whyInvalid(config), "--seq 10 is more than --context 9");
}

} // namespace
