// MLIR's conversions, then LLVM. The code arrives vectorised and unrolled as it should be, so a short list of passes
// serves: two thirds of O2's time at the same speed of code (tests/bench/codegen-bench: 7 ms a kernel and ISA level
// against 11).
#include "backend/codegen/LowerModule.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "mlir/Transforms/DialectConversion.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/LoopRotation.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

using namespace mlir;

namespace llmc {

void loadKernelDialects(MLIRContext &context) {
  registerBuiltinDialectTranslation(context);
  registerLLVMDialectTranslation(context);
  registerNVVMDialectTranslation(context);
  context.loadDialect<arith::ArithDialect, cf::ControlFlowDialect, LLVM::LLVMDialect, math::MathDialect,
                      NVVM::NVVMDialect, scf::SCFDialect>();
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
  target.addLegalDialect<NVVM::NVVMDialect>();
  LLVMTypeConverter types(context);
  RewritePatternSet patterns(context);
  populateSCFToControlFlowConversionPatterns(patterns);
  cf::populateControlFlowToLLVMConversionPatterns(types, patterns);
  arith::populateArithToLLVMConversionPatterns(types, patterns);
  populateMathToLLVMConversionPatterns(types, patterns);
  return applyFullConversion(module, target, std::move(patterns));
}

void optimize(llvm::Module &module, llvm::TargetMachine &machine) {
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

llvm::Error codegenError(StringRef text) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), "%s", text.str().c_str());
}

llvm::Expected<LoweredModule> lowerModule(ModuleOp module, const llvm::TargetMachine &machine) {
  relaxFloats(module);
  if (failed(lowerToLlvmDialect(module)))
    return codegenError("a kernel does not lower to LLVM's dialect");
  LoweredModule lowered;
  lowered.context = std::make_unique<llvm::LLVMContext>();
  lowered.code = translateModuleToLLVMIR(module, *lowered.context, "kernel");
  if (!lowered.code)
    return codegenError("a kernel does not translate to LLVM IR");
  lowered.code->setTargetTriple(machine.getTargetTriple().str());
  lowered.code->setDataLayout(machine.createDataLayout());
  return lowered;
}

} // namespace llmc
