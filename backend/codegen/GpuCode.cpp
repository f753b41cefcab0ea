// Symbols are numbered and shared variables named after them, so that texts that know nothing of each other can be
// joined.
#include "backend/codegen/GpuCode.h"
#include "backend/codegen/GpuKernelBuilder.h"
#include "backend/codegen/LowerModule.h"

#include "mlir/IR/Threading.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace llmc {

/// Sizes and blocks are part of a GPU's code.
static std::string gpuKernelKey(const FusionStages &stages) {
  std::string key = "fusion ";
  llvm::raw_string_ostream out(key);
  llvm::interleave(stages.space, out, "x");
  out << " in " << stages.rowBlock << "x" << stages.colBlock << " " << kernelKey(stages);
  return key;
}

FailureOr<GpuSource> gpuSource(FusionOp fusion) {
  FailureOr<FusionStages> analysis = FusionStages::analyze(fusion);
  if (failed(analysis))
    return failure();
  auto stages = std::make_shared<FusionStages>(std::move(*analysis));
  auto emit = [stages](StringRef symbol) -> llvm::Expected<GpuKernel> {
    GpuGeometry geometry = chooseGeometry(*stages);
    MLIRContext *context = stages->op().getContext();
    GpuKernel made;
    made.module = ModuleOp::create(UnknownLoc::get(context));
    GpuKernelBuilder kernel(*made.module, symbol, *stages, geometry);
    emitKernel(*stages, kernel);
    kernel.finish();
    made.gridX = uint32_t(geometry.grid);
    made.blockX = uint32_t(geometry.threads());
    return made;
  };
  return GpuSource{describeKernel(*stages), gpuKernelKey(*stages), std::move(emit)};
}

/// "k7_add_exp".
static std::string symbolOf(size_t number, StringRef name) {
  static constexpr size_t kLongest = 40;
  std::string symbol = "k" + std::to_string(number) + "_";
  for (char c : name.take_front(kLongest))
    symbol += llvm::isAlnum(c) ? c : '_';
  return symbol;
}

/// A text without what stands at the head of each: version, target, size of addresses.
static StringRef bodyOf(StringRef ptx) {
  size_t head = ptx.find(".address_size");
  return ptx.drop_front(std::min(ptx.find('\n', head), ptx.size()));
}

llvm::Expected<GpuCode> compileGpuSources(MLIRContext &context, ArrayRef<GpuSource> sources, const GpuIsa &isa) {
  GpuCode code;
  llvm::StringMap<int32_t> byKey;
  SmallVector<const GpuSource *> distinct;
  for (const GpuSource &source : sources) {
    auto [entry, isNew] = byKey.try_emplace(source.key, int32_t(distinct.size()));
    if (isNew) {
      code.entries.push_back({.name = source.name, .symbol = symbolOf(distinct.size(), source.name)});
      distinct.push_back(&source);
    }
    code.entryOf.push_back(entry->second);
  }
  loadKernelDialects(context);
  std::vector<std::string> texts(distinct.size()), errors(distinct.size());
  parallelFor(&context, 0, distinct.size(), [&](size_t i) {
    CodeEntry &entry = code.entries[i];
    llvm::Expected<GpuKernel> kernel = distinct[i]->emit(entry.symbol);
    if (!kernel) {
      errors[i] = llvm::toString(kernel.takeError());
      return;
    }
    entry.gridX = kernel->gridX;
    entry.blockX = kernel->blockX;
    entry.sharedBytes = kernel->sharedBytes;
    if (llvm::Expected<std::string> ptx = compileToPtx(*kernel->module, isa))
      texts[i] = std::move(*ptx);
    else
      errors[i] = llvm::toString(ptx.takeError());
  });
  for (auto [source, error, text] : llvm::zip_equal(distinct, errors, texts)) {
    if (!error.empty())
      return codegenError(source->name + ": " + error + " (" + isa.name + ")");
    code.ptx += code.ptx.empty() ? StringRef(text) : bodyOf(text);
  }
  return code;
}

} // namespace llmc
