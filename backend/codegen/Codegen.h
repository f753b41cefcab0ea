// Machine code for fusions: each becomes a function over a block of rows and columns, compiled through MLIR's LLVM
// dialect and LLVM into bytes that need neither a linker nor a loader. Copied anywhere (64-byte aligned) and made
// executable, they run.
#pragma once

#include "ir/Dialect.h"

#include <cstddef>

namespace llmc {

/// A generated kernel computes rows [rowBegin, rowEnd) and columns [colBegin, colEnd) of its fusion's space.
/// `operands`: inputs, then results, each dense and 64-byte aligned. A result of the whole space may lie in the buffer
/// of an input of the whole space; else results overlap nothing. A task starts at a multiple of (rowBlock, colBlock)
/// and ends at the next or at the space's end: column reductions store the partial result number rowBegin / rowBlock.
using GeneratedKernel = void (*)(void *const *operands, int64_t rowBegin, int64_t rowEnd, int64_t colBegin,
                                 int64_t colEnd);

/// A level of the instruction set that code is generated for.
struct CpuIsa {
  std::string name;     ///< as plans name it
  std::string cpu;      ///< LLVM's name
  std::string features; ///< LLVM's features beyond it
  unsigned lanes;       ///< f32 in a register
  bool hasBf16;         ///< rounds to bf16 by one instruction
};

/// x86-64-v3, x86-64-v4, x86-64-v4-bf16, weakest first.
llvm::ArrayRef<CpuIsa> cpuIsas();

/// Position-independent code with its constants.
struct CodeBlob {
  std::vector<std::byte> bytes;
  std::vector<std::pair<std::string, uint64_t>> entries; ///< name and byte offset, one for each fusion
};

/// Compiles each fusion; those of equal kernels share code. The same fusions give the same bytes. Uses the context's
/// threads. Fails with an error on the fusion, or at an unknown place for an error of LLVM.
mlir::FailureOr<CodeBlob> compileFusions(llvm::ArrayRef<FusionOp> fusions, const CpuIsa &isa);

/// What a fusion's code depends on, as text: fusions with the same key are the same kernel. Free of names, locations
/// and what does not matter (the size of a one-dimensional elementwise space).
std::string kernelKey(FusionOp fusion);

} // namespace llmc
