// An NVIDIA GPU as a device: see runtime/Device.h for what it promises.
#pragma once

#include "runtime/Device.h"

#include <chrono>

namespace llmc {

struct CudaDeviceOptions {
  int ordinal = 0; ///< which of the GPUs that this process sees
  /// How long a collective may wait for other ranks.
  std::chrono::milliseconds rankTimeout{30000};
  /// How long a program may run.
  std::chrono::milliseconds stepTimeout{600000};
  /// Loaded when they are needed; tests name simulated ones.
  std::string driverLibrary = "libcuda.so.1", blasLibrary = "libcublasLt.so.13", ncclLibrary = "libnccl.so.2";
};

/// Opens the GPU. Fails where there is no driver, no such GPU, or the driver is older than CUDA 13; the message names
/// `--device cpu`.
Result<std::unique_ptr<DeviceApi>> makeCudaDevice(const CudaDeviceOptions &options);

} // namespace llmc
