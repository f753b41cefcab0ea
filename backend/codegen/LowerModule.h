// What kernels for all targets share on their way to code: from arith, math, scf and LLVM-dialect ops (with NVVM ones
// for GPUs) to optimised LLVM IR.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"

namespace llmc {

/// Loads the dialects that kernels are built of, and what translates them. Not while other threads use the context.
void loadKernelDialects(mlir::MLIRContext &context);

/// LLVM IR with the context that owns its types.
struct LoweredModule {
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> code;
};

/// Lowers `module` to LLVM's dialect, in place, and translates it for the machine. Products and sums may fuse.
llvm::Expected<LoweredModule> lowerModule(mlir::ModuleOp module, const llvm::TargetMachine &machine);

/// Optimises every function.
void optimize(llvm::Module &module, llvm::TargetMachine &machine);

/// An error with this text.
llvm::Error codegenError(llvm::StringRef text);

} // namespace llmc
