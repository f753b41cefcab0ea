// Code for NVIDIA GPUs. LLVM's own NVPTX passes widen accesses and split addresses, so little is left to do before
// them.
#include "backend/codegen/GpuModule.h"
#include "backend/codegen/LowerModule.h"
#include "backend/codegen/MathExpansion.h"

#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"

#include <mutex>

using namespace mlir;

namespace llmc {

static constexpr const char *kTriple = "nvptx64-nvidia-cuda";

ArrayRef<GpuIsa> gpuIsas() {
  static const GpuIsa isas[] = {{"sm_80", "+ptx70"}};
  return isas;
}

static llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createTargetMachine(const GpuIsa &isa) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  std::string message;
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(kTriple, message);
  if (!target)
    return codegenError(message);
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, isa.name, isa.features, llvm::TargetOptions(), llvm::Reloc::PIC_,
                                  std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Kernels are launched by name; nothing else is seen from outside.
static void setLinkage(llvm::Module &module) {
  for (llvm::Function &function : module)
    if (!function.isDeclaration()) {
      function.addFnAttr(llvm::Attribute::NoUnwind);
      function.addFnAttr("no-builtins");
    }
  for (llvm::GlobalVariable &variable : module.globals())
    if (!variable.isDeclaration())
      variable.setLinkage(llvm::GlobalValue::InternalLinkage);
}

llvm::Expected<std::string> compileToPtx(ModuleOp module, const GpuIsa &isa) {
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(isa);
  if (!machine)
    return machine.takeError();
  expandMath(module, /*isAvx512=*/false);
  llvm::Expected<LoweredModule> lowered = lowerModule(module, **machine);
  if (!lowered)
    return lowered.takeError();
  setLinkage(*lowered->code);
  optimize(*lowered->code, **machine);
  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emit;
  if ((*machine)->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::AssemblyFile,
                                      /*DisableVerify=*/true))
    return codegenError("LLVM cannot emit PTX");
  emit.run(*lowered->code);
  return text.str().str();
}

} // namespace llmc
