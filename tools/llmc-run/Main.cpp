// llmc-run: trains a plan. Flags in, a run, exports out.
#include "backend/cpu/CpuDevice.h"
#ifdef LLMC_CUDA_DEVICE
#include "backend/cuda/CudaDevice.h"
#endif
#include "runtime/MeetingPlace.h"
#include "tools/Flags.h"
#include "tools/Threads.h"
#include "tools/llmc-run/RunOutputs.h"
#include "tools/llmc-run/RunRanks.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <unistd.h>

namespace {

constexpr const char *kFooter =
    R"(A run prints what it does, trains, and writes the files asked for. Ctrl-C (SIGINT) or SIGTERM finishes the step, then
writes them too, and ends with 128 + the signal's number; the second ends the run at once.

Example:
  llmc-run gpt.plan --data train.bin --steps 200 --metrics run.jsonl --plot loss.svg --export-onnx trained.onnx)";

/// Words of the command line that later versions take.
constexpr const char *kReserved[] = {"--val",    "--checkpoint", "--save-every", "--keep",
                                     "--resume", "--eval-every", "--eval-steps", "--tensorboard"};

/// Whole numbers from `least` on; the limit keeps products of counts exact.
CLI::Validator atLeast(int64_t least) { return CLI::Range(least, int64_t{1} << 30).description(""); }

/// CLI11 takes a number beyond 64 bits, and one below 0, for another.
std::string checkSeed(std::string &text) {
  uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    return fmt::format("expected a whole number from 0 to {}, found '{}'", UINT64_MAX, text);
  return "";
}

/// A finite number, 0 or more.
std::string checkRate(std::string &text) {
  double value = 0;
  if (!CLI::detail::lexical_cast(text, value) || !std::isfinite(value) || value < 0)
    return fmt::format("expected a number, 0 or more, found '{}'", text);
  return "";
}

void addDataFlags(CLI::App &app, llmc::RunOptions &options, std::string &labels) {
  app.add_option("PLAN", options.plan, "the plan, made by llmc-compile")->required()->type_name("");
  auto *data =
      app.add_option("--data", options.data, "token file: llm.c .bin, raw uint16, or .npy; without it random tokens")
          ->type_name("FILE");
  app.add_option("--inputs", options.inputs,
                 "safetensors file with one fixed batch, a tensor for each input by its name")
      ->type_name("FILE")
      ->excludes(data);
  app.add_option("--tokens-input", options.overrides.tokensInput, "the input that takes the tokens")->type_name("NAME");
  app.add_option("--labels-input", options.overrides.labelsInput, "the input that takes the labels")->type_name("NAME");
  app.add_option("--labels", labels, "shifted: labels are the next tokens; same: the graph shifts them itself")
      ->type_name("WORD")
      ->check(CLI::IsMember({"shifted", "same"}).description(""));
  app.add_flag("--drop-last", options.dropLast, "leave out an epoch's last step when it is not full")->needs(data);
  auto *epochs =
      app.add_option("--epochs", options.epochs, "passes over --data")->type_name("N")->check(atLeast(1))->needs(data);
  app.add_option("--steps", options.steps,
                 "training steps; 0 runs the forward program only. Default: one epoch, or 10 without --data")
      ->type_name("N")
      ->check(atLeast(0))
      ->excludes(epochs);
  app.add_option("--accumulate", options.accumulate, "micro-batches a step, their gradients summed")
      ->type_name("N")
      ->check(CLI::Range(1, 1 << 16).description(""))
      ->capture_default_str();
  app.add_option("--seed", options.seed, "of the data's order, random tokens and dropout")
      ->type_name("N")
      ->check(CLI::Validator(checkSeed, ""))
      ->capture_default_str();
}

void addOptimizerFlags(CLI::App &app, llmc::RunOptions &options, std::string &schedule) {
  llmc::HyperParameters &hyper = options.hyper;
  auto add = [&](const char *name, double &value, const char *text) {
    app.add_option(name, value, text)->type_name("X")->check(CLI::Validator(checkRate, ""))->capture_default_str();
  };
  add("--lr", hyper.lr, "learning rate");
  app.add_option("--warmup", options.warmup, "steps over which the rate rises")
      ->type_name("N")
      ->check(atLeast(0))
      ->capture_default_str();
  app.add_option("--schedule", schedule, "the rate after the warm-up: constant, cosine or linear")
      ->type_name("WORD")
      ->check(CLI::IsMember({"constant", "cosine", "linear"}).description(""))
      ->capture_default_str();
  add("--min-lr", options.minLr, "the rate at the schedule's end");
  app.add_flag("--scale-lr", options.scaleLr, "multiply the rate by the number of ranks");
  add("--weight-decay", hyper.weightDecay, "decoupled decay of the parameters that decay");
  add("--beta1", hyper.beta1, "AdamW's first moment");
  add("--beta2", hyper.beta2, "AdamW's second moment");
  add("--eps", hyper.eps, "AdamW's epsilon");
  add("--clip", hyper.clip, "largest global gradient norm; 0 is off");
}

void addOutputFlags(CLI::App &app, llmc::RunOptions &options) {
  auto add = [&](const char *name, std::string &path, const char *text) {
    app.add_option(name, path, text)->type_name("FILE");
  };
  add("--metrics", options.metrics,
      "JSON lines: a header, then a line a step; with --steps 0 that of step 1, which it does not take");
  add("--profile", options.profile, "Chrome/Perfetto trace of the launches; prints the costliest kernels");
  add("--plot", options.plot, "the loss curve as SVG");
  add("--export-onnx", options.exportOnnx, "the trained model");
  add("--export-weights", options.exportWeights, "the trained weights, safetensors");
  add("--export-grads", options.exportGrads, "the first step's gradients before clipping, safetensors");
  add("--export-outputs", options.exportOutputs, "the first micro-batch's outputs and loss, safetensors");
}

void addRankFlags(CLI::App &app, llmc::RunOptions &options, llmc::RankFlags &ranks) {
  app.add_option("--nproc", ranks.nproc,
                 "ranks on this machine, each with its share of the batch and the CPUs; under torchrun, mpirun or srun "
                 "theirs are used")
      ->type_name("N")
      ->check(CLI::Range(1, 1024).description(""));
  app.add_option("--rendezvous", ranks.rendezvous,
                 "where ranks meet: HOST:PORT or file:PATH; default what the launcher says")
      ->type_name("PLACE")
      ->check(CLI::Validator(
          [](std::string &text) {
            llmc::Result<llmc::MeetingPlace> place = llmc::parseMeetingPlace(text);
            return place ? "" : place.error().message;
          },
          ""));
  app.add_option_function<std::string>(
         "--timeout", [&](const std::string &text) { ranks.timeout = *llmc::parseDuration(text); },
         "how long ranks wait for one that does not come or answer: 500ms, 30s, 2m; then all end")
      ->type_name("TIME")
      ->default_str("30s")
      ->check(CLI::Validator(
          [](std::string &text) {
            return llmc::parseDuration(text) ? "" : fmt::format("expected a time like 30s, found '{}'", text);
          },
          ""));
  app.add_flag("--rank-times", options.rankTimes, "each rank's time, and the slowest, on screen and in --metrics");
  app.add_flag("--verify-ranks", options.verifyRanks,
               "compare the ranks' weights after every step; their hashes go to --metrics");
}

/// What the flags' own checks cannot see; empty when all is well.
std::string conflict(const llmc::RunOptions &options, const std::string &device) {
  if (options.hyper.beta1 >= 1 || options.hyper.beta2 >= 1)
    return "--beta1 and --beta2 must be below 1";
  if (static_cast<float>(options.hyper.eps) <= 0)
    return fmt::format("--eps {:g}: must be above 0, as a 32-bit float too", options.hyper.eps);
  if (options.minLr > options.hyper.lr)
    return fmt::format("--min-lr {:g} is larger than --lr {:g}", options.minLr, options.hyper.lr);
  if (!device.empty() && device != "cpu" && device != "cuda")
    return fmt::format("--device {}: expected cpu or cuda", device);
  return llmc::outputConflict(options);
}

/// Empty: not said, which is the CPU. False where this build lacks the device.
bool setDevice(llmc::RunSurroundings &around, const std::string &device, std::chrono::milliseconds timeout) {
  if (device != "cuda") {
    around.deviceNote = device.empty() ? ", the CPU (--device cuda: a GPU)" : "";
    around.makeDevice = [](int threads, int) -> llmc::Result<std::unique_ptr<llmc::DeviceApi>> {
      return llmc::makeCpuDevice(threads);
    };
    return true;
  }
#ifdef LLMC_CUDA_DEVICE
  around.makeDevice = [timeout](int, int localRank) {
    llmc::CudaDeviceOptions options;
    options.ordinal = localRank;
    options.rankTimeout = timeout;
    return llmc::makeCudaDevice(options);
  };
  return true;
#else
  return false;
#endif
}

} // namespace

int main(int argc, char **argv) {
  llmc::guardOutputs();
  llmc::RunSurroundings around;
  llmc::RunOptions options;
  llmc::RankFlags ranks;
  std::string labels, schedule = "constant", device;
  CLI::App app("Trains a plan: one file made by llmc-compile, tokens in, losses and the trained model out.",
               "llmc-run");
  app.footer(kFooter);
  addDataFlags(app, options, labels);
  addOptimizerFlags(app, options, schedule);
  addOutputFlags(app, options);
  addRankFlags(app, options, ranks);
  app.add_option("--device", device, "cpu or cuda (one NVIDIA GPU a rank)")->type_name("WORD")->default_str("cpu");
  app.add_option("--threads", options.threads, "threads; default OMP_NUM_THREADS, else the CPUs this process may use")
      ->type_name("N")
      ->check(CLI::Range(1, llmc::kMaxThreads).description(""));
  if (std::optional<int> status = llmc::parseFlags(app, argc, argv, kReserved))
    return *status;
  if (std::string message = conflict(options, device); !message.empty())
    return llmc::wrongFlags(app, message);
  if (!labels.empty())
    options.overrides.labelsShifted = labels == "shifted";
  options.schedule = schedule == "cosine"   ? llmc::ScheduleKind::cosine
                     : schedule == "linear" ? llmc::ScheduleKind::linear
                                            : llmc::ScheduleKind::constant;
  if (!setDevice(around, device, ranks.timeout))
    return llmc::failed(app, {"--device cuda: this build has no CUDA backend; use --device cpu"});
  around.isTerminal = isatty(STDOUT_FILENO) == 1;
  around.abandon = [&](const std::string &error) {
    if (!error.empty())
      llmc::failed(app, {error});
    ::_exit(1);
  };
  around.version = LLMC_VERSION;
  llmc::RunEnd end = llmc::runRanks(ranks, options, around);
  for (const std::string &error : end.errors)
    llmc::failed(app, {error});
  return llmc::finish(app, end.exitStatus);
}
