// Runs one launch: integers by name, operands from vectors. On the CPU (CpuLaunchRunner.cpp) guard bytes lie around
// every operand, and the ISA level is the CPU's best, or at most the one in LLMC_TEST_ISA (ctest runs the suite once
// per level). The tests of GPU kernels link another run(), on the simulated GPU, where the number of threads is the
// schedule's seed.
#pragma once

#include "backend/cpu/CpuDevice.h"

#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace llmc::test {

/// The level the suite runs at.
IsaLevel testIsa();

/// n numbers, normal with the seed; every test names its own.
std::vector<float> randomNumbers(size_t n, unsigned seed);
/// Rounded to bf16, still as floats.
std::vector<float> toBf16Precision(std::vector<float> values);
std::vector<uint16_t> asBf16(const std::vector<float> &values);
std::vector<float> fromBf16(const std::vector<uint16_t> &values);

/// The place of a name in a list of Kernels.def.
size_t indexIn(const char *list, const std::string &name);

class LaunchRunner {
public:
  LaunchRunner(KernelKind kind, int threads);

  /// Sets integers; those never set are 0.
  LaunchRunner &ints(const std::map<std::string, int64_t> &values);
  LaunchRunner &number(const std::string &name, double value);
  /// Places an operand's initial bytes; operands never placed are absent.
  template <typename T> LaunchRunner &operand(const std::string &name, const std::vector<T> &values) {
    return place(name, values.data(), values.size() * sizeof(T));
  }
  /// Makes an operand the same bytes as another that is placed.
  LaunchRunner &alias(const std::string &name, const std::string &placed) {
    aliases[name] = placed;
    return *this;
  }
  /// Opens the device, places the operands and makes the launch ready; valid while this object lives.
  Result<std::unique_ptr<PreparedProgram>> prepare();
  /// Prepares and runs once; also fails when a guard was overwritten.
  Status run();
  /// An operand's content after run().
  template <typename T> std::vector<T> result(const std::string &name) const {
    std::span<const std::byte> bytes = content(name);
    std::vector<T> values(bytes.size() / sizeof(T));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }

private:
  LaunchRunner &place(const std::string &name, const void *data, size_t bytes);
  std::span<const std::byte> content(const std::string &name) const;

  Launch launch;
  int threads;
  std::map<std::string, std::vector<std::byte>> initial;
  std::map<std::string, std::string> aliases;
  std::unique_ptr<DeviceApi> device;
  std::byte *arena = nullptr;
};

/// A device of the suite's level with the code of no kernel loaded.
std::unique_ptr<DeviceApi> openTestDevice(int threads);

} // namespace llmc::test
