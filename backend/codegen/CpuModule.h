// From a module of arith, math, scf and LLVM-dialect ops to an x86-64 object file in memory.
#pragma once

#include "backend/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

namespace llmc {

/// Lowers `module` to LLVM's dialect, in place, and compiles it. The object needs no symbol from outside. The context
/// has had loadKernelDialects (LowerModule.h).
llvm::Expected<llvm::SmallVector<char>> compileToObject(mlir::ModuleOp module, const CpuIsa &isa);

} // namespace llmc
