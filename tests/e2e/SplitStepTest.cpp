// The same rows, dealt to ranks and micro-batches in every way: losses and gradient norms must not notice. Ranks are
// threads of this process, each with a CPU device of one thread.
#include "backend/cpu/CpuDevice.h"
#include "runtime/Random.h"
#include "runtime/Session.h"
#include "tests/runtime/ThreadRanks.h"
#include "tests/runtime/TinyPlan.h"
#include "tools/llmc-compile/CompileModel.h"
#include "tools/llmc-gpt/ModelFile.h"

#include <cmath>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

constexpr int64_t kRows = 4, kSteps = 20;

/// How the rows of a step are dealt.
struct Split {
  int ranks = 1;
  int64_t microBatches = 1;
  double clip = 1;
  int64_t batch() const { return kRows / (ranks * microBatches); }
};

/// What rank 0 saw of each step, and every rank's weights at the end.
struct Trace {
  std::vector<double> losses, norms;
  std::vector<int64_t> tokens;
  std::vector<uint64_t> weights;
  std::string programs;
  uint64_t numSums = 0;
};

/// Row `row` of step `step`: the same wherever it is computed. Labels are ignored unevenly: row 0 counts whole, row 1
/// has one label, the others something between.
Status fillRow(const InputMap &map, int64_t step, int64_t row, int64_t at, Batch &batch) {
  std::vector<int64_t> window(static_cast<size_t>(map.length) + 1);
  uint64_t key = mixBits(mixBits(static_cast<uint64_t>(step)) ^ static_cast<uint64_t>(row));
  auto vocabulary = static_cast<uint64_t>(map.tokensEntry().vocabulary);
  for (size_t t = 0; t < window.size(); ++t)
    window[t] = static_cast<int64_t>(uniformBelow(mixBits(key ^ mixBits(t)), vocabulary));
  LLMC_RETURN_IF_ERROR(storeRow(map, at, window, batch));
  for (int64_t t = 0; t < map.length; ++t) {
    bool counts = row == 0 || (row == 1 ? t == step % map.length : (t * row + step) % 3 != 0);
    auto index = static_cast<uint64_t>(at * map.length + t);
    if (!counts)
      LLMC_RETURN_IF_ERROR(
          storeId(batch.inputs[*map.labels], map.labelsEntry().type, index, map.labelsEntry().ignoreIndex));
  }
  return {};
}

class SplitStep : public ::testing::TestWithParam<const char *> {
protected:
  /// The plan for a batch of some rows, compiled once.
  static const PlanFile &plan(int64_t batch) {
    static std::map<std::pair<std::string, int64_t>, PlanFile> plans;
    static TestFolder folder;
    std::pair<std::string, int64_t> key(GetParam(), batch);
    if (auto found = plans.find(key); found != plans.end())
      return found->second;
    GptConfig config = *gptPreset("small");
    config.sequence = 64;
    if (key.first == "tiny")
      config = {.layers = 2, .heads = 2, .width = 32, .vocab = 61, .context = 16, .sequence = 16};
    config.batch = batch;
    std::string onnx = folder.path(fmt::format("{}{}.onnx", key.first, batch)), path = onnx + ".plan";
    EXPECT_TRUE(writeModel(buildGpt(config), {onnx, config.seed}));
    CompileOptions options;
    options.import.path = onnx;
    options.output = path;
    options.isas = {"x86-64-v3"};
    Status status = compileModel(options);
    EXPECT_TRUE(status) << status.error().message;
    Result<PlanFile> file = PlanFile::open(path);
    EXPECT_TRUE(file) << file.error().message;
    return plans.emplace(key, std::move(*file)).first->second;
  }

  static Status runRank(const Split &split, CommApi &comm, const PlanFile &file, Trace &trace) {
    std::unique_ptr<DeviceApi> device = makeCpuDevice(1);
    SessionOptions options;
    options.clips = split.clip > 0;
    options.microBatches = split.microBatches;
    options.comm = split.ranks > 1 ? &comm : nullptr;
    Result<std::unique_ptr<Session>> session = Session::open(file, *device, options);
    LLMC_RETURN_IF_ERROR(session);
    Result<InputMap> map = mapInputs(file.plan(), {});
    LLMC_RETURN_IF_ERROR(map);
    HyperParameters hyper;
    hyper.clip = split.clip;
    std::vector<Batch> batches(static_cast<size_t>(split.microBatches), makeBatch(*map));
    for (int64_t step = 0; step < kSteps; ++step) {
      for (int64_t micro = 0; micro < split.microBatches; ++micro) {
        Batch &batch = batches[static_cast<size_t>(micro)];
        for (int64_t at = 0; at < split.batch(); ++at)
          LLMC_RETURN_IF_ERROR(
              fillRow(*map, step, (micro * split.ranks + comm.rank()) * split.batch() + at, at, batch));
        batch.numTokens = map->rows * map->length;
        batch.numLabels = countLabels(*map, batch);
      }
      Result<StepResult> result = (*session)->step(batches, step + 1, hyper);
      LLMC_RETURN_IF_ERROR(result);
      if (comm.rank() == 0) {
        trace.losses.push_back(result->loss);
        trace.norms.push_back(result->gradNorm.value_or(0));
        trace.tokens.push_back(result->tokens);
      }
    }
    Result<uint64_t> hash = (*session)->weightsHash();
    LLMC_RETURN_IF_ERROR(hash);
    trace.weights[static_cast<size_t>(comm.rank())] = *hash;
    if (comm.rank() == 0)
      trace.programs = (*session)->programs();
    return {};
  }

  static Trace train(const Split &split) {
    const PlanFile &file = plan(split.batch());
    ThreadRanks ranks(split.ranks);
    Trace trace;
    trace.weights.resize(static_cast<size_t>(split.ranks));
    Status status = ranks.run([&](int rank) { return runRank(split, ranks.of(rank), file, trace); });
    EXPECT_TRUE(status) << status.error().message;
    trace.numSums = ranks.numSums();
    return trace;
  }

  static double largestDistance(const std::vector<double> &a, const std::vector<double> &b) {
    EXPECT_EQ(a.size(), b.size());
    double largest = 0;
    for (size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      largest = std::max(largest, std::abs(a[i] - b[i]) / std::abs(a[i]));
    return largest;
  }

  static void expectSame(const Trace &one, const Split &split, const char *programs) {
    SCOPED_TRACE(fmt::format("{} ranks, {} micro-batches, clip {}", split.ranks, split.microBatches, split.clip));
    Trace other = train(split);
    EXPECT_EQ(other.programs, programs);
    EXPECT_EQ(other.tokens, one.tokens);
    EXPECT_EQ(other.numSums > 0, split.ranks > 1);
    double loss = largestDistance(one.losses, other.losses), norm = largestDistance(one.norms, other.norms);
    fmt::print("{} x {} micro-batches, clip {}: losses differ by {:.2g}, norms by {:.2g}\n", split.ranks,
               split.microBatches, split.clip, loss, norm);
    EXPECT_LE(loss, 2e-6);
    EXPECT_LE(norm, 2e-6);
    for (uint64_t hash : other.weights)
      EXPECT_EQ(hash, other.weights.front()) << "ranks end with different weights";
  }
};

TEST_P(SplitStep, StaysTheSame) {
  Trace one = train({1, 1, 1.0});
  EXPECT_EQ(one.programs, "step");
  EXPECT_GT(std::abs(one.losses.back() - one.losses.front()), 0.01) << "the weights do not move";
  expectSame(one, {2, 1, 1.0}, "step-ranks");
  expectSame(one, {4, 1, 1.0}, "step-ranks");
  expectSame(one, {1, 2, 1.0}, "accumulate + update");
  expectSame(one, {1, 4, 1.0}, "accumulate + update");
  expectSame(one, {2, 2, 1.0}, "accumulate + update-ranks");
}

TEST_P(SplitStep, StaysTheSameWithoutClipping) {
  Trace one = train({1, 1, 0});
  EXPECT_EQ(one.programs, "step-fused");
  expectSame(one, {2, 1, 0}, "step-fused-ranks");
  expectSame(one, {4, 1, 0}, "step-fused-ranks");
  expectSame(one, {2, 2, 0}, "accumulate + update-ranks");
}

INSTANTIATE_TEST_SUITE_P(Models, SplitStep, ::testing::Values("tiny", "small"),
                         [](const auto &info) { return std::string(info.param); });

} // namespace
} // namespace llmc::test
