// Nothing is allocated after load().
#include "runtime/LoadedPlan.h"

#include "runtime/StateLoader.h"

#include <algorithm>
#include <fmt/format.h>

namespace llmc {

bool refersTo(const Program &program, const BufferRef &buffer) {
  for (const Launch &launch : program.launches)
    for (const BufferRef &operand : launch.operands)
      if (operand.space == buffer.space && operand.offset < buffer.offset + std::max<uint64_t>(buffer.bytes, 1) &&
          buffer.offset < operand.offset + std::max<uint64_t>(operand.bytes, 1))
        return true;
  return false;
}

LoadedPlan::~LoadedPlan() {
  for (std::byte *space : {memory.arena, memory.gradients, memory.state})
    if (space)
      device.release(space);
}

Status LoadedPlan::choose() {
  Result<size_t> index = device.pickTarget(file.plan());
  LLMC_RETURN_IF_ERROR(index);
  chosen = &file.plan().targets.at(*index);
  return {};
}

const Program *LoadedPlan::find(ProgramKind kind) const {
  for (const Program &program : chosen->programs)
    if (program.kind == kind)
      return &program;
  return nullptr;
}

Status LoadedPlan::use(ProgramKind kind) {
  const Program *program = find(kind);
  if (!program) {
    std::string names;
    for (const Program &other : chosen->programs)
      names += fmt::format("{}{}", names.empty() ? "" : ", ", programKindName(other.kind));
    return Error{fmt::format("the plan has no program '{}' for {} {}; it has: {}", programKindName(kind),
                             chosen->target, chosen->isa, names)};
  }
  programs[static_cast<size_t>(kind)] = program;
  return {};
}

/// What the plan needs and what would need less, for whoever has too little memory.
static std::string describeNeeds(uint64_t state, uint64_t gradients, uint64_t arena) {
  auto toGib = [](uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); };
  return fmt::format("in all it needs {:.3f} GiB: state {:.3f}, gradients {:.3f}, arena {:.3f}; a plan compiled with a "
                     "smaller --batch or --seq, or with --bf16, needs less arena{}",
                     toGib(state + gradients + arena), toGib(state), toGib(gradients), toGib(arena),
                     gradients > 0 ? ", a run with --accumulate 1 and --clip 0 no gradients" : "");
}

Status LoadedPlan::load(int threads) {
  const Plan &plan = file.plan();
  bool usesGradients = false;
  for (const Program *program : programs)
    if (program) {
      arena = std::max(arena, program->arenaBytes);
      usesGradients = usesGradients || refersTo(*program, {Space::gradients, 0, plan.gradientBytes});
    }
  std::string needs = describeNeeds(plan.stateBytes, usesGradients ? plan.gradientBytes : 0, arena);
  auto allocate = [&](uint64_t bytes, const char *what, std::byte *&space) -> Status {
    Result<std::byte *> allocated = device.allocate(bytes, what);
    if (!allocated)
      return Error{fmt::format("{}: {}; {}", file.path(), allocated.error().message, needs)};
    space = *allocated;
    return {};
  };
  LLMC_RETURN_IF_ERROR(allocate(plan.stateBytes, "state", memory.state));
  LLMC_RETURN_IF_ERROR(allocate(usesGradients ? plan.gradientBytes : 0, "gradients", memory.gradients));
  LLMC_RETURN_IF_ERROR(allocate(arena, "arena", memory.arena));
  LLMC_RETURN_IF_ERROR(loadWeights(file, device, memory.state, threads));
  if (Status status = device.loadCode(file.plan(), *chosen, file.code(*chosen)); !status)
    return inContext(file.path(), status.error());
  return {};
}

Status LoadedPlan::storeInputs(const Batch &batch) {
  auto next = batch.inputs.begin();
  for (const StateEntry &entry : file.plan().state)
    if (entry.kind == StateKind::input) {
      assert(next != batch.inputs.end());
      LLMC_RETURN_IF_ERROR(device.copyIn(memory.state + entry.buffer.offset, *next++));
    }
  assert(next == batch.inputs.end());
  return {};
}

Status LoadedPlan::storeScalars(const std::array<uint32_t, kScalarNames.size()> &bits) {
  for (const StateEntry &entry : file.plan().state)
    for (size_t i = 0; entry.kind == StateKind::scalar && i < bits.size(); ++i)
      if (entry.name == kScalarNames[i])
        LLMC_RETURN_IF_ERROR(device.copyIn(memory.state + entry.buffer.offset, std::as_bytes(std::span(&bits[i], 1))));
  return {};
}

} // namespace llmc
