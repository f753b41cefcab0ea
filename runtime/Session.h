// An open plan on a device: memory allocated once, weights loaded, the programs that the flags need made ready. Then
// steps: inputs and hyperparameters go into the state, programs run, loss and gradient norm come out. With several
// ranks each has a session of the same plan, and all call step(), forward() and gradients() in the same order.
#pragma once

#include "runtime/Batch.h"
#include "runtime/LoadedPlan.h"
#include "runtime/RankExchange.h"

#include <array>

namespace llmc {

/// What a run will ask for; decides which programs are made ready and how much memory is needed.
struct SessionOptions {
  bool trains = true;          ///< step() will be called
  bool clips = true;           ///< with a clip that is not 0
  int64_t microBatches = 1;    ///< a step's
  bool needsForward = false;   ///< forward() will be called
  bool needsGradients = false; ///< gradients() will be called
  int threads = 1;             ///< for reading the weights
  CommApi *comm = nullptr;     ///< to the other ranks; null is one rank. Must outlive the session
};

/// AdamW's hyperparameters at one step (SGD uses lr and weightDecay).
struct HyperParameters {
  double lr = 3e-4;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weightDecay = 0.1;
  double clip = 1.0; ///< largest global gradient norm; 0 is off
  uint64_t seed = 0; ///< of dropout
};

/// What a step did.
struct StepResult {
  double loss = 0;                ///< mean over the step's labels on all ranks, before its update
  std::optional<double> gradNorm; ///< global, before clipping; nothing where the program does not compute it
  int64_t tokens = 0;             ///< of all ranks
  CommTimes comm;                 ///< of this rank
};

/// Watches every program that runs, launch by launch, and the network beside it.
class LaunchObserver {
public:
  virtual ~LaunchObserver() = default;
  virtual void record(const Program &program, std::span<const double> launchMs) = 0;
  /// After a step: what travelled between the ranks in it.
  virtual void recordCollectives(std::span<const CommSpan> collectives) = 0;
};

class Session {
public:
  /// Opens the plan on the device; both must outlive the session. Errors name the plan's path. Fails where ranks start
  /// with different weights.
  static Result<std::unique_ptr<Session>> open(const PlanFile &file, DeviceApi &device, const SessionOptions &options);
  Session(const Session &) = delete;
  Session &operator=(const Session &) = delete;

  /// One training step on all micro-batches of this rank; `number` counts from 1.
  Result<StepResult> step(std::span<const Batch> batches, int64_t number, const HyperParameters &hyper);
  /// Runs the forward program on each batch: outputs() then hold what it computed of the last. The loss, as the mean
  /// over all their labels on all ranks.
  Result<double> forward(std::span<const Batch> batches, const HyperParameters &hyper);
  /// The gradients of step `number` before clipping, left in the gradients' space for readGradient(); weights stay as
  /// they are.
  Status gradients(std::span<const Batch> batches, int64_t number, const HyperParameters &hyper);

  /// A hash of all weights, to compare with another rank's or run's.
  Result<uint64_t> weightsHash() const;
  /// Copies bytes [offset, offset + dst.size()) of a value of the state, or of one of outputs(), to the host; those of
  /// a piece in its own dense order.
  Status read(const StateEntry &entry, uint64_t offset, std::span<std::byte> dst) const;
  /// The same of a parameter's gradient, which is f32.
  Status readGradient(const StateEntry &parameter, uint64_t offset, std::span<std::byte> dst) const;
  /// Values that the forward program writes: outputs of the graph, the loss among them. To be read before another
  /// program runs.
  std::vector<const StateEntry *> outputs() const;

  const Plan &plan() const { return file.plan(); }
  const TargetPrograms &target() const { return loaded.target(); }
  /// "step-fused", "accumulate + update", ...: what step() runs, or "forward".
  const std::string &programs() const { return programNames; }
  uint64_t stateBytes() const { return plan().stateBytes; }
  uint64_t gradientBytes() const { return loaded.spaces().gradients ? plan().gradientBytes : 0; }
  /// The largest arena of the programs made ready.
  uint64_t arenaBytes() const { return loaded.arenaBytes(); }

  /// From now on every program runs launch by launch under the observer, which must outlive the session; null: no more.
  void observe(LaunchObserver *newObserver) { observer = newObserver; }

private:
  /// What all micro-batches of a step have in common.
  struct StepNumbers {
    int64_t number = 1; ///< the step's, from 1
    double lossScale = 1;
    int64_t microBatches = 1; ///< of all ranks
  };
  Session(const PlanFile &file, DeviceApi &device, CommApi *comm)
      : file(file), device(device), comm(comm), exchange(comm), loaded(file, device) {}
  Status choose(const SessionOptions &options);
  Status prepare();
  Status load(const Batch &batch, const StepNumbers &numbers, const HyperParameters &hyper, size_t micro);
  Status run(ProgramKind kind);
  Result<StepNumbers> agree(std::span<const Batch> batches, int64_t number, int64_t &tokens);
  Result<double> accumulate(std::span<const Batch> batches, const StepNumbers &numbers, const HyperParameters &hyper);
  Result<double> runAll(ProgramKind kind, std::span<const Batch> batches, const StepNumbers &numbers,
                        const HyperParameters &hyper);
  Status sumGradients();
  Result<double> readScalar(const StateEntry *entry) const;

  const PlanFile &file;
  DeviceApi &device;
  CommApi *comm;
  RankExchange exchange;
  LoadedPlan loaded; ///< before what is prepared on it
  bool accumulates = false;
  ProgramKind stepKind = ProgramKind::step; ///< when not accumulating; else what runs after the micro-batches
  std::string programNames;
  std::array<std::unique_ptr<PreparedProgram>, kNumProgramKinds> prepared;
  const StateEntry *loss = nullptr, *gradNorm = nullptr;
  std::vector<double> launchMs;
  LaunchObserver *observer = nullptr;
};

/// 1 / the labels of a whole step (1 / its micro-batches for a graph without labels, or whose loss is no mean over
/// them): what makes sums a mean. Fails when every label is ignored.
Result<double> lossScale(const RankExchange::Contribution &total, bool lossIsTokenMean);

/// The value of each of kScalarNames at step `number`, as the bits of an f32.
std::array<uint32_t, kScalarNames.size()> scalarBits(const HyperParameters &hyper, double lossScale, int64_t number,
                                                     int64_t microNumber);

} // namespace llmc
