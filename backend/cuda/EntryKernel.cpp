// Launches of the plan's own kernels, and zero fill. A kernel that does not take what the launch gives is refused when
// the program is prepared: the driver would read past the end of the arguments.
#include "backend/cuda/CudaKernel.h"

#include <fmt/format.h>

namespace llmc::cuda {

namespace {

class EntryKernel : public CudaKernel {
public:
  EntryKernel(const Context &context, CUfunction function, const CodeEntry &entry, std::vector<CUdeviceptr> arguments)
      : context(context), function(function), arguments(std::move(arguments)) {
    config.gridDimX = entry.gridX;
    config.blockDimX = entry.blockX;
    config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
    config.sharedMemBytes = entry.sharedBytes;
    for (CUdeviceptr &argument : this->arguments)
      places.push_back(&argument);
  }

  Status submit(CUstream stream) override {
    config.hStream = stream;
    return context.check(context.driver().cuLaunchKernelEx(&config, function, places.data(), nullptr), "launching");
  }

private:
  const Context &context;
  CUfunction function;
  std::vector<CUdeviceptr> arguments;
  std::vector<void *> places; ///< of the arguments, as the driver wants them
  CUlaunchConfig config{};
};

class ZeroKernel : public CudaKernel {
public:
  ZeroKernel(const Context &context, CUdeviceptr dst, uint64_t bytes) : context(context), dst(dst), bytes(bytes) {}
  Status submit(CUstream stream) override {
    return bytes == 0 ? Status() : context.check(context.driver().cuMemsetD8Async(dst, 0, bytes, stream), "filling");
  }

private:
  const Context &context;
  CUdeviceptr dst;
  uint64_t bytes;
};

} // namespace

/// Fails unless the kernel has `count` parameters of eight bytes.
static Status checkParameters(const Context &context, CUfunction function, size_t count) {
  const Driver &driver = context.driver();
  size_t offset = 0, bytes = 0;
  for (size_t i = 0; i < count; ++i)
    if (driver.cuFuncGetParamInfo(function, i, &offset, &bytes) != CUDA_SUCCESS || bytes != sizeof(CUdeviceptr))
      return Error{
          fmt::format("its kernel does not take {} addresses: parameter {} is missing or of another size", count, i)};
  if (driver.cuFuncGetParamInfo(function, count, &offset, &bytes) == CUDA_SUCCESS)
    return Error{fmt::format("its kernel takes more than the {} addresses of this launch", count)};
  return {};
}

/// Fails where this device cannot hold a block of the kernel.
static Status checkBlock(const Context &context, CUfunction function, const CodeEntry &entry) {
  const Driver &driver = context.driver();
  int mostThreads = 0;
  LLMC_RETURN_IF_ERROR(
      context.check(driver.cuFuncGetAttribute(&mostThreads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function),
                    "asking for the kernel's block"));
  if (entry.blockX > static_cast<uint32_t>(mostThreads))
    return Error{fmt::format("blocks of {} threads, the kernel can have {} on this device", entry.blockX, mostThreads)};
  constexpr uint32_t kAlwaysAllowed = 48 * 1024;
  if (entry.sharedBytes <= kAlwaysAllowed)
    return {};
  Result<int> most = context.attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  LLMC_RETURN_IF_ERROR(most);
  if (entry.sharedBytes > static_cast<uint32_t>(*most))
    return Error{fmt::format("blocks with {} bytes of shared memory, this device has {}", entry.sharedBytes, *most)};
  return context.check(driver.cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                 static_cast<int>(entry.sharedBytes)),
                       "asking for shared memory");
}

MadeKernel makeEntryKernel(const Context &context, CUmodule module, const CodeEntry &entry, const Launch &launch,
                           const DeviceSpaces &spaces, CUdeviceptr status) {
  CUfunction function = nullptr;
  CUresult found = context.driver().cuModuleGetFunction(&function, module, entry.symbol.c_str());
  if (found == CUDA_ERROR_NOT_FOUND)
    return Error{"the plan's PTX has no kernel '" + entry.symbol + "'"};
  LLMC_RETURN_IF_ERROR(context.check(found, "finding the kernel '" + entry.symbol + "'"));
  std::vector<CUdeviceptr> arguments;
  for (const BufferRef &operand : launch.operands)
    if (operand.space != Space::none)
      arguments.push_back(addressOf(operand, spaces));
  if (status)
    arguments.push_back(status);
  LLMC_RETURN_IF_ERROR(checkParameters(context, function, arguments.size()));
  LLMC_RETURN_IF_ERROR(checkBlock(context, function, entry));
  return std::unique_ptr<CudaKernel>(new EntryKernel(context, function, entry, std::move(arguments)));
}

MadeKernel makeZeroKernel(const Context &context, const Launch &launch, const DeviceSpaces &spaces) {
  return std::unique_ptr<CudaKernel>(
      new ZeroKernel(context, addressOf(launch.operands[0], spaces), launch.operands[0].bytes));
}

} // namespace llmc::cuda
