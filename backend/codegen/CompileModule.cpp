// MLIR's conversions, then LLVM. The code arrives vectorised and unrolled as it should be, so a short list of passes
// serves: two thirds of O2's time at the same speed of code (tests/bench/codegen-bench: 7 ms a kernel and ISA level
// against 11).
#include "backend/codegen/CompileModule.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

#include <mutex>

using namespace mlir;

namespace llmc {

static constexpr const char *kTriple = "x86_64-unknown-linux-gnu";

void loadKernelDialects(MLIRContext &context) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                      scf::SCFDialect>();
}

/// Lets products and sums fuse; a maximum need not tell -0 from 0.
static void relaxFloats(ModuleOp module) {
  module.walk([](arith::ArithFastMathInterface op) {
    auto flags = arith::FastMathFlags::contract;
    if (isa<arith::MaximumFOp, arith::MinimumFOp>(op))
      flags = flags | arith::FastMathFlags::nsz;
    op->setAttr(op.getFastMathAttrName(), arith::FastMathFlagsAttr::get(op->getContext(), flags));
  });
}

static LogicalResult lowerToLlvmDialect(ModuleOp module) {
  MLIRContext *context = module.getContext();
  LLVMConversionTarget target(*context);
  target.addLegalOp<ModuleOp>();
  LLVMTypeConverter types(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  return applyFullConversion(module, target, std::move(patterns));
}

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
    return llvm::createStringError(llvm::inconvertibleErrorCode(), message.c_str());
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

static void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  llvm::TargetLibraryInfoImpl library(llvm::Triple(module.getTargetTriple()));
  library.disableAllFunctions();
  functions.registerPass([&] { return llvm::TargetLibraryAnalysis(library); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LoopRotatePass()));
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  for (llvm::Function &function : module)
    if (!function.isDeclaration())
      passes.run(function, functions);
}

llvm::Expected<SmallVector<char>> compileModule(ModuleOp module, const CpuIsa &isa) {
  auto fail = [](const char *what) { return llvm::createStringError(llvm::inconvertibleErrorCode(), what); };
  relaxFloats(module);
  if (failed(lowerToLlvmDialect(module)))
    return fail("a kernel does not lower to LLVM's dialect");
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, "kernel");
  if (!code)
    return fail("a kernel does not translate to LLVM IR");
  llvm::Expected<std::unique_ptr<llvm::TargetMachine>> machine = createTargetMachine(isa);
  if (!machine)
    return machine.takeError();
  code->setTargetTriple(kTriple);
  code->setDataLayout((*machine)->createDataLayout());
  setAttributes(*code, isa);
  optimize(*code, **machine);
  SmallVector<char> object;
  llvm::raw_svector_ostream stream(object);
  llvm::legacy::PassManager emit;
  if ((*machine)->addPassesToEmitFile(emit, stream, nullptr, llvm::CodeGenFileType::ObjectFile, /*DisableVerify=*/true))
    return fail("LLVM cannot emit objects for this target");
  emit.run(*code);
  return object;
}

} // namespace llmc
