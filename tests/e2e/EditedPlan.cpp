// From a model to a compiled plan, from an edited plan to what training sees.
#include "tests/e2e/EditedPlan.h"

#include "runtime/PlanWriter.h"
#include "runtime/Random.h"
#include "runtime/Session.h"
#include "tests/runtime/TinyPlan.h"
#include "tools/llmc-compile/CompileModel.h"
#include "tools/llmc-gpt/ModelFile.h"

namespace llmc::test {

constexpr int64_t kSteps = 2;

static Editable compileTiny() {
  TestFolder folder;
  std::string onnx = folder.path("tiny.onnx"), path = folder.path("tiny.plan");
  GptConfig config{.layers = 1, .heads = 2, .width = 32, .vocab = 61, .context = 16, .sequence = 16, .batch = 2};
  EXPECT_TRUE(writeModel(buildGpt(config), {onnx, config.seed}));
  CompileOptions options;
  options.import.path = onnx;
  options.output = path;
  options.hasCpu = false;
  options.hasCuda = true;
  Status status = compileModel(options);
  EXPECT_TRUE(status) << status.error().message;
  Result<PlanFile> file = PlanFile::open(path);
  EXPECT_TRUE(file) << file.error().message;
  Editable made;
  made.plan = file->plan();
  made.code.assign(reinterpret_cast<const char *>(file->code().data()), file->code().size());
  made.model.assign(file->model().begin(), file->model().end());
  made.weights.resize(file->weightsBytes());
  for (size_t i = 0; i < file->numWeightsChunks(); ++i)
    EXPECT_TRUE(file->readWeightsChunk(i, std::span(made.weights).subspan(i * kWeightsChunkBytes)));
  return made;
}

const Editable &compiled() {
  static const Editable once = compileTiny();
  return once;
}

static Status fill(const InputMap &map, int64_t step, Batch &batch) {
  std::vector<int64_t> window(static_cast<size_t>(map.length) + 1);
  for (int64_t row = 0; row < map.rows; ++row) {
    for (size_t t = 0; t < window.size(); ++t)
      window[t] = static_cast<int64_t>(uniformBelow(mixBits(mixBits(static_cast<uint64_t>(step * 97 + row)) ^ t), 61));
    LLMC_RETURN_IF_ERROR(storeRow(map, row, window, batch));
  }
  batch.numTokens = map.rows * map.length;
  batch.numLabels = countLabels(map, batch);
  return {};
}

static Status trainOn(DeviceApi &device, const std::string &path, Outcome &outcome) {
  Result<PlanFile> file = PlanFile::open(path);
  LLMC_RETURN_IF_ERROR(file);
  SessionOptions options;
  options.clips = false;
  Result<std::unique_ptr<Session>> session = Session::open(*file, device, options);
  LLMC_RETURN_IF_ERROR(session);
  Result<InputMap> map = mapInputs(file->plan(), {});
  LLMC_RETURN_IF_ERROR(map);
  HyperParameters hyper;
  hyper.clip = 0;
  std::vector<Batch> batches(1, makeBatch(*map));
  for (int64_t step = 1; step <= kSteps; ++step) {
    LLMC_RETURN_IF_ERROR(fill(*map, step, batches[0]));
    Result<StepResult> result = (*session)->step(batches, step, hyper);
    LLMC_RETURN_IF_ERROR(result);
    outcome.seen.insert(outcome.seen.end(), {result->loss, result->gradNorm.value_or(0)});
  }
  Result<uint64_t> hash = (*session)->weightsHash();
  LLMC_RETURN_IF_ERROR(hash);
  outcome.weights = *hash;
  return {};
}

Outcome train(const Editable &edited, const Watch &watch, const CudasimConfig &config) {
  TestFolder folder;
  std::string path = folder.path("edited.plan");
  PlanPayload payload{{{0, edited.weights}}, std::as_bytes(std::span(edited.code)), edited.model};
  if (Status status = writePlan(path, edited.plan, payload); !status)
    return {status.error().message, 0, {}};
  cuda::test::SimDevice sim(config);
  if (watch)
    watch(sim);
  Outcome outcome;
  if (Status status = trainOn(*sim.device, path, outcome); !status)
    outcome.error = status.error().message;
  return outcome;
}

} // namespace llmc::test
