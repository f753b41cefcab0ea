// The CUDA device on the simulated driver and libraries, with its memory and small plans, as tests of it need them.
#pragma once

#include "backend/cuda/CudaDevice.h"
#include "backend/cuda/Driver.h"
#include "tests/cudasim/driver/Control.h"

#include <gmock/gmock.h>

namespace llmc::cuda::test {

inline constexpr CudasimConfig kPlainConfig{.seed = 1,
                                            .memoryBytes = uint64_t(1) << 30,
                                            .numDevices = 1,
                                            .computeCapability = 80,
                                            .driverVersion = 13000,
                                            .dropEventWait = 0};

/// Options that name the simulated libraries.
CudaDeviceOptions simOptions();

/// Starts the simulator anew.
class SimDevice {
public:
  explicit SimDevice(const CudasimConfig &config = kPlainConfig, const CudaDeviceOptions &options = simOptions());
  ~SimDevice();

  /// Memory that holds these values.
  template <typename T> std::byte *upload(const std::vector<T> &values) {
    Result<std::byte *> memory = device->allocate(values.size() * sizeof(T), "test values");
    EXPECT_TRUE(memory.ok()) << memory.error().message;
    EXPECT_TRUE(device->copyIn(*memory, std::as_bytes(std::span(values))).ok());
    return *memory;
  }
  template <typename T> std::vector<T> download(const std::byte *memory, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(device->copyOut(std::as_writable_bytes(std::span(values)), memory).ok());
    return values;
  }
  /// Loads PTX whose kernels are launched as `entries` say, for a plan of this precision.
  Status load(const char *ptx, std::vector<CodeEntry> entries, const std::string &precision = "fp32");
  std::string lastFault() const { return hook<const char *(*)()>("cudasimLastFault")(); }
  template <typename F> F hook(const char *name) const { return reinterpret_cast<F>(driver->symbol(name)); }

  std::unique_ptr<Driver> driver; ///< for the hooks
  std::unique_ptr<DeviceApi> device;
};

/// Opens a device that is expected to fail; why.
std::string openingError(const CudasimConfig &config, const CudaDeviceOptions &options = simOptions());

} // namespace llmc::cuda::test
