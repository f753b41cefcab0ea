// llmc-run from its flags' values to its files, on the fake device.
#include "tools/llmc-run/RunPlan.h"

#include "runtime/OnnxSplice.h"
#include "runtime/Safetensors.h"
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TinyPlan.h"
#include "tools/llmc-run/RunOutputs.h"

#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>

namespace llmc::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;

class RunPlanTest : public ::testing::Test {
protected:
  RunPlanTest() {
    EXPECT_TRUE(writePlan(folder.path("tiny.plan"), tiny.plan, tiny.payload()));
    options.plan = folder.path("tiny.plan");
    options.threads = 2;
    options.hyper.lr = 0.25;
  }

  /// The error's message, or "" when all went well; what was printed goes to `printed`.
  std::string run() {
    char *text = nullptr;
    size_t size = 0;
    RunSurroundings around;
    around.makeDevice = [&](int, int) -> Result<std::unique_ptr<DeviceApi>> {
      if (!deviceError.empty())
        return Error{deviceError};
      return std::unique_ptr<DeviceApi>(std::make_unique<FakeDevice>(log));
    };
    around.deviceNote = " (a toy)";
    around.out = open_memstream(&text, &size);
    around.signal = &signal;
    around.version = "test";
    Result<int> status = runPlan(options, around);
    std::fclose(around.out);
    printed.assign(text, size);
    std::free(text);
    EXPECT_EQ(log.numAlive, 0u);
    return status ? "" : status.error().message;
  }

  /// Ids 0, 1, 2, 3, 4, 0, ... as raw uint16.
  std::string tokenFile(size_t count) {
    std::string bytes;
    for (size_t i = 0; i < count; ++i)
      bytes += {static_cast<char>(i % 5), '\0'};
    return folder.write("t.bin", bytes);
  }

  std::vector<nlohmann::json> metrics() {
    std::vector<nlohmann::json> lines;
    std::istringstream file(readFile(options.metrics));
    for (std::string line; std::getline(file, line);)
      lines.push_back(nlohmann::json::parse(line));
    return lines;
  }

  TestFolder folder;
  TinyPlan tiny;
  FakeDevice::Log log;
  std::string deviceError; ///< the device cannot be opened
  RunOptions options;
  std::atomic<int> signal{0};
  std::string printed;
};

TEST_F(RunPlanTest, SaysWhyThereIsNoDevice) {
  deviceError = "no driver";
  EXPECT_EQ(run(), "no driver");
}

TEST_F(RunPlanTest, SaysWhatNeedsTheMemoryAndWhatNeedsLess) {
  log.refused = "arena";
  EXPECT_EQ(run(), options.plan +
                       ": no memory for arena; in all it needs 0.000 GiB: state 0.000, gradients 0.000, arena "
                       "0.000; a plan compiled with a smaller --batch or --seq, or with --bf16, needs less "
                       "arena");
  options.accumulate = 2;
  EXPECT_THAT(run(), testing::EndsWith("needs less arena, a run with --accumulate 1 and --clip 0 no gradients"));
}

TEST_F(RunPlanTest, TrainsOneEpochByDefault) {
  options.data = tokenFile(3 * 5 + 1);
  options.metrics = folder.path("m.jsonl");
  options.plot = folder.path("loss.svg");
  options.exportWeights = folder.path("w.safetensors");
  ASSERT_EQ(run(), "");
  EXPECT_THAT(printed, HasSubstr("tokens go to idx, labels to targets, shifted by one"));
  EXPECT_THAT(printed, HasSubstr("16 tokens, 5 windows of 3, 3 steps an epoch; 3 steps (1.00 epochs)"));
  EXPECT_THAT(printed, HasSubstr("fake (a toy), 2 threads: program step (none), memory"));
  EXPECT_THAT(printed, HasSubstr("step 3/3  loss"));
  auto lines = metrics();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0]["program"], "step");
  EXPECT_EQ(lines[0]["version"], "test");
  EXPECT_EQ(lines[3]["step"], 3);
  EXPECT_EQ(lines[3]["tokens"], 3) << "the last step has one real row";
  EXPECT_EQ(lines[1]["grad_norm"], 7.0);
  EXPECT_EQ(lines[1]["peak_bytes"], 12345);
  EXPECT_TRUE(std::filesystem::exists(options.plot));
  auto weights = SafetensorsFile::open(options.exportWeights);
  float value = 0;
  std::memcpy(&value, weights->find("bias")->bytes.data(), 4);
  EXPECT_EQ(value, -1 - 3 * 0.25f);
}

TEST_F(RunPlanTest, RandomTokensSaySo) {
  options.steps = 2;
  options.hyper.clip = 0;
  ASSERT_EQ(run(), "");
  EXPECT_THAT(printed, HasSubstr("no --data: random tokens, only speed is measured; 2 steps"));
  EXPECT_EQ(log.runs.size(), 2u);
  EXPECT_EQ(log.runs[0].kind, ProgramKind::stepFused);
}

TEST_F(RunPlanTest, StepsZeroRunsForwardOnly) {
  options.steps = 0;
  options.exportOutputs = folder.path("o.safetensors");
  options.metrics = folder.path("m.jsonl");
  ASSERT_EQ(run(), "");
  EXPECT_EQ(log.prepared, std::vector{ProgramKind::forward});
  EXPECT_THAT(printed, HasSubstr("(forward only)"));
  EXPECT_TRUE(SafetensorsFile::open(options.exportOutputs)->find("logits"));
  auto lines = metrics();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0]["steps"], 0);
  EXPECT_EQ(lines[1]["step"], 1);
}

TEST_F(RunPlanTest, StepsZeroAveragesOverAllMicroBatches) {
  options.data = tokenFile(4 * 3 + 1);
  options.steps = 0;
  options.accumulate = 2;
  options.exportOutputs = folder.path("o.safetensors");
  options.metrics = folder.path("m.jsonl");
  ASSERT_EQ(run(), "");
  ASSERT_EQ(log.runs.size(), 3u);
  double sum = 0;
  for (const FakeRun &one : std::span(log.runs).first(2))
    for (int64_t label : one.labels)
      sum += static_cast<double>(label);
  EXPECT_NE(log.runs[0].labels, log.runs[1].labels);
  EXPECT_EQ(log.runs[2].labels, log.runs[0].labels) << "the outputs are the first micro-batch's";
  EXPECT_EQ(log.runs[0].scalar("loss_scale"), static_cast<float>(1.0 / 12));
  EXPECT_EQ(log.runs[2].scalar("loss_scale"), static_cast<float>(1.0 / 6));
  EXPECT_THAT(printed, HasSubstr(fmt::format("loss {:.6f} (forward only, over 2 micro-batches)", sum / 12)));
  EXPECT_THAT(printed, HasSubstr("(forward only, the first micro-batch)"));
  EXPECT_THAT(printed, HasSubstr("o.safetensors: outputs of the first of 2 micro-batches\n"));
  auto lines = metrics();
  EXPECT_NEAR(lines[1]["loss"], sum / 12, 1e-6);
  EXPECT_EQ(lines[1]["tokens"], 12);
}

TEST_F(RunPlanTest, ExportsTheFirstStepsGradientsBeforeItsUpdate) {
  options.steps = 1;
  options.accumulate = 2;
  options.exportGrads = folder.path("g.safetensors");
  options.exportOutputs = folder.path("o.safetensors");
  ASSERT_EQ(run(), "");
  using enum ProgramKind;
  std::vector<ProgramKind> kinds;
  for (const FakeRun &one : log.runs)
    kinds.push_back(one.kind);
  EXPECT_EQ(kinds, (std::vector{forward, accumulate, accumulate, accumulate, accumulate, update}));
  EXPECT_TRUE(SafetensorsFile::open(options.exportGrads)->find("table"));
}

TEST_F(RunPlanTest, StopsAtTheStepsEndWhenAsked) {
  options.steps = 5;
  options.exportWeights = folder.path("w.safetensors");
  signal = 2;
  ASSERT_EQ(run(), "");
  EXPECT_THAT(printed, HasSubstr("stopped by signal 2 after 0 of 5 steps"));
  EXPECT_TRUE(log.runs.empty());
  EXPECT_TRUE(std::filesystem::exists(options.exportWeights));
}

TEST_F(RunPlanTest, ReportsALossThatIsNoNumberOnce) {
  log.isNan = true;
  options.steps = 3;
  ASSERT_EQ(run(), "");
  EXPECT_THAT(printed, HasSubstr("step 1: the loss is nan"));
  EXPECT_EQ(printed.find("the loss is nan"), printed.rfind("the loss is nan"));
}

TEST_F(RunPlanTest, ErrorsLeaveNoFiles) {
  options.steps = 3;
  options.exportWeights = folder.path("w.safetensors");
  log.failAtRun = 1;
  EXPECT_EQ(run(), "step 2: kernel failed");
  EXPECT_FALSE(std::filesystem::exists(options.exportWeights));
  log = {};
  options.data = folder.path("missing.bin");
  EXPECT_THAT(run(), HasSubstr("missing.bin: cannot be opened"));
  options.data.clear();
  options.exportWeights = folder.path("no/such/w.safetensors");
  EXPECT_THAT(run(), HasSubstr("no/such/w.safetensors: cannot create"));
  EXPECT_TRUE(log.runs.empty()) << "said before the training, not after";
  options.exportWeights.clear();
  options.plan = folder.write("x.plan", "not a plan");
  EXPECT_THAT(run(), HasSubstr("x.plan: not a plan"));
}

TEST_F(RunPlanTest, RefusesEachOutputBeforeTheWork) {
  using Path = std::string RunOptions::*;
  for (Path output : {&RunOptions::metrics, &RunOptions::profile, &RunOptions::plot, &RunOptions::exportOnnx,
                      &RunOptions::exportWeights, &RunOptions::exportGrads, &RunOptions::exportOutputs}) {
    RunOptions others = options;
    options.*output = folder.path("no/file");
    EXPECT_EQ(run(), folder.path("no/file: cannot create: No such file or directory"));
    options.*output = std::filesystem::path(options.plan).parent_path(); // a folder
    EXPECT_THAT(run(), AnyOf(HasSubstr(": cannot write: it exists and is not a regular file"),
                             HasSubstr(": cannot be written: Is a directory"))); // a log, which can be a device
    // Said even before the plan is read.
    options.plan = folder.path("none");
    EXPECT_THAT(run(), Not(HasSubstr("none")));
    options = others;
  }
  EXPECT_TRUE(log.prepared.empty());
  EXPECT_TRUE(log.runs.empty());
}

TEST_F(RunPlanTest, RefusesTheFileOfALargeModelsWeights) {
  constexpr uint64_t kTooMuch = kMaxInlineModelBytes + 1; // for one file
  options.exportOnnx = folder.path("m.onnx");
  EXPECT_TRUE(checkExportedData(options, tiny.plan, kTooMuch));
  options.data = folder.path("m.onnx.data");
  EXPECT_EQ(checkExportedData(options, tiny.plan, kTooMuch).error().message,
            fmt::format("the weights of --export-onnx {0} and --data {0} are the same file", options.data));
  EXPECT_TRUE(checkExportedData(options, tiny.plan, 1)) << "all in one file";
  options.data.clear();
  options.metrics = folder.path("m.onnx.data");
  EXPECT_THAT(checkExportedData(options, tiny.plan, kTooMuch).error().message, HasSubstr("and --metrics "));
  options.metrics.clear();
  std::filesystem::create_directory(folder.path("m.onnx.data"));
  EXPECT_EQ(checkExportedData(options, tiny.plan, kTooMuch).error().message,
            folder.path("m.onnx.data: cannot write: it exists and is not a regular file"));
  EXPECT_TRUE(checkExportedData(RunOptions(), tiny.plan, kTooMuch)) << "nothing is exported";
}

} // namespace
} // namespace llmc::test
