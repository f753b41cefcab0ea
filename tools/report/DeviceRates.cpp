// Figures of the makers' data sheets, without sparsity, at boost clocks. The CPU's row is what two threads measured.
#include "tools/report/DeviceRates.h"

#include "tools/report/MeasureCpu.h"

#include <array>
#include <fmt/ranges.h>

namespace llmc {

/// Of an H200: 790 TFLOP/s of bf16 and 4.3 TB/s can be sustained; the blocks' contractions reach 79 % of the first, the
/// head's 91 %, kernels 85 % of the second; cuDNN's attention as stated. Computed from published runs, not measured by
/// this project.
static constexpr ReachedRates kReachedH200 = {790e3 * 0.79, 790e3 * 0.91, 350e3, 300e3, 4300 * 0.85};

static const std::array<DeviceRates, 7> &deviceTable() {
  static const std::array<DeviceRates, 7> table = {{
      {"h200", "NVIDIA H200 SXM, 141 GB", 66'900, 494'700, 989'400, 4'800, false, kReachedH200},
      {"h100", "NVIDIA H100 SXM, 80 GB", 66'900, 494'700, 989'400, 3'350},
      {"a100", "NVIDIA A100 SXM, 80 GB", 19'500, 156'000, 312'000, 2'039},
      {"l40s", "NVIDIA L40S, 48 GB", 91'600, 183'200, 362'050, 864},
      {"a10", "NVIDIA A10, 24 GB", 31'200, 62'500, 125'000, 600},
      {"rtx4090", "NVIDIA GeForce RTX 4090, 24 GB", 82'600, 82'600, 165'200, 1'008},
      {"cpu", "two Zen 4 threads with AVX-512 and bf16", 234, 234, 468, 30},
  }};
  return table;
}

std::vector<std::string> deviceNames() {
  std::vector<std::string> names = {"this"};
  for (const DeviceRates &device : deviceTable())
    names.push_back(device.name);
  return names;
}

Result<DeviceRates> findDevice(const std::string &name, int threads) {
  if (name == "this")
    return measureCpu(threads);
  for (const DeviceRates &device : deviceTable())
    if (device.name == name)
      return device;
  return Error{fmt::format("no device '{}'; there are {}", name, fmt::join(deviceNames(), ", "))};
}

} // namespace llmc
