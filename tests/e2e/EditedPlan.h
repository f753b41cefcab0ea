// A small plan for GPUs, compiled, and edited by tests: written with the edits, then trained on the simulated device.
#pragma once

#include "runtime/Plan.h"
#include "tests/backend/cuda/SimDevice.h"

#include <functional>
#include <stdexcept>

namespace llmc::test {

/// A plan that a test may edit, with the bytes that belong to it.
struct Editable {
  Plan plan;
  std::string code;
  std::vector<std::byte> weights, model;

  TargetPrograms &target() { return plan.targets.front(); }
  /// The program that trains without clipping.
  Program &step() {
    for (Program &program : target().programs)
      if (program.kind == ProgramKind::stepFused)
        return program;
    throw std::runtime_error("no step-fused program");
  }
  /// The first launch of a kind.
  Launch &first(KernelKind kind) {
    for (Launch &launch : step().launches)
      if (launch.kind == kind)
        return launch;
    throw std::runtime_error("no such launch");
  }
  CodeEntry &entryOf(const Launch &launch) { return target().entries.at(static_cast<size_t>(launch.entry)); }
};

/// How training ended: the first error, or the hash of the weights and each step's loss and norm.
struct Outcome {
  std::string error;
  uint64_t weights = 0;
  std::vector<double> seen;
  bool operator==(const Outcome &) const = default;
};

/// One layer, two rows of sixteen tokens; compiled once.
const Editable &compiled();

/// Called with the device before training.
using Watch = std::function<void(cuda::test::SimDevice &)>;

/// Writes the plan and trains it for two steps without clipping.
Outcome train(const Editable &edited, const Watch &watch = nullptr,
              const CudasimConfig &config = cuda::test::kPlainConfig);

} // namespace llmc::test
