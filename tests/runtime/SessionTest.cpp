// What a session asks of a device: which programs, which memory, which numbers.
#include "runtime/Session.h"

#include "runtime/Exports.h"
#include "runtime/Safetensors.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TinyPlan.h"

#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class SessionTest : public ::testing::Test {
protected:
  /// Writes the tiny plan and opens a session on the fake device.
  Status open(const SessionOptions &options) {
    session.reset();
    file.reset();
    LLMC_RETURN_IF_ERROR(writePlan(folder.path("tiny.plan"), tiny.plan, tiny.payload()));
    Result<PlanFile> opened = PlanFile::open(folder.path("tiny.plan"));
    LLMC_RETURN_IF_ERROR(opened);
    file.emplace(std::move(*opened));
    Result<InputMap> mapped = mapInputs(file->plan(), {});
    LLMC_RETURN_IF_ERROR(mapped);
    map = *mapped;
    device = std::make_unique<FakeDevice>(log);
    Result<std::unique_ptr<Session>> started = Session::open(*file, *device, options);
    LLMC_RETURN_IF_ERROR(started);
    session = std::move(*started);
    return {};
  }

  /// Two rows of three tokens and labels (-1 is ignored).
  Batch batch(std::vector<int64_t> labels) {
    Batch made = makeBatch(map);
    for (size_t i = 0; i < 6; ++i) {
      EXPECT_TRUE(storeId(made.inputs[0], ElementType::i64, i, static_cast<int64_t>(i % 5)));
      EXPECT_TRUE(storeId(made.inputs[1], ElementType::i64, i, labels[i]));
    }
    made.numTokens = 6;
    made.numLabels = countLabels(map, made);
    return made;
  }

  std::vector<float> parameter(const char *name) {
    StateEntry &entry = tiny.entry(name);
    std::vector<float> values(entry.buffer.bytes / 4);
    EXPECT_TRUE(session->read(entry, 0, std::as_writable_bytes(std::span(values))));
    return values;
  }

  TestFolder folder;
  TinyPlan tiny;
  FakeDevice::Log log;
  InputMap map;
  std::optional<PlanFile> file;
  std::unique_ptr<FakeDevice> device;
  std::unique_ptr<Session> session;
};

TEST_F(SessionTest, PicksTheProgramsByTheFlags) {
  struct Case {
    SessionOptions options;
    const char *programs;
    std::vector<ProgramKind> prepared;
    bool hasGradients;
  };
  using enum ProgramKind;
  const Case cases[] = {
      {{.clips = false}, "step-fused", {stepFused}, false},
      {{.clips = true}, "step", {step}, false},
      {{.clips = false, .microBatches = 2}, "accumulate + update", {accumulate, update}, true},
      {{.clips = false, .needsForward = true, .needsGradients = true},
       "step-fused",
       {stepFused, accumulate, forward},
       true},
      {{.trains = false, .needsForward = true}, "forward", {forward}, false},
  };
  for (const Case &wanted : cases) {
    log = {};
    Status status = open(wanted.options);
    ASSERT_TRUE(status) << status.error().message;
    EXPECT_EQ(session->programs(), wanted.programs);
    EXPECT_EQ(log.prepared, wanted.prepared);
    EXPECT_EQ(log.allocated.at("state"), tiny.plan.stateBytes);
    EXPECT_EQ(log.allocated.at("arena"), 256u);
    EXPECT_EQ(log.allocated.at("gradients"), wanted.hasGradients ? tiny.plan.gradientBytes : 0);
    EXPECT_EQ(session->gradientBytes(), wanted.hasGradients ? tiny.plan.gradientBytes : 0);
    session.reset();
    EXPECT_EQ(log.numAlive, 0u);
  }
}

TEST_F(SessionTest, FallsBackToAccumulateWithoutAStepProgram) {
  std::erase_if(tiny.plan.targets[0].programs, [](const Program &p) { return p.kind == ProgramKind::step; });
  ASSERT_TRUE(open({.clips = true}));
  EXPECT_EQ(session->programs(), "accumulate + update");
}

TEST_F(SessionTest, NamesAMissingProgram) {
  std::erase_if(tiny.plan.targets[0].programs, [](const Program &p) { return p.kind == ProgramKind::forward; });
  EXPECT_THAT(open({.trains = false, .needsForward = true}).error().message,
              HasSubstr("tiny.plan: the plan has no program 'forward' for fake none; it has: step-fused, step, "));
}

TEST_F(SessionTest, LoadsWeightsAndCode) {
  ASSERT_TRUE(open({.threads = 3}));
  EXPECT_EQ(parameter("table"), tiny.table);
  EXPECT_EQ(parameter("bias"), tiny.bias);
  EXPECT_EQ(parameter("mask"), tiny.mask);
  EXPECT_EQ(log.code, tiny.code);
}

TEST_F(SessionTest, LoadsWeightsOfSeveralChunks) {
  tiny.mask.resize(2 * kWeightsChunkBytes / sizeof(float) + 100);
  for (size_t i = 0; i < tiny.mask.size(); ++i)
    tiny.mask[i] = static_cast<float>(i);
  StateEntry &mask = tiny.entry("mask");
  mask.shape = {static_cast<int64_t>(tiny.mask.size())};
  mask.buffer = {Space::state, tiny.plan.stateBytes, tiny.mask.size() * sizeof(float)};
  tiny.plan.stateBytes += (mask.buffer.bytes + 63) / 64 * 64;
  ASSERT_TRUE(open({.threads = 2}));
  EXPECT_EQ(parameter("table"), tiny.table);
  EXPECT_EQ(parameter("bias"), tiny.bias);
  EXPECT_TRUE(parameter("mask") == tiny.mask);
}

TEST_F(SessionTest, RefusesDamagedWeights) {
  ASSERT_TRUE(writePlan(folder.path("tiny.plan"), tiny.plan, tiny.payload()));
  std::string content = readFile(folder.path("tiny.plan"));
  size_t at = content.find(std::string(reinterpret_cast<const char *>(tiny.bias.data()), 16));
  ASSERT_NE(at, std::string::npos);
  content[at] ^= 64;
  Result<PlanFile> damaged = PlanFile::open(folder.write("damaged.plan", content));
  ASSERT_TRUE(damaged);
  FakeDevice other(log);
  Result<std::unique_ptr<Session>> started = Session::open(*damaged, other, {});
  ASSERT_FALSE(started);
  EXPECT_THAT(started.error().message, HasSubstr("damaged.plan: damaged plan: the checksum of weights"));
  EXPECT_TRUE(log.runs.empty());
  EXPECT_EQ(log.numAlive, 0u);
}

TEST_F(SessionTest, WritesHyperparametersEachStep) {
  ASSERT_TRUE(open({}));
  HyperParameters hyper;
  hyper.beta2 = 0.999;
  hyper.seed = 0x123456789ABCDEFull;
  Batch one = batch({1, 2, -1, 4, 0, 3});
  for (int64_t number = 1; number <= 3; ++number) {
    hyper.lr = 0.5 / static_cast<double>(number);
    Result<StepResult> result = session->step(std::span(&one, 1), number, hyper);
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_FLOAT_EQ(static_cast<float>(result->loss), 10.0f / 5);
    EXPECT_EQ(result->gradNorm, 7.0);
    EXPECT_EQ(result->tokens, 6);
  }
  ASSERT_EQ(log.runs.size(), 3u);
  const FakeRun &third = log.runs[2];
  EXPECT_EQ(third.kind, ProgramKind::step);
  EXPECT_EQ(third.scalar("lr"), static_cast<float>(0.5 / 3));
  EXPECT_EQ(third.scalar("beta2"), 0.999f);
  EXPECT_EQ(third.scalar("one_minus_beta1"), 0.1f);
  EXPECT_EQ(third.scalar("one_minus_beta2"), 0.001f) << "1 - 0.999f is smaller in its fifth digit";
  EXPECT_EQ(third.scalar("clip"), 1.0f);
  EXPECT_EQ(third.scalar("bias_correction1"), static_cast<float>(1 - 0.9 * 0.9 * 0.9));
  EXPECT_EQ(third.scalar("bias_correction2"), static_cast<float>(1 - std::pow(0.999, 3.0)));
  EXPECT_EQ(third.scalar("loss_scale"), 0.2f);
  EXPECT_EQ(third.scalars.at("seed_lo"), 0x89ABCDEFu);
  EXPECT_EQ(third.scalars.at("seed_hi"), 0x01234567u);
  EXPECT_EQ(third.scalars.at("step"), 3u);
  EXPECT_THAT(third.labels, ElementsAre(1, 2, -1, 4, 0, 3));
  EXPECT_THAT(third.tokens, ElementsAre(0, 1, 2, 3, 4, 0));
}

TEST_F(SessionTest, MicroBatchesShareOneScale) {
  ASSERT_TRUE(open({.clips = false, .microBatches = 2}));
  std::vector<Batch> batches = {batch({1, 2, -1, 4, 0, 3}), batch({-1, -1, -1, 2, -1, -1})};
  HyperParameters hyper;
  hyper.clip = 0;
  for (int64_t number : {1, 2}) {
    Result<StepResult> result = session->step(batches, number, hyper);
    ASSERT_TRUE(result);
    // The mean over all six labels, not the mean of two means.
    EXPECT_FLOAT_EQ(static_cast<float>(result->loss), 12.0f / 6);
    EXPECT_EQ(result->tokens, 12);
  }
  using enum ProgramKind;
  std::vector<ProgramKind> kinds;
  for (const FakeRun &run : log.runs)
    kinds.push_back(run.kind);
  EXPECT_THAT(kinds, ElementsAre(accumulate, accumulate, update, accumulate, accumulate, update));
  EXPECT_EQ(log.runs[0].scalar("loss_scale"), static_cast<float>(1.0 / 6));
  EXPECT_EQ(log.runs[0].scalar("clip"), 0.0f);
  // Micro-batches count on, so that dropout differs; Adam's step does not.
  EXPECT_EQ(log.runs[1].scalars.at("step"), 2u);
  EXPECT_EQ(log.runs[4].scalars.at("step"), 4u);
  EXPECT_EQ(log.runs[4].scalar("bias_correction1"), static_cast<float>(1 - 0.9 * 0.9));
}

TEST_F(SessionTest, RefusesOnlyIgnoredLabels) {
  ASSERT_TRUE(open({}));
  Batch none = batch({-1, -1, -1, -1, -1, -1});
  EXPECT_THAT(session->step(std::span(&none, 1), 1, {}).error().message, HasSubstr("every label is ignored"));
  EXPECT_TRUE(log.runs.empty());
}

TEST_F(SessionTest, ALossThatIsNoMeanOverLabelsCountsEachMicroBatchAlike) {
  tiny.plan.lossIsTokenMean = false;
  ASSERT_TRUE(open({.microBatches = 2}));
  std::vector<Batch> batches = {batch({1, 2, -1, 4, 0, 3}), batch({-1, -1, -1, -1, -1, -1})};
  ASSERT_TRUE(session->step(batches, 1, {}));
  EXPECT_EQ(log.runs[0].scalar("loss_scale"), 0.5f);
}

TEST_F(SessionTest, ScaleWithoutLabelsIsOneOverMicroBatches) {
  EXPECT_EQ(*lossScale({.microBatches = 4, .microBatchesWithoutLabels = 4}, true), 0.25);
  EXPECT_EQ(*lossScale({.microBatches = 4, .labels = 100}, false), 0.25);
  EXPECT_EQ(*lossScale({.microBatches = 4, .labels = 100}, true), 0.01);
}

TEST_F(SessionTest, ExportsGradientsOutputsAndWeights) {
  ASSERT_TRUE(open({.microBatches = 2, .needsForward = true, .needsGradients = true}));
  std::vector<Batch> batches = {batch({1, 1, 1, 1, -1, -1}), batch({1, 1, 1, 1, -1, -1})};
  ASSERT_TRUE(session->forward(std::span(batches).first(1), {}));
  ASSERT_TRUE(exportOutputs(*session, folder.path("outputs.safetensors")));
  ASSERT_TRUE(session->gradients(batches, 1, {}));
  ASSERT_TRUE(exportGradients(*session, folder.path("grads.safetensors")));
  ASSERT_TRUE(exportWeights(*session, folder.path("weights.safetensors")));

  auto grads = SafetensorsFile::open(folder.path("grads.safetensors"));
  ASSERT_TRUE(grads) << grads.error().message;
  EXPECT_EQ(grads->tensors().size(), 2u);
  float value = 0;
  std::memcpy(&value, grads->find("bias")->bytes.data(), 4);
  EXPECT_EQ(value, 0.25f); // two micro-batches of 1/8 each, from zero
  auto outputs = SafetensorsFile::open(folder.path("outputs.safetensors"));
  ASSERT_TRUE(outputs);
  EXPECT_EQ(outputs->tensors().size(), 2u) << "loss and logits; the gradient norm is not forward's";
  EXPECT_THAT(outputs->find("logits")->shape, ElementsAre(2, 3, 5));
  std::memcpy(&value, outputs->find("logits")->bytes.data() + 4 * 29, 4);
  EXPECT_EQ(value, 29.0f);
  auto weights = SafetensorsFile::open(folder.path("weights.safetensors"));
  ASSERT_TRUE(weights);
  EXPECT_EQ(std::memcmp(weights->find("table")->bytes.data(), tiny.table.data(), 80), 0);
}

/// The table (5, 4) and the bias as (2, 2) become columns 0 to 3 and 4 to 5 of rows of six.
TEST_F(SessionTest, LoadsAndExportsPiecesOfALargerValue) {
  auto cut = [&](const char *name, uint64_t firstColumn, uint64_t columns) {
    StateEntry &entry = tiny.entry(name);
    entry.buffer.offset = tiny.plan.stateBytes + firstColumn * 4;
    entry.gradient.offset = tiny.plan.gradientBytes + firstColumn * 4;
    entry.rows = {columns, 6};
  };
  cut("table", 0, 4);
  cut("bias", 4, 2);
  tiny.entry("bias").shape = {2, 2};
  tiny.plan.stateBytes += 128;
  tiny.plan.gradientBytes += 128;
  Status status = open({.microBatches = 2, .needsGradients = true});
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(parameter("table"), tiny.table);
  EXPECT_EQ(parameter("bias"), tiny.bias);
  std::array<float, 3> part;
  ASSERT_TRUE(session->read(tiny.entry("table"), 7 * 4, std::as_writable_bytes(std::span(part))));
  EXPECT_THAT(part, ElementsAre(tiny.table[7], tiny.table[8], tiny.table[9]));

  std::vector<Batch> batches = {batch({1, 1, 1, 1, -1, -1}), batch({1, 1, 1, 1, -1, -1})};
  ASSERT_TRUE(session->gradients(batches, 1, {}));
  ASSERT_TRUE(exportGradients(*session, folder.path("grads.safetensors")));
  ASSERT_TRUE(exportWeights(*session, folder.path("weights.safetensors")));
  auto grads = SafetensorsFile::open(folder.path("grads.safetensors"));
  ASSERT_TRUE(grads) << grads.error().message;
  std::vector<float> expected(20, 0.25f);
  EXPECT_EQ(std::memcmp(grads->find("table")->bytes.data(), expected.data(), 80), 0);
  EXPECT_EQ(std::memcmp(grads->find("bias")->bytes.data(), expected.data(), 16), 0);
  auto weights = SafetensorsFile::open(folder.path("weights.safetensors"));
  ASSERT_TRUE(weights) << weights.error().message;
  EXPECT_THAT(weights->find("table")->shape, ElementsAre(5, 4));
  EXPECT_EQ(std::memcmp(weights->find("table")->bytes.data(), tiny.table.data(), 80), 0);
  EXPECT_EQ(std::memcmp(weights->find("bias")->bytes.data(), tiny.bias.data(), 16), 0);
}

TEST_F(SessionTest, PassesADevicesErrorUp) {
  log.failAtRun = 0;
  ASSERT_TRUE(open({}));
  Batch one = batch({1, 1, 1, 1, 1, 1});
  EXPECT_EQ(session->step(std::span(&one, 1), 1, {}).error().message, "kernel failed");
}

} // namespace
} // namespace llmc::test
