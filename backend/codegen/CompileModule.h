// From a module of arith, math, scf and LLVM-dialect ops to an x86-64 object file in memory.
#pragma once

#include "backend/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llmc {

/// Loads the dialects that kernels are built of, and what translates them. Not while other threads use the context.
void loadKernelDialects(mlir::MLIRContext &context);

/// Lowers `module` to LLVM's dialect, in place, and compiles it. The object needs no symbol from outside.
llvm::Expected<llvm::SmallVector<char>> compileModule(mlir::ModuleOp module, const CpuIsa &isa);

} // namespace llmc
