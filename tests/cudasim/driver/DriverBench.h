// The simulated driver as the backend sees it: loaded by path, with one context, one module of small kernels and two
// streams. A test asks for a call's result by ok(), or compares it.
#pragma once

#include "backend/cuda/Driver.h"
#include "tests/cudasim/driver/Control.h"

#include <gmock/gmock.h>
#include <vector>

namespace llmc::cudasim {

inline constexpr CudasimConfig kPlainConfig{.seed = 1,
                                            .memoryBytes = 1 << 24,
                                            .numDevices = 1,
                                            .computeCapability = 80,
                                            .driverVersion = 13000,
                                            .dropEventWait = 0};
inline constexpr uint32_t kCount = 256;
inline constexpr size_t kBytes = kCount * 4;

class DriverBench {
public:
  explicit DriverBench(const CudasimConfig &config = kPlainConfig);
  ~DriverBench();

  void ok(CUresult result) const { EXPECT_EQ(result, CUDA_SUCCESS) << driver->check(result, "call").error().message; }
  CUdeviceptr allocate(size_t bytes = kBytes) const {
    CUdeviceptr address = 0;
    ok(driver->cuMemAlloc(&address, bytes));
    return address;
  }
  /// Pinned memory.
  uint32_t *pinned() const;
  CUstream newStream(unsigned int flags = CU_STREAM_NON_BLOCKING) const;
  CUevent newEvent() const;
  CUfunction function(const char *name) const;

  /// dst[i] = value on kCount words.
  CUresult fill(CUstream stream, CUdeviceptr dst, uint32_t value) const;
  /// dst[i] = a[i] + b[i].
  CUresult add(CUstream stream, CUdeviceptr dst, CUdeviceptr a, CUdeviceptr b) const;
  CUresult launch(CUstream stream, CUfunction function, std::vector<void *> parameters, uint32_t sharedBytes = 0) const;
  std::vector<uint32_t> download(CUdeviceptr src) const;

  template <typename F> F hook(const char *name) const { return reinterpret_cast<F>(driver->symbol(name)); }
  std::string lastFault() const { return hook<const char *(*)()>("cudasimLastFault")(); }

  std::unique_ptr<cuda::Driver> driver;
  CUmodule module = nullptr;
  CUstream one = nullptr, two = nullptr;
};

} // namespace llmc::cudasim
