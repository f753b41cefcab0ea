// Attention by a library, where one takes a launch: faster than the plan's own kernels, which every plan holds and
// which run what the library declines.
#pragma once

#include "runtime/Plan.h"
#include "runtime/Status.h"

#include <cuda.h>
#include <memory>
#include <span>

namespace llmc::cuda {

/// One attention launch, or its gradient, made ready.
class AttentionPlan {
public:
  virtual ~AttentionPlan() = default;
  /// Device memory that submit needs for itself, 256-byte aligned; nothing in it outlives the launch.
  virtual uint64_t workspaceBytes() const = 0;
  /// Puts the launch on the stream. `operands` are addresses in the order of Kernels.def (0: absent).
  virtual Status submit(CUstream stream, std::span<const CUdeviceptr> operands, CUdeviceptr workspace) = 0;
};

class AttentionLibrary {
public:
  virtual ~AttentionLibrary() = default;
  /// Takes an attention launch; an error says, in words for the person at the terminal, why the library declines it.
  virtual Result<std::unique_ptr<AttentionPlan>> take(const Launch &launch) = 0;
};

/// cuDNN for the device of the current context (90 for sm_90). Its results repeat bit by bit. Fails where the library
/// cannot be loaded.
Result<std::unique_ptr<AttentionLibrary>> openCudnn(int computeCapability, const std::string &path = "libcudnn.so.9");
/// cuDNN without a GPU, for a device described by cuDNN's JSON: launches are taken or declined as there, and cannot
/// run.
Result<std::unique_ptr<AttentionLibrary>> openCudnnFor(const std::string &deviceJson, int computeCapability,
                                                       const std::string &path = "libcudnn.so.9");

} // namespace llmc::cuda
