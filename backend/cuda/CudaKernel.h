// A launch made ready for the GPU: everything read and checked when a program is prepared, then put on a stream again
// and again, directly or into a graph.
#pragma once

#include "backend/cuda/DeviceMemory.h"
#include "runtime/Device.h"

namespace llmc::cuda {

class CudaKernel {
public:
  virtual ~CudaKernel() = default;
  /// Puts the work on the stream. The caller adds the launch's name to an error.
  virtual Status submit(CUstream stream) = 0;
};
using MadeKernel = Result<std::unique_ptr<CudaKernel>>;

/// The address of an operand; 0 where it is absent.
inline CUdeviceptr addressOf(const BufferRef &operand, const DeviceSpaces &spaces) {
  const std::array<std::byte *, 4> bases = {nullptr, spaces.state, spaces.gradients, spaces.arena};
  std::byte *base = bases[static_cast<size_t>(operand.space)];
  return base ? reinterpret_cast<CUdeviceptr>(base + operand.offset) : 0;
}

/// A kernel of the plan's PTX. Its parameters are the addresses of the operands that are present, in order, and nothing
/// else; kinds that can fail on data get one more, of `status`, a 64-bit word (0 there: this launch has none).
MadeKernel makeEntryKernel(const Context &context, CUmodule module, const CodeEntry &entry, const Launch &launch,
                           const DeviceSpaces &spaces, CUdeviceptr status);

/// Zero bytes.
MadeKernel makeZeroKernel(const Context &context, const Launch &launch, const DeviceSpaces &spaces);

/// Whether a kind's kernel has a status word: 1 + the flat position of what it cannot work with.
inline bool canFailOnData(KernelKind kind) { return kind == KernelKind::Embedding; }

} // namespace llmc::cuda
