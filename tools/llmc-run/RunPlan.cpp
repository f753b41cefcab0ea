// One run as an object: what is opened in order, the loop over steps, the files at the end.
#include "tools/llmc-run/RunPlan.h"

#include "runtime/Exports.h"
#include "runtime/Metrics.h"
#include "runtime/Plot.h"
#include "runtime/Prefetcher.h"
#include "runtime/Profiler.h"
#include "runtime/Say.h"
#include "runtime/StepProgress.h"
#include "tools/Threads.h"
#include "tools/llmc-run/RankTeam.h"
#include "tools/llmc-run/RunOutputs.h"
#include "tools/llmc-run/RunSource.h"

#include <cmath>
#include <fmt/format.h>

namespace llmc {

namespace {

using Clock = std::chrono::steady_clock;

double millisecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double toMib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

class Run {
public:
  Run(const RunOptions &options, const RunSurroundings &around) : options(options), around(around), team(around.team) {
    if (team)
      ranks = {team->rank(), team->worldSize()};
  }

  Status open() {
    if (isFirst()) // the rank that writes
      LLMC_RETURN_IF_ERROR(checkOutputs(options));
    Result<PlanFile> opened = PlanFile::open(options.plan);
    LLMC_RETURN_IF_ERROR(opened);
    file.emplace(std::move(*opened));
    if (isFirst())
      LLMC_RETURN_IF_ERROR(checkExportedData(options, file->plan(), file->model().size()));
    Result<InputMap> mapped = mapInputs(file->plan(), options.overrides);
    if (!mapped)
      return inContext(options.plan, mapped.error());
    inputs = std::move(*mapped);
    Result<RunSource> openedSource = openSource(options, inputs, ranks);
    LLMC_RETURN_IF_ERROR(openedSource);
    source = std::move(*openedSource);
    LLMC_RETURN_IF_ERROR(compareRanks());
    threads = team ? team->threads() : options.threads > 0 ? options.threads : defaultThreads();
    Result<std::unique_ptr<DeviceApi>> made = around.makeDevice(threads, team ? team->localRank() : 0);
    LLMC_RETURN_IF_ERROR(made);
    device = std::move(*made);
    Result<std::unique_ptr<Session>> started = Session::open(*file, *device, sessionOptions());
    LLMC_RETURN_IF_ERROR(started);
    session = std::move(*started);
    if (!options.profile.empty() && isFirst())
      session->observe(&profiler);
    hyper = options.hyper;
    hyper.lr *= options.scaleLr ? ranks.ranks : 1;
    hyper.seed = options.seed;
    schedule = {options.schedule, hyper.lr, options.minLr, options.warmup, source.numSteps};
    describe();
    return {};
  }

  Status train() {
    Prefetcher batches(*source.batches, inputs, 0, std::max<int64_t>(source.numSteps, 1), options.accumulate);
    std::optional<StepProgress> progress;
    LLMC_RETURN_IF_ERROR(meet({}));
    for (int64_t number = 1; number <= std::max<int64_t>(source.numSteps, 1) && stoppedBy == 0; ++number) {
      Clock::time_point begin = Clock::now();
      Result<std::span<const Batch>> batch = batches.next();
      LLMC_RETURN_IF_ERROR(batch);
      double waitMs = millisecondsSince(begin);
      if (number == 1) {
        LLMC_RETURN_IF_ERROR(beforeFirstStep(*batch));
        if (source.numSteps == 0)
          return {};
        progress.emplace(around.out, around.isTerminal, source.numSteps);
        // The exports are no part of the first step, its wait for data is.
        begin = Clock::now() -
                std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(waitMs));
      }
      if (Status status = step(number, *batch, begin, waitMs, *progress); !status)
        return inContext(fmt::format("step {}", number), status.error());
    }
    progress.reset();
    if (stoppedBy != 0)
      say(around.out, "stopped by signal {} after {} of {} steps\n", stoppedBy, losses.size(), source.numSteps);
    if (options.rankTimes && team)
      say(around.out, "{}", rankTimes.table());
    return {};
  }

  Status finish() {
    LLMC_RETURN_IF_ERROR(writeFile(options.exportWeights, "trained weights",
                                   [&](const std::string &path) { return exportWeights(*session, path); }));
    LLMC_RETURN_IF_ERROR(writeFile(options.exportOnnx, "trained model", [&](const std::string &path) {
      return exportModel(*session, file->model(), path);
    }));
    LLMC_RETURN_IF_ERROR(writeFile(options.plot, "loss curve", [&](const std::string &path) {
      return writeLossPlot(path, {fmt::format("{}: training loss", file->plan().modelName), losses});
    }));
    LLMC_RETURN_IF_ERROR(
        writeFile(options.profile, "trace", [&](const std::string &path) { return profiler.writeTrace(path); }));
    if (!options.profile.empty())
      say(around.out, "{}", profiler.table());
    return team ? team->finish() : Status();
  }

  int signal() const { return stoppedBy; }

private:
  bool isFirst() const { return ranks.rank == 0; }

  /// After every step, and before the first: what the ranks have to tell each other.
  Status meet(StepNote mine) {
    mine.signal = around.signal ? around.signal->load() : 0;
    notes = {mine};
    if (team) {
      Result<std::vector<StepNote>> all = team->exchange(mine);
      LLMC_RETURN_IF_ERROR(all);
      notes = std::move(*all);
    }
    for (const StepNote &note : notes)
      if (stoppedBy == 0)
        stoppedBy = static_cast<int>(note.signal);
    return {};
  }

  /// All ranks run the same program on shares of the same data.
  Status compareRanks() const {
    if (!team)
      return {};
    if (!options.exportOutputs.empty())
      return Error{"--export-outputs: the outputs of one rank only; run without --nproc or other launchers"};
    std::vector<RunFact> facts = sharedFlags(options);
    // The same file may have another path on another machine.
    std::string data = source.text.substr(std::max(options.data.size(), options.inputs.size()));
    facts.insert(facts.begin(),
                 {{"the plan", formatPlanHash(file->hash())}, {"the inputs", inputs.describe()}, {"the data", data}});
    return team->requireSame(facts);
  }

  SessionOptions sessionOptions() const {
    SessionOptions wanted;
    wanted.trains = source.numSteps > 0;
    wanted.clips = options.hyper.clip > 0;
    wanted.microBatches = options.accumulate;
    wanted.needsForward = source.numSteps == 0 || !options.exportOutputs.empty();
    wanted.needsGradients = !options.exportGrads.empty();
    wanted.threads = threads;
    wanted.comm = team ? &team->comm() : nullptr;
    return wanted;
  }

  /// Says what is about to happen.
  void describe() const {
    const Plan &plan = file->plan();
    say(around.out, "{}: {}, {}, {}, plan {}\n", options.plan, plan.modelName, plan.precision, plan.optimizer,
        formatPlanHash(file->hash()));
    std::string gradients =
        session->gradientBytes() > 0 ? fmt::format(" + gradients {:.1f} MiB", toMib(session->gradientBytes())) : "";
    say(around.out, "{}{}, {} threads: program {} ({}), memory {:.1f} MiB = state {:.1f} MiB{} + arena {:.1f} MiB\n",
        device->describe(), around.deviceNote, threads, session->programs(), session->target().isa,
        toMib(session->stateBytes() + session->gradientBytes() + session->arenaBytes()), toMib(session->stateBytes()),
        gradients, toMib(session->arenaBytes()));
    if (plan.precision == "bf16" && session->target().target == "cpu" && session->target().isa != "x86-64-v4-bf16")
      say(around.out, "bf16: {} has no bf16 instructions, contractions multiply in f32\n", session->target().isa);
    say(around.out, "{}\n{}\n", inputs.describe(), source.text);
    if (team)
      say(around.out, "{}\n", team->describe());
    if (options.scaleLr)
      say(around.out, "--scale-lr: rate {:g} x {} {} = {:g}\n", options.hyper.lr, ranks.ranks,
          ranks.ranks == 1 ? "rank" : "ranks", hyper.lr);
    std::fflush(around.out);
  }

  Status beforeFirstStep(std::span<const Batch> batches) {
    Clock::time_point begin = Clock::now();
    if (!options.metrics.empty() && isFirst()) {
      Result<MetricsFile> started = MetricsFile::create(options.metrics, metricsHeader());
      LLMC_RETURN_IF_ERROR(started);
      metrics.emplace(std::move(*started));
    }
    hyper.lr = schedule.at(1);
    if (source.numSteps == 0)
      LLMC_RETURN_IF_ERROR(forwardOnly(batches, begin));
    if (!options.exportOutputs.empty())
      LLMC_RETURN_IF_ERROR(exportFirstOutputs(batches));
    if (!options.exportGrads.empty())
      LLMC_RETURN_IF_ERROR(session->gradients(batches, 1, hyper));
    return writeFile(options.exportGrads, "gradients",
                     [&](const std::string &path) { return exportGradients(*session, path); });
  }

  /// The run of --steps 0. Its line in the metrics is that of the step it does not take: the loss before the update.
  Status forwardOnly(std::span<const Batch> batches, Clock::time_point begin) {
    Result<double> loss = session->forward(batches, hyper);
    LLMC_RETURN_IF_ERROR(loss);
    say(around.out, "loss {:.6f} (forward only{})\n", *loss,
        batches.size() > 1 ? fmt::format(", over {} micro-batches", batches.size()) : "");
    StepNote mine;
    for (const Batch &batch : batches)
      mine.tokens += batch.numTokens;
    LLMC_RETURN_IF_ERROR(meet(mine));
    int64_t tokens = 0;
    for (const StepNote &note : notes)
      tokens += note.tokens;
    return record(1, {*loss, std::nullopt, tokens, {}}, millisecondsSince(begin), 0);
  }

  /// The first micro-batch by itself, so that the loss among its outputs is the mean over its own labels.
  Status exportFirstOutputs(std::span<const Batch> batches) {
    if (source.numSteps > 0 || batches.size() > 1) {
      Result<double> loss = session->forward(batches.first(1), hyper);
      LLMC_RETURN_IF_ERROR(loss);
      say(around.out, "loss {:.6f} (forward only{})\n", *loss, batches.size() > 1 ? ", the first micro-batch" : "");
    }
    std::string what =
        batches.size() > 1 ? fmt::format("outputs of the first of {} micro-batches", batches.size()) : "outputs";
    return writeFile(options.exportOutputs, what.c_str(),
                     [&](const std::string &path) { return exportOutputs(*session, path); });
  }

  Status step(int64_t number, std::span<const Batch> batches, Clock::time_point begin, double waitMs,
              StepProgress &progress) {
    hyper.lr = schedule.at(number);
    Result<StepResult> result = session->step(batches, number, hyper);
    LLMC_RETURN_IF_ERROR(result);
    double stepMs = millisecondsSince(begin);
    losses.push_back(result->loss);
    if (!std::isfinite(result->loss) && !saidNotFinite) {
      progress.note(
          fmt::format("step {}: the loss is {}: from here on the weights are of no use", number, result->loss));
      saidNotFinite = true;
    }
    StepNote mine;
    mine.busyMs = stepMs - waitMs - result->comm.exposedMs;
    if (options.verifyRanks && team) {
      Result<uint64_t> hash = session->weightsHash();
      LLMC_RETURN_IF_ERROR(hash);
      mine.weightsHash = *hash;
    }
    LLMC_RETURN_IF_ERROR(meet(mine));
    rankTimes.add(notes);
    progress.update(number, result->loss, static_cast<double>(result->tokens) / stepMs * 1e3, stepMs);
    LLMC_RETURN_IF_ERROR(record(number, *result, stepMs, waitMs));
    return options.verifyRanks ? requireSameWeights(notes) : Status();
  }

  Status record(int64_t number, const StepResult &result, double stepMs, double waitMs) {
    if (!metrics)
      return {};
    StepMetrics line;
    line.step = number;
    line.loss = result.loss;
    line.lr = hyper.lr;
    line.gradNorm = result.gradNorm;
    line.tokens = result.tokens;
    line.tokensPerSecond = static_cast<double>(result.tokens) / stepMs * 1e3;
    line.stepMs = stepMs;
    line.dataWaitMs = waitMs;
    line.commMs = result.comm.busyMs;
    line.exposedCommMs = result.comm.exposedMs;
    for (const StepNote &note : notes) {
      if (options.rankTimes && team)
        line.rankMs.push_back(note.busyMs);
      if (options.verifyRanks && team)
        line.weightsHashes.push_back(note.weightsHash);
    }
    line.arenaBytes = session->arenaBytes();
    line.peakBytes = device->peakBytes();
    return metrics->write(line);
  }

  MetricsHeader metricsHeader() const {
    const Plan &plan = file->plan();
    MetricsHeader header;
    header.version = around.version;
    header.planHash = file->hash();
    header.model = plan.modelName;
    header.precision = plan.precision;
    header.optimizer = plan.optimizer;
    header.device = device->describe();
    header.isa = session->target().isa;
    header.programs = session->programs();
    header.seed = options.seed;
    header.ranks = ranks.ranks;
    header.comm = team ? team->comm().describe() : "";
    header.threads = threads;
    header.batch = inputs.rows;
    header.sequence = inputs.length;
    header.accumulate = options.accumulate;
    header.steps = source.numSteps;
    header.schedule = scheduleName(options.schedule);
    header.warmup = options.warmup;
    header.minLr = options.minLr;
    header.hyper = options.hyper;
    header.hyper.lr = schedule.lr;
    header.startMs = millisecondsSince(around.processStart);
    header.stateBytes = session->stateBytes();
    header.gradientBytes = session->gradientBytes();
    header.arenaBytes = session->arenaBytes();
    return header;
  }

  /// Writes a file where the flags name one, and says so.
  template <typename Write> Status writeFile(const std::string &path, const char *what, Write write) {
    if (path.empty() || !isFirst())
      return {};
    LLMC_RETURN_IF_ERROR(write(path));
    say(around.out, "{}: {}\n", path, what);
    std::fflush(around.out);
    return {};
  }

  const RunOptions &options;
  const RunSurroundings &around;
  RankTeam *team; ///< null: one rank
  RankShare ranks;
  int stoppedBy = 0;           ///< the signal that any rank was sent
  std::vector<StepNote> notes; ///< of all ranks, after the last step
  std::optional<PlanFile> file;
  InputMap inputs;
  RunSource source;
  int threads = 1;
  std::unique_ptr<DeviceApi> device; ///< before the session, which uses it to the end
  std::unique_ptr<Session> session;
  Profiler profiler;
  RankTimeTable rankTimes;
  HyperParameters hyper;
  Schedule schedule;
  std::optional<MetricsFile> metrics;
  std::vector<double> losses;
  bool saidNotFinite = false;
};

} // namespace

Result<int> runPlan(const RunOptions &options, const RunSurroundings &around) {
  Run run(options, around);
  Status status = run.open();
  if (status)
    status = run.train();
  if (status)
    status = run.finish();
  if (status)
    return run.signal();
  if (around.team) // while the memory is there that the network may still use
    around.team->fail(status.error());
  return status.error();
}

} // namespace llmc
