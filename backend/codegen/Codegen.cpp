// Fusions to code: analyse each, find the distinct kernels, compile those in parallel (each is a module of its own),
// join the pieces in order.
#include "backend/codegen/Codegen.h"
#include "backend/codegen/CpuKernelBuilder.h"
#include "backend/codegen/CpuModule.h"
#include "backend/codegen/FlattenObject.h"
#include "backend/codegen/LowerModule.h"
#include "backend/codegen/MathExpansion.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace llmc {

static constexpr const char *kFunction = "kernel";

ArrayRef<CpuIsa> cpuIsas() {
  static const CpuIsa isas[] = {{"x86-64-v3", "x86-64-v3", "", 8, false},
                                {"x86-64-v4", "x86-64-v4", "", 16, false},
                                {"x86-64-v4-bf16", "x86-64-v4", "+avx512bf16", 16, true}};
  return isas;
}

static llvm::Expected<FlatCode> compileKernel(const FusionStages &stages, const CpuIsa &isa) {
  MLIRContext *context = stages.op().getContext();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  CpuKernelBuilder kernel(*module, kFunction, stages, isa);
  emitKernel(stages, kernel);
  kernel.finish();
  expandMath(*module, /*isAvx512=*/isa.lanes == 16);
  llvm::Expected<SmallVector<char>> object = compileToObject(*module, isa);
  if (!object)
    return object.takeError();
  return flattenObject(*object, kFunction);
}

FailureOr<CodeBlob> compileFusions(ArrayRef<FusionOp> fusions, const CpuIsa &isa) {
  if (fusions.empty())
    return CodeBlob{};
  std::vector<FusionStages> kernels;
  llvm::StringMap<size_t> kernelsByKey;
  std::vector<size_t> kernelOf;
  for (FusionOp fusion : fusions) {
    FailureOr<FusionStages> stages = FusionStages::analyze(fusion);
    if (failed(stages))
      return failure();
    auto [entry, isNew] = kernelsByKey.try_emplace(kernelKey(*stages), kernels.size());
    if (isNew)
      kernels.push_back(std::move(*stages));
    kernelOf.push_back(entry->second);
  }

  MLIRContext *context = kernels[0].op().getContext();
  loadKernelDialects(*context);
  std::vector<FlatCode> pieces(kernels.size());
  std::vector<std::string> errors(kernels.size());
  parallelFor(context, 0, kernels.size(), [&](size_t i) {
    if (llvm::Expected<FlatCode> piece = compileKernel(kernels[i], isa))
      pieces[i] = std::move(*piece);
    else
      errors[i] = llvm::toString(piece.takeError());
  });
  for (auto [kernel, error] : llvm::zip_equal(kernels, errors))
    if (!error.empty())
      return kernel.op().emitOpError() << error << " (" << isa.name << ")";

  CodeBlob blob;
  std::vector<std::pair<std::string, uint64_t>> entries;
  for (auto [kernel, piece] : llvm::zip_equal(kernels, pieces)) {
    entries.push_back({describeKernel(kernel), blob.bytes.size() + piece.entry});
    blob.bytes.insert(blob.bytes.end(), piece.bytes.begin(), piece.bytes.end());
  }
  for (size_t kernel : kernelOf)
    blob.entries.push_back(entries[kernel]);
  return blob;
}

} // namespace llmc
