// A program of one launch is made ready, run and dropped, again for each: slow, and as exact as the whole.
#include "tools/llmc-compile/StepRun.h"

#include "backend/cpu/CpuDevice.h"
#include "runtime/ElementConvert.h"
#include "runtime/FixedInputs.h"
#include "tools/Threads.h"

#include <filesystem>

namespace llmc {

/// Written, opened and taken away: the open file stays readable.
static Result<PlanFile> openedOnce(const std::string &path, const EmittedPlan &emitted) {
  LLMC_RETURN_IF_ERROR(writePlan(path, emitted.plan, emitted.payload));
  Result<PlanFile> file = PlanFile::open(path);
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  return file;
}

StepRun::StepRun(PlanFile opened)
    : file(std::move(opened)), device(makeCpuDevice(defaultThreads())), loaded(file, *device) {}

Result<std::unique_ptr<StepRun>> StepRun::open(const std::string &path, const EmittedPlan &emitted,
                                               const std::string &inputsPath) {
  Result<PlanFile> opened = openedOnce(path, emitted);
  LLMC_RETURN_IF_ERROR(opened);
  std::unique_ptr<StepRun> run(new StepRun(std::move(*opened)));
  LLMC_RETURN_IF_ERROR(run->loaded.choose());
  LLMC_RETURN_IF_ERROR(run->loaded.use(ProgramKind::step));
  LLMC_RETURN_IF_ERROR(run->loaded.load(defaultThreads()));
  LLMC_RETURN_IF_ERROR(run->loadBatch(inputsPath));
  return run;
}

Status StepRun::loadBatch(const std::string &inputsPath) {
  const Plan &plan = file.plan();
  Result<InputMap> map = mapInputs(plan, {});
  LLMC_RETURN_IF_ERROR(map);
  Result<FixedInputs> fixed = FixedInputs::load(inputsPath, *map, 1);
  LLMC_RETURN_IF_ERROR(fixed);
  Batch batch = makeBatch(*map);
  LLMC_RETURN_IF_ERROR(fixed->fill(0, 0, batch));
  LLMC_RETURN_IF_ERROR(loaded.storeInputs(batch));
  RankExchange::Contribution whole{.microBatches = 1, .tokens = batch.numTokens, .labels = batch.numLabels.value_or(0)};
  whole.microBatchesWithoutLabels = batch.numLabels ? 0 : 1;
  Result<double> scale = lossScale(whole, plan.lossIsTokenMean);
  if (!scale)
    return inContext(inputsPath, scale.error());
  return loaded.storeScalars(scalarBits(kCheckedStep, *scale, 1, 1));
}

Status StepRun::run(size_t launch) {
  Program one;
  one.kind = program().kind;
  one.arenaBytes = program().arenaBytes;
  one.launches = {program().launches[launch]};
  Result<std::unique_ptr<PreparedProgram>> prepared = device->prepare(one, loaded.spaces(), nullptr);
  LLMC_RETURN_IF_ERROR(prepared);
  return (*prepared)->run();
}

std::vector<float> StepRun::read(const BufferRef &buffer, bool isBf16) const {
  const DeviceSpaces &spaces = loaded.spaces();
  const std::byte *space = buffer.space == Space::state       ? spaces.state
                           : buffer.space == Space::gradients ? spaces.gradients
                                                              : spaces.arena;
  std::vector<float> values(buffer.bytes / (isBf16 ? 2 : 4));
  const std::byte *src = space + buffer.offset; // a CPU's memory
  if (!isBf16) {
    std::memcpy(values.data(), src, values.size() * sizeof(float));
    return values;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    uint16_t bits = 0;
    std::memcpy(&bits, src + 2 * i, sizeof(bits));
    values[i] = floatFromBf16(bits);
  }
  return values;
}

} // namespace llmc
