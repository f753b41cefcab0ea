// The CPU as a device: see runtime/Device.h for what it promises.
#pragma once

#include "backend/cpu/CpuInfo.h"
#include "runtime/Device.h"

#include <memory>

namespace llmc {

/// A device that runs on `threads` threads (at least 1) at the highest ISA level that the CPU and the plan have.
std::unique_ptr<DeviceApi> makeCpuDevice(int threads);

struct CpuDeviceOptions {
  int threads = 1;
  IsaLevel maxIsa = IsaLevel::v4Bf16; ///< never above this level
};
/// As makeCpuDevice, capped.
std::unique_ptr<DeviceApi> makeCappedCpuDevice(const CpuDeviceOptions &options);

} // namespace llmc
