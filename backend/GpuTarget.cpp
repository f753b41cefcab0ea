// Programs for GPUs: each launch that is no library's gets a kernel made for its sizes, all in one PTX text.
#include "backend/PlanEmitter.h"
#include "backend/ProgramEmitter.h"
#include "backend/StateEmitter.h"
#include "backend/codegen/GpuCode.h"
#include "runtime/PlanCheck.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

#include <tuple>

using namespace mlir;

namespace llmc {

static constexpr const char *kTarget = "cuda";

/// Programs of several targets share their state: each must find every value where the others have it.
static LogicalResult checkState(const EmittedPlan &emitted, ModuleOp module) {
  EmittedPlan own;
  if (failed(emitState(module, own)))
    return failure();
  auto placeOf = [](const StateEntry &entry) {
    return std::tie(entry.name, entry.kind, entry.type, entry.shape, entry.buffer.space, entry.buffer.offset,
                    entry.buffer.bytes, entry.rows.length, entry.rows.stride, entry.gradient.offset);
  };
  const Plan &plan = emitted.plan;
  if (own.plan.state.size() != plan.state.size() || own.plan.stateBytes != plan.stateBytes ||
      own.plan.gradientBytes != plan.gradientBytes)
    return module.emitError() << "a GPU's programs keep other values than a CPU's";
  for (auto [ours, theirs] : llvm::zip_equal(own.plan.state, plan.state))
    if (placeOf(ours) != placeOf(theirs))
      return module.emitError() << "a GPU's programs keep '" << ours.name << "' elsewhere than a CPU's '" << theirs.name
                                << "'";
  return success();
}

/// A kernel that is no fusion depends on its arguments and on which operands there are.
static std::string keyOf(const Launch &launch) {
  std::string key;
  llvm::raw_string_ostream out(key);
  out << kernelInfo(launch.kind).name;
  for (int64_t number : launch.ints)
    out << " " << number;
  for (double number : launch.floats)
    out << " " << llvm::format_hex(llvm::bit_cast<uint64_t>(number), 18);
  for (const BufferRef &operand : launch.operands)
    out << (operand.space == Space::none ? " -" : " +");
  return key;
}

static FailureOr<GpuSource> gpuSource(ModuleOp module, const Launch &launch) {
  std::string name = kernelInfo(launch.kind).name;
  GpuKernelEmitter emitter = gpuKernelEmitter(launch.kind);
  if (!emitter)
    return module.emitError() << "kernel " << name << " ('" << launch.name << "') has no code for GPUs yet";
  MLIRContext *context = module.getContext();
  return GpuSource{name, keyOf(launch),
                   [launch, emitter, context](StringRef symbol) { return emitter(launch, symbol, *context); }};
}

FailureOr<GpuPrograms> emitGpuPrograms(ModuleOp module) {
  SmallVector<FusionOp> fusions;
  FailureOr<std::vector<Program>> programs = emitPrograms(module, fusions);
  if (failed(programs))
    return failure();
  GpuPrograms made{std::move(*programs), {}};
  for (FusionOp fusion : fusions) {
    FailureOr<GpuSource> source = gpuSource(fusion);
    if (failed(source))
      return failure();
    made.sources.push_back(std::move(*source));
  }
  for (Program &program : made.programs)
    for (Launch &launch : program.launches) {
      if (launch.kind == KernelKind::Generated || !needsEntry(kTarget, launch.kind))
        continue;
      FailureOr<GpuSource> source = gpuSource(module, launch);
      if (failed(source))
        return failure();
      launch.entry = int32_t(made.sources.size());
      made.sources.push_back(std::move(*source));
    }
  return made;
}

LogicalResult addGpuTarget(EmittedPlan &emitted, ModuleOp module, const GpuIsa &isa) {
  if (failed(checkState(emitted, module)))
    return failure();
  FailureOr<GpuPrograms> made = emitGpuPrograms(module);
  if (failed(made))
    return failure();
  TargetPrograms target;
  target.target = kTarget;
  target.isa = isa.name;
  target.programs = std::move(made->programs);
  llvm::Expected<GpuCode> code = compileGpuSources(*module.getContext(), made->sources, isa);
  if (!code)
    return module.emitError() << llvm::toString(code.takeError());
  for (Program &program : target.programs)
    for (Launch &launch : program.launches)
      if (launch.entry >= 0)
        launch.entry = code->entryOf[launch.entry];
  target.entries = std::move(code->entries);
  // With the zero byte that ends it.
  auto *text = reinterpret_cast<const std::byte *>(code->ptx.c_str());
  appendCode(emitted, target, ArrayRef(text, code->ptx.size() + 1));
  emitted.plan.targets.push_back(std::move(target));
  return success();
}

} // namespace llmc
