// Code for x86-64: vectors as wide as the level's, no call to anything outside.
#include "backend/codegen/CpuModule.h"
#include "backend/codegen/LowerModule.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace llmc {

static constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const CpuIsa &isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(kTriple, message);
  if (!target)
    return codegenError(message);
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, isa.cpu, isa.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

/// Nothing outside is called, nothing unwinds, and 512-bit vectors are used where the lanes fill them.
static void setAttributes(llvm::Module &module, const CpuIsa &isa) {
  for (llvm::Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.setDSOLocal(true);
    function.addFnAttr(llvm::Attribute::NoUnwind);
    function.addFnAttr("no-builtins");
    function.addFnAttr("no-jump-tables", "true");
    function.addFnAttr("target-cpu", isa.cpu);
    function.addFnAttr("target-features", isa.features);
    std::string width = std::to_string(isa.lanes * 32);
    function.addFnAttr("prefer-vector-width", width);
    function.addFnAttr("min-legal-vector-width", width);
  }
}

llvm::Expected<SmallVector<char>> compileToObject(ModuleOp module, const CpuIsa &isa) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(isa);
  if (!machine)
    return machine.takeError();
  llvm::Expected<LoweredModule> lowered = lowerModule(module, **machine);
  if (!lowered)
    return lowered.takeError();
  setAttributes(*lowered->code, isa);
  optimize(*lowered->code, **machine);
  SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if ((*machine)->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true))
    return codegenError("LLVM cannot emit objects for this target");
  emit.run(*lowered->code);
  return object;
}

} // namespace llmc
