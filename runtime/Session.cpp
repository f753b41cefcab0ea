// Opening in the order choose, load, prepare; nothing is allocated afterwards.
#include "runtime/Session.h"

#include "runtime/PieceRuns.h"
#include "runtime/PlanFormat.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

namespace llmc {

/// Weights are read for hashing in pieces of this size.
static constexpr uint64_t kHashedBytes = 4ull << 20;
/// Gradients are summed over ranks in pieces of this size.
static constexpr uint64_t kSummedBytes = 16ull << 20;

static RankExchange::Contribution contributionOf(std::span<const Batch> batches) {
  RankExchange::Contribution mine;
  mine.microBatches = static_cast<int64_t>(batches.size());
  for (const Batch &batch : batches) {
    mine.tokens += batch.numTokens;
    mine.labels += batch.numLabels.value_or(0);
    mine.microBatchesWithoutLabels += !batch.numLabels;
  }
  return mine;
}

Result<double> lossScale(const RankExchange::Contribution &total, bool lossIsTokenMean) {
  if (!lossIsTokenMean || total.microBatchesWithoutLabels > 0)
    return 1.0 / static_cast<double>(total.microBatches);
  if (total.labels == 0)
    return Error{"every label is ignored: the mean loss is not defined"};
  return 1.0 / static_cast<double>(total.labels);
}

static const StateEntry *findOutput(const Plan &plan, const char *role) {
  for (const StateEntry &entry : plan.state)
    if (entry.kind == StateKind::output && entry.role == role)
      return &entry;
  return nullptr;
}

/// The programs of a run: the one with the least memory that does what the flags ask.
Status Session::choose(const SessionOptions &options) {
  LLMC_RETURN_IF_ERROR(loaded.choose());
  if (options.needsForward)
    LLMC_RETURN_IF_ERROR(loaded.use(ProgramKind::forward));
  if (options.needsGradients)
    LLMC_RETURN_IF_ERROR(loaded.use(ProgramKind::accumulate));
  programNames = programKindName(ProgramKind::forward);
  if (!options.trains)
    return {};
  bool ranks = exchange.worldSize() > 1;
  ProgramKind stepFused = ranks ? ProgramKind::stepFusedRanks : ProgramKind::stepFused;
  ProgramKind step = ranks ? ProgramKind::stepRanks : ProgramKind::step;
  if (options.microBatches == 1 && !options.clips && loaded.find(stepFused))
    stepKind = stepFused;
  else if (options.microBatches == 1 && loaded.find(step))
    stepKind = step;
  else
    accumulates = true;
  if (!accumulates) {
    programNames = programKindName(stepKind);
    return loaded.use(stepKind);
  }
  stepKind = ranks ? ProgramKind::updateRanks : ProgramKind::update;
  LLMC_RETURN_IF_ERROR(loaded.use(ProgramKind::accumulate));
  LLMC_RETURN_IF_ERROR(loaded.use(stepKind));
  programNames = fmt::format("{} + {}", programKindName(ProgramKind::accumulate), programKindName(stepKind));
  return {};
}

Status Session::prepare() {
  size_t maxLaunches = 0;
  for (size_t i = 0; i < kNumProgramKinds; ++i) {
    const Program *used = loaded.used(static_cast<ProgramKind>(i));
    if (!used)
      continue;
    Result<std::unique_ptr<PreparedProgram>> program = device.prepare(*used, loaded.spaces(), comm);
    if (!program)
      return inContext(fmt::format("program {}", programKindName(used->kind)), program.error());
    prepared[i] = std::move(*program);
    maxLaunches = std::max(maxLaunches, used->launches.size());
  }
  launchMs.resize(maxLaunches);
  return {};
}

Result<std::unique_ptr<Session>> Session::open(const PlanFile &file, DeviceApi &device, const SessionOptions &options) {
  std::unique_ptr<Session> session(new Session(file, device, options.comm));
  const Plan &plan = file.plan();
  session->loss = findOutput(plan, "loss");
  session->gradNorm = findOutput(plan, "grad_norm");
  if (!session->loss)
    return Error{file.path() + ": the plan computes no loss"};
  if (Status status = session->choose(options); !status)
    return inContext(file.path(), status.error());
  LLMC_RETURN_IF_ERROR(session->loaded.load(options.threads));
  if (Status status = session->prepare(); !status)
    return inContext(file.path(), status.error());
  if (session->exchange.worldSize() > 1) {
    Result<uint64_t> hash = session->weightsHash();
    LLMC_RETURN_IF_ERROR(hash);
    LLMC_RETURN_IF_ERROR(session->exchange.requireSame(*hash, "initial weights"));
  }
  return session;
}

std::array<uint32_t, kScalarNames.size()> scalarBits(const HyperParameters &hyper, double lossScale, int64_t number,
                                                     int64_t microNumber) {
  auto bits = [](double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); };
  double steps = static_cast<double>(number);
  return {bits(hyper.lr),
          bits(hyper.beta1),
          bits(hyper.beta2),
          bits(hyper.eps),
          bits(hyper.weightDecay),
          bits(hyper.clip),
          bits(1 - std::pow(hyper.beta1, steps)),
          bits(1 - std::pow(hyper.beta2, steps)),
          bits(lossScale),
          static_cast<uint32_t>(hyper.seed),
          static_cast<uint32_t>(hyper.seed >> 32),
          static_cast<uint32_t>(microNumber),
          bits(1 - hyper.beta1),
          bits(1 - hyper.beta2)};
}

/// Micro-batches are numbered over all ranks in the order in which they are dealt, so that dropout masks differ between
/// ranks, and are the same however many ranks share the micro-batches of a step.
Status Session::load(const Batch &batch, const StepNumbers &numbers, const HyperParameters &hyper, size_t micro) {
  LLMC_RETURN_IF_ERROR(loaded.storeInputs(batch));
  int64_t inStep = static_cast<int64_t>(micro) * exchange.worldSize() + exchange.rank();
  return loaded.storeScalars(
      scalarBits(hyper, numbers.lossScale, numbers.number, (numbers.number - 1) * numbers.microBatches + inStep + 1));
}

Status Session::run(ProgramKind kind) {
  PreparedProgram &program = *prepared[static_cast<size_t>(kind)];
  if (!observer)
    return program.run();
  const Program &launches = *loaded.used(kind);
  std::span<double> times(launchMs.data(), launches.launches.size());
  LLMC_RETURN_IF_ERROR(program.runProfiled(times));
  observer->record(launches, times);
  return {};
}

Result<double> Session::readScalar(const StateEntry *entry) const {
  float value = 0;
  LLMC_RETURN_IF_ERROR(read(*entry, 0, std::as_writable_bytes(std::span(&value, 1))));
  return static_cast<double>(value);
}

Status Session::read(const StateEntry &entry, uint64_t offset, std::span<std::byte> dst) const {
  const std::byte *space = entry.buffer.space == Space::arena ? loaded.spaces().arena : loaded.spaces().state;
  assert((space || dst.empty()) && offset + dst.size() <= entry.buffer.bytes);
  return forEachRun(entry.rows, elementBytes(entry.type), offset, dst.size(), [&](const PieceRun &run) {
    return device.copyOut(dst.subspan(run.value - offset, run.bytes), space + entry.buffer.offset + run.memory);
  });
}

Status Session::readGradient(const StateEntry &parameter, uint64_t offset, std::span<std::byte> dst) const {
  assert(loaded.spaces().gradients && offset + dst.size() <= parameter.gradient.bytes);
  return forEachRun(parameter.rows, sizeof(float), offset, dst.size(), [&](const PieceRun &run) {
    return device.copyOut(dst.subspan(run.value - offset, run.bytes),
                          loaded.spaces().gradients + parameter.gradient.offset + run.memory);
  });
}

/// What all micro-batches of a step share, when the step is well-defined.
Result<Session::StepNumbers> Session::agree(std::span<const Batch> batches, int64_t number, int64_t &tokens) {
  Result<RankExchange::Contribution> total = exchange.sum(contributionOf(batches));
  LLMC_RETURN_IF_ERROR(total);
  Result<double> scale = lossScale(*total, plan().lossIsTokenMean);
  LLMC_RETURN_IF_ERROR(scale);
  tokens = total->tokens;
  return StepNumbers{number, *scale, total->microBatches};
}

/// Runs a program on each micro-batch; the sum of this rank's losses.
Result<double> Session::runAll(ProgramKind kind, std::span<const Batch> batches, const StepNumbers &numbers,
                               const HyperParameters &hyper) {
  double sum = 0;
  for (size_t micro = 0; micro < batches.size(); ++micro) {
    LLMC_RETURN_IF_ERROR(load(batches[micro], numbers, hyper, micro));
    LLMC_RETURN_IF_ERROR(run(kind));
    Result<double> part = readScalar(loss);
    LLMC_RETURN_IF_ERROR(part);
    sum += *part;
  }
  return sum;
}

/// Sums the micro-batches' gradients from zero; the loss of all ranks.
Result<double> Session::accumulate(std::span<const Batch> batches, const StepNumbers &numbers,
                                   const HyperParameters &hyper) {
  LLMC_RETURN_IF_ERROR(device.zero(loaded.spaces().gradients, gradientBytes()));
  Result<double> mine = runAll(ProgramKind::accumulate, batches, numbers, hyper);
  LLMC_RETURN_IF_ERROR(mine);
  return exchange.sum(*mine, "loss");
}

Result<StepResult> Session::step(std::span<const Batch> batches, int64_t number, const HyperParameters &hyper) {
  StepResult result;
  (void)exchange.takeTimes(); // what was before is no part of the step
  Result<StepNumbers> numbers = agree(batches, number, result.tokens);
  LLMC_RETURN_IF_ERROR(numbers);
  assert(accumulates || batches.size() == 1);
  Result<double> value =
      accumulates ? accumulate(batches, *numbers, hyper) : runAll(stepKind, batches, *numbers, hyper);
  LLMC_RETURN_IF_ERROR(value);
  if (accumulates)
    LLMC_RETURN_IF_ERROR(run(stepKind));
  result.loss = *value;
  result.comm = exchange.takeTimes();
  if (observer)
    observer->recordCollectives(result.comm.collectives);
  if (gradNorm && refersTo(*loaded.used(stepKind), gradNorm->buffer)) {
    Result<double> norm = readScalar(gradNorm);
    LLMC_RETURN_IF_ERROR(norm);
    result.gradNorm = *norm;
  }
  return result;
}

Result<double> Session::forward(std::span<const Batch> batches, const HyperParameters &hyper) {
  int64_t tokens = 0;
  Result<StepNumbers> numbers = agree(batches, 1, tokens);
  LLMC_RETURN_IF_ERROR(numbers);
  Result<double> mine = runAll(ProgramKind::forward, batches, *numbers, hyper);
  LLMC_RETURN_IF_ERROR(mine);
  return exchange.sum(*mine, "loss");
}

Status Session::gradients(std::span<const Batch> batches, int64_t number, const HyperParameters &hyper) {
  int64_t tokens = 0;
  Result<StepNumbers> numbers = agree(batches, number, tokens);
  LLMC_RETURN_IF_ERROR(numbers);
  LLMC_RETURN_IF_ERROR(accumulate(batches, *numbers, hyper));
  return sumGradients();
}

/// Over the ranks, by way of the host in pieces: once in a run, for an export.
Status Session::sumGradients() {
  if (exchange.worldSize() == 1)
    return {};
  std::vector<std::byte> piece;
  for (uint64_t offset = 0; offset < gradientBytes(); offset += piece.size()) {
    piece.resize(std::min<uint64_t>(kSummedBytes, gradientBytes() - offset));
    std::byte *place = loaded.spaces().gradients + offset;
    LLMC_RETURN_IF_ERROR(device.copyOut(piece, place));
    LLMC_RETURN_IF_ERROR(exchange.sum(piece, "gradients"));
    LLMC_RETURN_IF_ERROR(device.copyIn(place, piece));
  }
  return {};
}

Result<uint64_t> Session::weightsHash() const {
  uint64_t hash = 0;
  std::vector<std::byte> piece;
  for (const StateEntry &entry : plan().state)
    if (entry.kind == StateKind::parameter || entry.kind == StateKind::constant)
      for (uint64_t offset = 0; offset < entry.buffer.bytes; offset += piece.size()) {
        piece.resize(std::min<uint64_t>(kHashedBytes, entry.buffer.bytes - offset));
        LLMC_RETURN_IF_ERROR(read(entry, offset, piece));
        std::array<uint64_t, 2> both = {hash, planHash(piece)};
        hash = planHash(std::as_bytes(std::span(both)));
      }
  return hash;
}

std::vector<const StateEntry *> Session::outputs() const {
  std::vector<const StateEntry *> found;
  const Program *forward = loaded.used(ProgramKind::forward);
  for (const StateEntry &entry : plan().state)
    if (forward && entry.kind == StateKind::output && refersTo(*forward, entry.buffer))
      found.push_back(&entry);
  return found;
}

} // namespace llmc
