// The step program of a plan on this machine's CPU, one launch at a time, so that every result can be read when it has
// just been written.
#pragma once

#include "backend/PlanEmitter.h"
#include "runtime/Session.h"

namespace llmc {

/// Which step: the first one, with clipping on.
inline constexpr HyperParameters kCheckedStep = {.seed = 1};

class StepRun {
public:
  /// Opens a plan through a file at `path`, which is gone again when this returns. Loads the weights and the batch that
  /// `inputsPath` holds (see FixedInputs). Fails as llmc-run would: on what the file lacks, and where this machine runs
  /// none of the plan's levels.
  static Result<std::unique_ptr<StepRun>> open(const std::string &path, const EmittedPlan &emitted,
                                               const std::string &inputsPath);

  const Program &program() const { return *loaded.used(ProgramKind::step); }
  /// The level at which it runs.
  const std::string &isa() const { return loaded.target().isa; }
  /// Runs one launch; launches are to be run in order.
  Status run(size_t launch);
  /// A buffer as f32, of f32 or bf16.
  std::vector<float> read(const BufferRef &buffer, bool isBf16) const;

private:
  explicit StepRun(PlanFile file);
  Status loadBatch(const std::string &inputsPath);

  PlanFile file;
  std::unique_ptr<DeviceApi> device;
  LoadedPlan loaded; ///< after the file and the device
};

} // namespace llmc
