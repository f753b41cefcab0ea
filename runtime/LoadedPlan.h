// A plan on a device: its target chosen, memory for the programs that will run, weights and code loaded. What a session
// runs whole, and what a check of numerics runs one launch at a time.
#pragma once

#include "runtime/Batch.h"
#include "runtime/Device.h"
#include "runtime/PlanFile.h"

#include <array>

namespace llmc {

class LoadedPlan {
public:
  /// Both must outlive it. Everything prepared on its spaces must be gone before it.
  LoadedPlan(const PlanFile &file, DeviceApi &device) : file(file), device(device) {}
  ~LoadedPlan();
  LoadedPlan(const LoadedPlan &) = delete;
  LoadedPlan &operator=(const LoadedPlan &) = delete;

  /// Picks the target for this device. Before everything else.
  Status choose();
  /// A program of the target, or null.
  const Program *find(ProgramKind kind) const;
  /// Says that a program will run. Fails where the target has none of that kind.
  Status use(ProgramKind kind);
  /// Allocates what the programs in use need, and loads weights (with `threads` threads) and code.
  Status load(int threads);

  /// A program in use, or null.
  const Program *used(ProgramKind kind) const { return programs[static_cast<size_t>(kind)]; }
  const TargetPrograms &target() const { return *chosen; }
  const DeviceSpaces &spaces() const { return memory; }
  /// The largest arena of the programs in use.
  uint64_t arenaBytes() const { return arena; }

  /// Writes a batch's inputs, in the order of the plan's.
  Status storeInputs(const Batch &batch);
  /// Writes the scalars that the plan reads: a value for each of kScalarNames, as the bits of an f32 or u32.
  Status storeScalars(const std::array<uint32_t, kScalarNames.size()> &bits);

private:
  const PlanFile &file;
  DeviceApi &device;
  const TargetPrograms *chosen = nullptr;
  std::array<const Program *, kNumProgramKinds> programs = {};
  DeviceSpaces memory;
  uint64_t arena = 0;
};

/// True when a launch of the program has this buffer among its operands.
bool refersTo(const Program &program, const BufferRef &buffer);

} // namespace llmc
