// The device keeps memory, the loaded code and the thread count; a prepared program is a list of ready kernels and the
// scratch memory they share one after the other.
#include "backend/cpu/CpuDevice.h"

#include "backend/cpu/CpuKernel.h"
#include "backend/cpu/CpuMemory.h"
#include "backend/cpu/Dnnl.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fmt/format.h>
#include <fstream>
#include <omp.h>

namespace llmc {

class CpuProgram : public PreparedProgram {
public:
  struct Step {
    std::string name; ///< "matmul 'h.0/attn/MatMul'": for errors
    std::unique_ptr<CpuKernel> kernel;
  };
  std::vector<Step> steps;
  CpuMemory scratch;
  CpuCollectives collectives;
  int threads = 1;

  Status run() override {
    omp_set_num_threads(threads); // for the library's own loops on this thread
    for (const Step &step : steps)
      if (Status status = step.kernel->run(scratch.data()); !status)
        return inContext(step.name, status.error());
    return {};
  }

  Status runProfiled(std::span<double> launchMs) override {
    assert(launchMs.size() == steps.size());
    omp_set_num_threads(threads);
    for (size_t i = 0; i < steps.size(); ++i) {
      auto start = std::chrono::steady_clock::now();
      if (Status status = steps[i].kernel->run(scratch.data()); !status)
        return inContext(steps[i].name, status.error());
      launchMs[i] = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
    }
    return {};
  }
};

class CpuDevice : public DeviceApi {
public:
  CpuDevice(int threads, std::optional<IsaLevel> level) : threads(std::max(1, threads)), level(level) {}

  std::string describe() const override { return level ? isaLevelName(*level) : "x86-64"; }

  Result<size_t> pickTarget(const Plan &plan) const override {
    std::optional<size_t> best;
    std::string has;
    for (size_t i = 0; i < plan.targets.size(); ++i) {
      const TargetPrograms &target = plan.targets[i];
      has += (i ? ", " : "") + target.target + " " + target.isa;
      std::optional<IsaLevel> isa = isaLevelOf(target.isa);
      if (target.target != "cpu" || !isa || !level || *isa > *level)
        continue;
      if (!best || *isa > *isaLevelOf(plan.targets[*best].isa))
        best = i;
    }
    if (best)
      return *best;
    return Error{"the plan has " + (has.empty() ? "no programs" : has) + "; this device is cpu " + describe()};
  }

  Result<std::byte *> allocate(uint64_t bytes, const char *what) override {
    uint64_t held = 0, most = CpuMemory::ofMachine();
    for (const CpuMemory &memory : memories)
      held += memory.bytes();
    if (held > most || bytes > most - held)
      return Error{fmt::format("cannot allocate {} bytes for {}: {} are in use, this machine has {} in all", bytes,
                               what, held, most)};
    Result<CpuMemory> made = CpuMemory::allocate(bytes, what);
    LLMC_RETURN_IF_ERROR(made);
    std::byte *data = made->data();
    if (data)
      memories.push_back(std::move(*made));
    return data;
  }

  void release(std::byte *memory) override {
    std::erase_if(memories, [&](const CpuMemory &owned) { return owned.data() == memory; });
  }

  Status copyIn(std::byte *deviceDst, std::span<const std::byte> hostSrc) override {
    if (!hostSrc.empty())
      std::memcpy(deviceDst, hostSrc.data(), hostSrc.size());
    return {};
  }
  Status copyOut(std::span<std::byte> hostDst, const std::byte *deviceSrc) override {
    if (!hostDst.empty())
      std::memcpy(hostDst.data(), deviceSrc, hostDst.size());
    return {};
  }
  Status zero(std::byte *deviceDst, uint64_t bytes) override {
    if (bytes)
      std::memset(deviceDst, 0, bytes);
    return {};
  }

  Status loadCode(const Plan &, const TargetPrograms &target, std::span<const std::byte> bytes) override {
    std::optional<IsaLevel> isa = isaLevelOf(target.isa);
    if (target.target != "cpu" || !isa || !level || *isa > *level)
      return Error{"cannot run " + target.target + " " + target.isa + " on cpu " + describe()};
    LLMC_RETURN_IF_ERROR(capDnnl(*isa));
    Result<CpuMemory> loaded = CpuMemory::executable(bytes);
    LLMC_RETURN_IF_ERROR(loaded);
    code = std::move(*loaded);
    codeBytes = bytes.size();
    entries = target.entries;
    loadedIsa = *isa;
    return {};
  }

  Result<std::unique_ptr<PreparedProgram>> prepare(const Program &program, const DeviceSpaces &spaces,
                                                   CommApi *comm) override {
    if (!loadedIsa)
      return Error{"no code is loaded"};
    omp_set_num_threads(threads);
    auto prepared = std::make_unique<CpuProgram>();
    prepared->collectives.comm = comm;
    prepared->collectives.tickets.resize(program.launches.size());
    CpuTarget target{threads, *loadedIsa, code.data(), codeBytes, entries, &prepared->collectives};
    prepared->threads = threads;
    uint64_t scratchBytes = 0;
    for (const Launch &launch : program.launches) {
      std::string name = std::string(kernelInfo(launch.kind).name) + " '" + launch.name + "'";
      auto kernel = kernelFactory(launch.kind)(KernelArgs(launch, spaces), target);
      if (!kernel.ok())
        return inContext(name, kernel.error());
      scratchBytes = std::max(scratchBytes, (*kernel)->scratchBytes());
      prepared->steps.push_back({std::move(name), std::move(*kernel)});
    }
    Result<CpuMemory> scratch = CpuMemory::allocate(scratchBytes, "the kernels' scratch");
    LLMC_RETURN_IF_ERROR(scratch);
    prepared->scratch = std::move(*scratch);
    return std::unique_ptr<PreparedProgram>(std::move(prepared));
  }

  uint64_t peakBytes() const override {
    std::ifstream status("/proc/self/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("VmHWM:"))
        return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
    return 0;
  }

private:
  int threads;
  std::optional<IsaLevel> level; ///< the most this device may use; none on a CPU older than x86-64-v3
  std::vector<CpuMemory> memories;
  CpuMemory code;
  uint64_t codeBytes = 0;
  std::vector<CodeEntry> entries;
  std::optional<IsaLevel> loadedIsa;
};

std::unique_ptr<DeviceApi> makeCpuDevice(int threads) { return makeCappedCpuDevice({.threads = threads}); }

std::unique_ptr<DeviceApi> makeCappedCpuDevice(const CpuDeviceOptions &options) {
  std::optional<IsaLevel> level = detectIsaLevel();
  if (level)
    level = std::min(*level, options.maxIsa);
  return std::make_unique<CpuDevice>(options.threads, level);
}

} // namespace llmc
