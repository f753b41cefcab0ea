// An NVIDIA GPU as a device: see runtime/Device.h for what it promises.
#pragma once

#include "runtime/Device.h"

#include <chrono>
#include <functional>

namespace llmc {

namespace cuda {
class AttentionLibrary;
}

struct CudaDeviceOptions {
  int ordinal = 0; ///< which of the GPUs that this process sees
  /// How long a collective may wait for other ranks.
  std::chrono::milliseconds rankTimeout{30000};
  /// How long a program may run.
  std::chrono::milliseconds stepTimeout{600000};
  /// Loaded when they are needed; tests name simulated ones.
  std::string driverLibrary = "libcuda.so.1", blasLibrary = "libcublasLt.so.13", ncclLibrary = "libnccl.so.2";
  /// Opens the library that runs attention (openCudnn), for a compute capability (90 for sm_90); none: the plan's own
  /// kernels do.
  std::function<Result<std::unique_ptr<cuda::AttentionLibrary>>(int)> openAttention;
  /// Told, once each, what the person at the terminal should know: why attention does not run by the library.
  std::function<void(const std::string &)> notice;
};

/// Opens the GPU. Fails where there is no driver, no such GPU, or the driver is older than CUDA 13; the message names
/// `--device cpu`.
Result<std::unique_ptr<DeviceApi>> makeCudaDevice(const CudaDeviceOptions &options);

} // namespace llmc
