// A program of one launch is made ready, run and dropped, again for each: slow, and as exact as the whole.
#include "tools/llmc-compile/StepRun.h"

#include "backend/cpu/CpuDevice.h"
#include "runtime/ElementConvert.h"
#include "runtime/FixedInputs.h"
#include "runtime/StateLoader.h"
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

StepRun::StepRun(PlanFile opened) : file(std::move(opened)), device(makeCpuDevice(defaultThreads())) {}

Result<std::unique_ptr<StepRun>> StepRun::open(const std::string &path, const EmittedPlan &emitted,
                                               const std::string &inputsPath) {
  Result<PlanFile> opened = openedOnce(path, emitted);
  LLMC_RETURN_IF_ERROR(opened);
  std::unique_ptr<StepRun> run(new StepRun(std::move(*opened)));
  const Plan &plan = run->file.plan();
  Result<size_t> index = run->device->pickTarget(plan);
  LLMC_RETURN_IF_ERROR(index);
  run->target = &plan.targets[*index];
  for (const Program &program : run->target->programs)
    if (program.kind == ProgramKind::step)
      run->step = &program;
  assert(run->step);
  auto allocate = [&](uint64_t bytes, const char *what, std::byte *&space) -> Status {
    Result<std::byte *> memory = run->device->allocate(bytes, what);
    LLMC_RETURN_IF_ERROR(memory);
    space = *memory;
    return {};
  };
  LLMC_RETURN_IF_ERROR(allocate(plan.stateBytes, "state", run->spaces.state));
  LLMC_RETURN_IF_ERROR(allocate(plan.gradientBytes, "gradients", run->spaces.gradients));
  LLMC_RETURN_IF_ERROR(allocate(run->step->arenaBytes, "arena", run->spaces.arena));
  LLMC_RETURN_IF_ERROR(run->device->loadCode(*run->target, run->file.code(*run->target)));
  LLMC_RETURN_IF_ERROR(loadWeights(run->file, *run->device, run->spaces.state, defaultThreads()));
  LLMC_RETURN_IF_ERROR(run->loadBatch(inputsPath));
  return run;
}

Status StepRun::store(const StateEntry &entry, std::span<const std::byte> bytes) {
  return device->copyIn(spaces.state + entry.buffer.offset, bytes);
}

Status StepRun::loadBatch(const std::string &inputsPath) {
  const Plan &plan = file.plan();
  Result<InputMap> map = mapInputs(plan, {});
  LLMC_RETURN_IF_ERROR(map);
  Result<FixedInputs> fixed = FixedInputs::load(inputsPath, *map, 1);
  LLMC_RETURN_IF_ERROR(fixed);
  Batch batch = makeBatch(*map);
  LLMC_RETURN_IF_ERROR(fixed->fill(0, 0, batch));
  for (size_t i = 0; i < batch.inputs.size(); ++i)
    LLMC_RETURN_IF_ERROR(store(*map->inputs[i], batch.inputs[i]));
  RankExchange::Contribution whole{.microBatches = 1, .tokens = batch.numTokens, .labels = batch.numLabels.value_or(0)};
  whole.microBatchesWithoutLabels = batch.numLabels ? 0 : 1;
  Result<double> scale = lossScale(whole, plan.lossIsTokenMean);
  if (!scale)
    return inContext(inputsPath, scale.error());
  auto values = scalarBits(kCheckedStep, *scale, 1, 1);
  for (const StateEntry &entry : plan.state)
    for (size_t i = 0; entry.kind == StateKind::scalar && i < kScalarNames.size(); ++i)
      if (entry.name == kScalarNames[i])
        LLMC_RETURN_IF_ERROR(store(entry, std::as_bytes(std::span(&values[i], 1))));
  return {};
}

Status StepRun::run(size_t launch) {
  Program one;
  one.kind = step->kind;
  one.arenaBytes = step->arenaBytes;
  one.launches = {step->launches[launch]};
  Result<std::unique_ptr<PreparedProgram>> prepared = device->prepare(one, spaces, nullptr);
  LLMC_RETURN_IF_ERROR(prepared);
  return (*prepared)->run();
}

std::vector<float> StepRun::read(const BufferRef &buffer, bool isBf16) const {
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
