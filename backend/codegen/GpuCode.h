// The code of a GPU target: kernels of all kinds, each compiled by itself, in one PTX text.
#pragma once

#include "backend/codegen/GpuModule.h"
#include "backend/codegen/gpu/GpuKernels.h"
#include "ir/Dialect.h"

#include <functional>

namespace llmc {

/// A kernel to compile.
struct GpuSource {
  std::string name; ///< for profiles; a part of its symbol
  std::string key;  ///< sources with the same key are the same kernel
  std::function<llvm::Expected<GpuKernel>(llvm::StringRef symbol)> emit; ///< on any thread
};

/// Kernels by their symbols.
struct GpuCode {
  std::string ptx;
  std::vector<CodeEntry> entries; ///< the distinct kernels
  std::vector<int32_t> entryOf;   ///< of each source: index into entries
};

/// The kernel of a fusion. Fails with an error on what kernels cannot hold.
mlir::FailureOr<GpuSource> gpuSource(FusionOp fusion);

/// Compiles each distinct kernel once, on the context's threads. The same sources give the same text. An error says
/// which kernel's it is.
llvm::Expected<GpuCode> compileGpuSources(mlir::MLIRContext &context, llvm::ArrayRef<GpuSource> sources,
                                          const GpuIsa &isa);

} // namespace llmc
