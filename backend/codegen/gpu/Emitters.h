// One emitter a kind (GpuKernels.h says what they promise); the file of each says how its kernel works.
#pragma once

#include "backend/codegen/gpu/GpuKernels.h"

namespace llmc {

llvm::Expected<GpuKernel> emitAttention(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context);
llvm::Expected<GpuKernel> emitAttentionGrad(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context);
llvm::Expected<GpuKernel> emitCopy(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context);
llvm::Expected<GpuKernel> emitEmbedding(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context);
llvm::Expected<GpuKernel> emitEmbeddingGrad(const Launch &launch, llvm::StringRef symbol, mlir::MLIRContext &context);

} // namespace llmc
