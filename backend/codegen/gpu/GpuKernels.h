// Kernels for GPUs that are neither fusions nor contractions, specialised for a launch's sizes: copies, embeddings and
// attention. Each kind has its own file in this folder.
#pragma once

#include "runtime/Plan.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

#include <string>

namespace llmc {

/// A kernel and how it is launched: one block of threads is one-dimensional, so is the grid. Its parameters are the
/// addresses of the launch's operands that are present, in order; of an embedding, one more: a 64-bit status word,
/// which gets 1 + the position of a token id outside the table.
struct GpuKernel {
  mlir::OwningOpRef<mlir::ModuleOp> module; ///< one function marked nvvm.kernel, and its shared memory
  uint32_t gridX = 1, blockX = 1;
  uint32_t sharedBytes = 0; ///< dynamic shared memory
};

/// Emits the kernel of a launch, named `symbol`; what it declares besides is named after it. The context has had
/// loadKernelDialects. Fails in words where the sizes are beyond what the kernel can do.
using GpuKernelEmitter = llvm::Expected<GpuKernel> (*)(const Launch &launch, llvm::StringRef symbol,
                                                       mlir::MLIRContext &context);

/// The emitter of a kind; null for those that a library or the driver runs, and for fusions.
GpuKernelEmitter gpuKernelEmitter(KernelKind kind);
/// Whether a kind's kernel has the parameter for the status word.
bool takesStatus(KernelKind kind);

} // namespace llmc
