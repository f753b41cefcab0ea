// From a module of arith, math, scf, LLVM-dialect and NVVM ops to PTX text. Functions with `nvvm.kernel` become
// entries; addresses are !llvm.ptr<1> (global memory), shared memory is llvm.mlir.global in address space 3.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llmc {

/// What PTX is generated for: the least GPU that takes it; drivers compile it for newer ones.
struct GpuIsa {
  std::string name;     ///< as plans name it, and LLVM's name
  std::string features; ///< LLVM's features beyond it
};

/// sm_80 with PTX 7.0.
llvm::ArrayRef<GpuIsa> gpuIsas();

/// Expands math (MathExpansion.h), lowers `module` to LLVM's dialect, in place, and compiles it. Shared variables and
/// functions that are no kernels do not leave the module. The context has had loadKernelDialects (LowerModule.h).
llvm::Expected<std::string> compileToPtx(mlir::ModuleOp module, const GpuIsa &isa);

} // namespace llmc
