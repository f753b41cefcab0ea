// State and programs once, then for each ISA level the same programs with that level's code.
#include "backend/PlanEmitter.h"
#include "backend/ProgramEmitter.h"
#include "backend/StateEmitter.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llmc {

/// How many node names a launch shows.
static constexpr size_t kMaxNames = 3;
static constexpr uint64_t kCodeAlignment = 4096;

void collectNames(Location location, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    names.insert(name.getName().getValue());
  } else if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations())
      collectNames(part, names);
  } else if (auto call = dyn_cast<CallSiteLoc>(location)) {
    collectNames(call.getCallee(), names);
  }
}

std::string nodeNames(Location location) {
  llvm::SetVector<StringRef> names;
  collectNames(location, names);
  if (names.size() <= kMaxNames)
    return llvm::join(names, "+");
  return (names.front() + "+" + names[1] + "+… " + std::to_string(names.size() - kMaxNames) + " …+" + names.back())
      .str();
}

void appendCode(EmittedPlan &emitted, TargetPrograms &target, ArrayRef<std::byte> bytes) {
  emitted.code.resize((emitted.code.size() + kCodeAlignment - 1) / kCodeAlignment * kCodeAlignment);
  target.codeOffset = emitted.code.size();
  target.codeBytes = bytes.size();
  emitted.code.insert(emitted.code.end(), bytes.begin(), bytes.end());
  emitted.payload.code = emitted.code;
}

/// Adds a level: its code after what is there, and the programs with their entries in it.
static void addTarget(EmittedPlan &emitted, ArrayRef<Program> programs, const CpuIsa &isa, const CodeBlob &blob) {
  TargetPrograms target;
  target.target = "cpu";
  target.isa = isa.name;
  target.programs.assign(programs.begin(), programs.end());
  appendCode(emitted, target, blob.bytes);
  // Fusions that are the same kernel share an entry.
  llvm::DenseMap<uint64_t, int32_t> entryAt;
  std::vector<int32_t> entryOf;
  for (const auto &[name, offset] : blob.entries) {
    auto [found, isNew] = entryAt.try_emplace(offset, target.entries.size());
    if (isNew)
      target.entries.push_back({.name = name, .offset = offset});
    entryOf.push_back(found->second);
  }
  for (Program &program : target.programs)
    for (Launch &launch : program.launches)
      if (launch.entry >= 0)
        launch.entry = entryOf[launch.entry];
  emitted.plan.targets.push_back(std::move(target));
}

/// Of a whole step, by the tokens of its batch.
static double flopsPerToken(const Plan &plan, ArrayRef<Program> programs) {
  double flops = 0;
  for (const Program &program : programs)
    if (program.kind == ProgramKind::stepFused)
      for (const Launch &launch : program.launches)
        flops += launch.flops;
  return flops / double(std::max<int64_t>(1, plan.batch * plan.sequence));
}

FailureOr<std::vector<Program>> emitPrograms(ModuleOp module, SmallVectorImpl<FusionOp> &fusions) {
  DenseMap<Operation *, int64_t> indexOf;
  module.walk([&](FusionOp fusion) {
    indexOf[fusion] = fusions.size();
    fusions.push_back(fusion);
  });
  std::vector<Program> programs;
  for (auto op : module.getOps<ProgramOp>()) {
    FailureOr<Program> program = emitProgram(op, indexOf);
    if (failed(program))
      return failure();
    programs.push_back(std::move(*program));
  }
  return programs;
}

FailureOr<EmittedPlan> emitPlan(ModuleOp module, ArrayRef<CpuIsa> isas) {
  EmittedPlan emitted;
  if (failed(emitState(module, emitted)))
    return failure();
  SmallVector<FusionOp> fusions;
  FailureOr<std::vector<Program>> programs = emitPrograms(module, fusions);
  if (failed(programs))
    return failure();
  for (const CpuIsa &isa : isas) {
    FailureOr<CodeBlob> blob = compileFusions(fusions, isa);
    if (failed(blob))
      return failure();
    addTarget(emitted, *programs, isa, *blob);
  }
  emitted.plan.flopsPerToken = flopsPerToken(emitted.plan, *programs);
  emitted.plan.lossIsTokenMean = module->hasAttr("llmc.token_mean");
  return emitted;
}

} // namespace llmc
