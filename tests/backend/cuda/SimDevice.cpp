// Hooks by the simulated library's own symbols.
#include "tests/backend/cuda/SimDevice.h"

#include <cstring>
#include <stdexcept>

namespace llmc::cuda::test {

CudaDeviceOptions simOptions() {
  CudaDeviceOptions options;
  options.driverLibrary = LLMC_CUDASIM_DRIVER;
  options.blasLibrary = LLMC_CUDASIM_BLAS;
  options.ncclLibrary = LLMC_CUDASIM_NCCL;
  return options;
}

static std::unique_ptr<Driver> resetSimulator(const CudasimConfig &config) {
  Result<std::unique_ptr<Driver>> driver = Driver::load(LLMC_CUDASIM_DRIVER);
  if (!driver)
    throw std::runtime_error(driver.error().message); // GoogleTest reports it as this test's failure
  reinterpret_cast<void (*)(const CudasimConfig *)>((*driver)->symbol("cudasimReset"))(&config);
  return std::move(*driver);
}

SimDevice::SimDevice(const CudasimConfig &config, const CudaDeviceOptions &options) : driver(resetSimulator(config)) {
  Result<std::unique_ptr<DeviceApi>> opened = makeCudaDevice(options);
  if (!opened)
    throw std::runtime_error(opened.error().message);
  device = std::move(*opened);
}

SimDevice::~SimDevice() {
  device.reset();
  resetSimulator(kPlainConfig);
}

Status SimDevice::load(const char *ptx, std::vector<CodeEntry> entries, const std::string &precision) {
  Plan plan;
  plan.precision = precision;
  TargetPrograms &target = plan.targets.emplace_back();
  target.target = "cuda";
  target.isa = "sm_80";
  target.entries = std::move(entries);
  return device->loadCode(plan, target, std::as_bytes(std::span(ptx, ptx ? std::strlen(ptx) + 1 : 0)));
}

std::string openingError(const CudasimConfig &config, const CudaDeviceOptions &options) {
  std::unique_ptr<Driver> driver = resetSimulator(config);
  Result<std::unique_ptr<DeviceApi>> opened = makeCudaDevice(options);
  std::string message = opened ? "" : opened.error().message;
  opened = Error{"closed"};
  resetSimulator(kPlainConfig);
  return message;
}

} // namespace llmc::cuda::test
