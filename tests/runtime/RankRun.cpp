// llmc-run without a compiler or kernels: the ranks, launchers, signals and files are the real ones, the plan is the
// tiny one and the device the fake one. LLMC_TEST_FAULT=RANK:WHERE:SIGNAL lets a rank send itself a signal there:
//   step    in the third step, where backward runs      reduce  in the third step, while a large sum is on its way
// and RANK:error:0 lets the device of that rank fail in its third step. LLMC_TEST_STEP_MS slows steps down, and
// LLMC_TEST_EXPORT_MS the reading of weights for an export.
#include "tests/runtime/FakeDevice.h"
#include "tests/runtime/TinyPlan.h"
#include "tools/Flags.h"
#include "tools/llmc-run/RunRanks.h"

#include <csignal>
#include <cstdlib>
#include <thread>
#include <unistd.h>

namespace llmc::test {
namespace {

struct Fault {
  int rank = -1;
  std::string where;
  int signal = 0;
};

Fault readFault() {
  Fault fault;
  const char *text = std::getenv("LLMC_TEST_FAULT");
  char where[16] = "";
  if (text && std::sscanf(text, "%d:%15[a-z]:%d", &fault.rank, where, &fault.signal) == 3)
    fault.where = where;
  return fault;
}

/// A sum that takes its time, so that something can happen in its middle.
class LargeSum {
public:
  static constexpr size_t kBytes = 128 << 20;
  static constexpr std::chrono::milliseconds kMiddle{20};

  /// `signal`: what this process sends itself in the middle; 0: nothing.
  Status run(CommApi &comm, int signal) {
    std::vector<std::byte> buffer(kBytes);
    Result<uint64_t> ticket = comm.startAllReduce(buffer, ElementType::f32, "large");
    LLMC_RETURN_IF_ERROR(ticket);
    if (signal != 0) {
      std::this_thread::sleep_for(kMiddle);
      ::raise(signal);
    }
    // The network may touch the buffer until the run has ended its communicator.
    Status status = comm.wait(*ticket);
    if (!status)
      kept = std::move(buffer);
    return status;
  }

private:
  std::vector<std::byte> kept;
};

/// Runs `before`, the program, and the sum of the loss that a plan's own program for ranks has.
class FaultyProgram : public PreparedProgram {
public:
  FaultyProgram(std::unique_ptr<PreparedProgram> inner, std::function<Status(CommApi *)> before, CommApi *comm,
                std::span<std::byte> loss)
      : inner(std::move(inner)), before(std::move(before)), comm(comm), loss(loss) {}
  Status run() override {
    LLMC_RETURN_IF_ERROR(before(comm));
    LLMC_RETURN_IF_ERROR(inner->run());
    if (!comm || loss.empty())
      return {};
    Result<uint64_t> ticket = comm->startAllReduce(loss, ElementType::f32, "loss");
    return ticket ? comm->wait(*ticket) : ticket.status();
  }
  Status runProfiled(std::span<double> launchMs) override { return run(); }

private:
  std::unique_ptr<PreparedProgram> inner;
  std::function<Status(CommApi *)> before;
  CommApi *comm;
  std::span<std::byte> loss;
};

class FaultyDevice : public FakeDevice {
public:
  explicit FaultyDevice(Log &log) : FakeDevice(log), log(log) {
    if (const char *text = std::getenv("LLMC_TEST_STEP_MS"))
      stepTime = std::chrono::milliseconds(std::atoi(text));
    if (const char *text = std::getenv("LLMC_TEST_EXPORT_MS"))
      exportTime = std::chrono::milliseconds(std::atoi(text));
  }

  Result<std::unique_ptr<PreparedProgram>> prepare(const Program &program, const DeviceSpaces &spaces,
                                                   CommApi *comm) override {
    isVictim = (comm ? comm->rank() : 0) == fault.rank;
    auto made = FakeDevice::prepare(program, spaces, comm);
    LLMC_RETURN_IF_ERROR(made);
    std::span<std::byte> loss;
    for (const Launch &launch : program.launches)
      if (launch.name == "loss" && program.kind == ProgramKind::stepRanks)
        loss = {spaces.state + launch.operands[0].offset, launch.operands[0].bytes};
    return std::unique_ptr<PreparedProgram>(
        new FaultyProgram(std::move(*made), [this](CommApi *network) { return beforeRun(network); }, comm, loss));
  }

  Status copyOut(std::span<std::byte> hostDst, const std::byte *deviceSrc) override {
    if (hostDst.size() > sizeof(float) && !log.runs.empty()) // weights of an export
      std::this_thread::sleep_for(exportTime);
    return FakeDevice::copyOut(hostDst, deviceSrc);
  }

private:
  Status beforeRun(CommApi *comm) {
    std::this_thread::sleep_for(stepTime);
    if (log.runs.size() != 2)
      return {};
    if (fault.where == "reduce")
      return largeSum.run(*comm, isVictim ? fault.signal : 0);
    if (!isVictim)
      return {};
    if (fault.where == "step")
      ::raise(fault.signal);
    return fault.where == "error" ? Status(Error{"kernel failed"}) : Status();
  }

  Log &log;
  Fault fault = readFault();
  LargeSum largeSum;
  std::chrono::milliseconds stepTime{0}, exportTime{0};
  bool isVictim = false;
};

int runTool(int argc, char **argv) {
  CLI::App app("llmc-run on the fake device; --write-plan PLAN [MODEL] writes the tiny plan", "rank-run");
  RunOptions options;
  RankFlags flags;
  RunSurroundings around;
  std::string timeout = "30s", version = "test";
  app.add_option("PLAN", options.plan)->required();
  app.add_option("--nproc", flags.nproc);
  app.add_option("--rendezvous", flags.rendezvous);
  app.add_option("--timeout", timeout);
  app.add_option("--version-is", version);
  app.add_option("--data", options.data);
  app.add_option("--steps", options.steps);
  app.add_option("--accumulate", options.accumulate);
  app.add_option("--lr", options.hyper.lr);
  app.add_option("--metrics", options.metrics);
  app.add_option("--export-weights", options.exportWeights);
  app.add_option("--export-outputs", options.exportOutputs);
  app.add_flag("--scale-lr", options.scaleLr);
  app.add_flag("--rank-times", options.rankTimes);
  app.add_flag("--verify-ranks", options.verifyRanks);
  if (std::optional<int> status = parseFlags(app, argc, argv))
    return *status;
  flags.timeout = *parseDuration(timeout);
  FakeDevice::Log log;
  around.makeDevice = [&](int, int) -> Result<std::unique_ptr<DeviceApi>> {
    return std::unique_ptr<DeviceApi>(std::make_unique<FaultyDevice>(log));
  };
  around.abandon = [&](const std::string &error) {
    if (!error.empty())
      failed(app, {error});
    ::_exit(1);
  };
  around.version = version;
  RunEnd end = runRanks(flags, options, around);
  for (const std::string &error : end.errors)
    failed(app, {error});
  return end.exitStatus;
}

} // namespace
} // namespace llmc::test

int main(int argc, char **argv) {
  if ((argc == 3 || argc == 4) && std::string_view(argv[1]) == "--write-plan") {
    llmc::test::TinyPlan tiny;
    if (argc == 4)
      tiny.plan.modelName = argv[3];
    return llmc::writePlan(argv[2], tiny.plan, tiny.payload()) ? 0 : 1;
  }
  return llmc::test::runTool(argc, argv);
}
