// Kernels for tests of the simulator: a bench with one module, its memory and its arguments, and a snippet runner that
// puts values into registers, executes a few instructions in one thread and gives the result's bits.
#pragma once

#include "tests/cudasim/Launch.h"

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace llmc::cudasim {

/// The head of every module of these tests.
inline const std::string kHead = ".version 7.0\n.target sm_80\n.address_size 64\n";

class SimBench {
public:
  /// Loads the module; a failure is a test failure.
  explicit SimBench(const std::string &ptx);

  /// Device memory that holds these values.
  template <typename T> uint64_t upload(const std::vector<T> &values) {
    uint64_t address = memory.allocate(values.size() * sizeof(T), "buffer" + std::to_string(++numBuffers));
    if (values.empty())
      return address;
    std::memcpy(memory.pointer(address), values.data(), values.size() * sizeof(T));
    memory.find(address)->shadow.markInitialized(0, values.size() * sizeof(T));
    return address;
  }
  /// Device memory that holds nothing yet.
  uint64_t reserve(uint64_t bytes) { return memory.allocate(bytes, "buffer" + std::to_string(++numBuffers)); }
  template <typename T> std::vector<T> download(uint64_t address, size_t count) {
    std::vector<T> values(count);
    std::memcpy(values.data(), memory.pointer(address), count * sizeof(T));
    return values;
  }

  /// One argument of a launch.
  template <typename T> static std::vector<std::byte> argument(T value) {
    std::vector<std::byte> bytes(sizeof(T));
    std::memcpy(bytes.data(), &value, sizeof(T));
    return bytes;
  }

  /// Launches the module's only kernel on blocks of one dimension.
  std::optional<Fault> run(uint32_t blocks, uint32_t threads, const std::vector<std::vector<std::byte>> &arguments,
                           uint64_t seed = 1);
  /// The same for one of several kernels.
  std::optional<Fault> runNamed(const std::string &name, uint32_t blocks, uint32_t threads,
                                const std::vector<std::vector<std::byte>> &arguments, uint64_t seed = 1);
  /// All addresses as arguments.
  std::optional<Fault> run(uint32_t blocks, uint32_t threads, std::initializer_list<uint64_t> addresses,
                           uint64_t seed = 1);

  Memory memory;
  LaunchCounts counts;
  const LiveRanges *live = nullptr;
  uint64_t maxWarpInstructions = 1 << 20;
  const Kernel &kernel() const { return module.all().begin()->second; }

private:
  Module module;
  SequentialOrder order;
  int numBuffers = 0;
};

/// Runs instructions in one thread. Registers 0 to 2 of each kind hold the inputs: %r (32 bits), %f, %h (16 bits), %d
/// (64 bits), %x (f64), all from the same bits; %p0 to %p2 are the inputs' lowest bits. Gives the bits of `result`.
uint64_t runSnippet(const std::string &code, const std::string &result, const std::vector<uint64_t> &inputs);

/// One instruction with its inputs and the bits that it must give.
struct Snippet {
  const char *code;
  const char *result;
  std::vector<uint64_t> inputs;
  uint64_t expected;
};
/// Runs each; another result is a test failure.
void checkSnippets(const std::vector<Snippet> &snippets);

/// Bits of inputs and results.
inline uint64_t f(float value) { return std::bit_cast<uint32_t>(value); }
inline uint64_t d(double value) { return std::bit_cast<uint64_t>(value); }
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();

/// The error of loading a kernel with this body, or an empty string.
std::string loadError(const std::string &body);

} // namespace llmc::cudasim
