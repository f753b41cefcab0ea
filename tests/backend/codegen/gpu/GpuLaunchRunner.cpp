// Launches on the simulated GPU: the launch's kernel is emitted, compiled to PTX and interpreted, and every access is
// checked. The number of threads is the seed of the schedule: whatever it is, results must be the same.
#include "backend/codegen/GpuModule.h"
#include "backend/codegen/LowerModule.h"
#include "backend/codegen/gpu/GpuKernels.h"
#include "tests/backend/cpu/LaunchRunner.h"
#include "tests/cudasim/Launch.h"

#include <gtest/gtest.h>

namespace llmc::test {

/// Kernels by what they are made from: tests launch the same one again and again.
static Result<std::pair<std::string, GpuKernel *>> kernelOf(const Launch &launch) {
  struct Compiled {
    std::string ptx;
    GpuKernel kernel;
  };
  static mlir::MLIRContext context;
  static std::map<std::string, Compiled> cache;
  loadKernelDialects(context);
  std::string key = kernelInfo(launch.kind).name;
  for (int64_t value : launch.ints)
    key += " " + std::to_string(value);
  for (double value : launch.floats)
    key += " " + std::to_string(value);
  for (const BufferRef &operand : launch.operands)
    key += operand.space == Space::none ? " -" : " +";
  auto found = cache.find(key);
  if (found == cache.end()) {
    llvm::Expected<GpuKernel> kernel = gpuKernelEmitter(launch.kind)(launch, "kernel", context);
    if (!kernel)
      return Error{llvm::toString(kernel.takeError())};
    llvm::Expected<std::string> ptx = compileToPtx(*kernel->module, gpuIsas()[0]);
    if (!ptx)
      return Error{llvm::toString(ptx.takeError())};
    found = cache.emplace(key, Compiled{*ptx, std::move(*kernel)}).first;
  }
  return std::pair(found->second.ptx, &found->second.kernel);
}

Status LaunchRunner::run() {
  for (const auto &[name, bytes] : initial)
    launch.operands[indexIn(kernelInfo(launch.kind).operands, name)] = {Space::arena, 0, bytes.size()};
  auto compiled = kernelOf(launch);
  LLMC_RETURN_IF_ERROR(compiled);
  cudasim::Memory memory;
  Result<cudasim::Module> module = cudasim::Module::load(compiled->first, memory);
  LLMC_RETURN_IF_ERROR(module);

  std::map<size_t, std::pair<std::string, uint64_t>> addresses; // by the operands' order
  for (const auto &[name, bytes] : initial) {
    uint64_t address = memory.allocate(bytes.size(), name);
    std::copy(bytes.begin(), bytes.end(), memory.pointer(address));
    memory.find(address)->shadow.markInitialized(0, bytes.size());
    addresses[indexIn(kernelInfo(launch.kind).operands, name)] = {name, address};
  }
  uint64_t status = memory.allocate(sizeof(uint64_t), "status");
  std::fill_n(memory.pointer(status), sizeof(uint64_t), std::byte{0});
  memory.find(status)->shadow.markInitialized(0, sizeof(uint64_t));

  std::vector<std::vector<std::byte>> arguments;
  auto pass = [&](uint64_t address) {
    auto *bytes = reinterpret_cast<const std::byte *>(&address);
    arguments.emplace_back(bytes, bytes + sizeof(address));
  };
  for (const auto &[place, operand] : addresses)
    pass(operand.second);
  if (takesStatus(launch.kind))
    pass(status);

  const GpuKernel &kernel = *compiled->second;
  const cudasim::Kernel &entry = *module->find("kernel");
  Result<std::vector<std::byte>> packed = entry.packArguments(arguments);
  LLMC_RETURN_IF_ERROR(packed);
  cudasim::LaunchShape shape{.grid = {kernel.gridX, 1, 1},
                             .block = {kernel.blockX, 1, 1},
                             .dynamicSharedBytes = kernel.sharedBytes,
                             .maxSharedBytes = std::max<uint32_t>(48 * 1024, kernel.sharedBytes)};
  if (std::string problem = cudasim::launchProblem(entry, shape); !problem.empty())
    return Error{problem};
  cudasim::SequentialOrder order;
  if (auto fault = cudasim::launch(entry, shape, *packed, memory, {.seed = uint64_t(threads), .order = &order}))
    return Error{fault->describe()};
  for (const auto &[place, operand] : addresses) {
    std::vector<std::byte> &bytes = initial[operand.first];
    std::copy_n(memory.pointer(operand.second), bytes.size(), bytes.begin());
  }
  uint64_t word = 0;
  std::memcpy(&word, memory.pointer(status), sizeof(word));
  if (word != 0)
    return Error{"a bad id at position " + std::to_string(word - 1)};
  return {};
}

std::span<const std::byte> LaunchRunner::content(const std::string &name) const { return initial.at(name); }

} // namespace llmc::test
