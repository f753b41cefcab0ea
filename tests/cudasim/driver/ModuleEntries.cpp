// Modules of PTX, functions, launches.
#include "tests/cudasim/driver/Simulator.h"

#include <cstring>

using namespace llmc::cudasim;

namespace {

/// Where the caller wants to read why its PTX was refused.
struct ErrorLog {
  char *text = nullptr;
  size_t bytes = 0;
};

ErrorLog logOf(unsigned int count, const CUjit_option *options, void *const *values) {
  ErrorLog log;
  for (unsigned int i = 0; i < count; ++i) {
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
      log.text = static_cast<char *>(values[i]);
    if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      log.bytes = static_cast<unsigned int>(reinterpret_cast<uintptr_t>(values[i]));
  }
  return log;
}

/// The number in sm_80 or sm_90a.
int architectureOf(const std::string &target) { return target.size() > 3 ? std::atoi(target.c_str() + 3) : 0; }

SimFunction *functionOf(Simulator &sim, CUfunction handle) {
  for (const auto &[module, owned] : sim.modules)
    for (auto &[name, function] : module->functions)
      if (reinterpret_cast<CUfunction>(&function) == handle)
        return &function;
  return nullptr;
}

/// The launch's arguments in the layout of the parameters, from either of the two ways to give them.
std::optional<std::vector<std::byte>> argumentsOf(const Kernel &kernel, void **parameters, void **extra) {
  std::vector<std::byte> packed(kernel.parameterBytes);
  if (extra) {
    const void *buffer = nullptr;
    size_t bytes = 0;
    for (void **at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
      if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER)
        buffer = at[1];
      else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE)
        bytes = *static_cast<size_t *>(at[1]);
    }
    if (!buffer || bytes != packed.size())
      return std::nullopt;
    std::memcpy(packed.data(), buffer, bytes);
    return packed;
  }
  if (!parameters && !kernel.parameters.empty())
    return std::nullopt;
  for (size_t i = 0; i < kernel.parameters.size(); ++i) {
    if (!parameters[i])
      return std::nullopt;
    std::memcpy(packed.data() + kernel.parameters[i].offset, parameters[i], kernel.parameters[i].bytes);
  }
  return packed;
}

Submit launchOf(const Kernel *kernel, const LaunchShape &shape, std::vector<std::byte> arguments) {
  return [=](Simulator &sim) -> Work {
    uint64_t number = sim.numSubmitted++, seed = sim.random();
    return [=, &sim](const LaunchOrder &order) {
      Simulator::Liveness live = sim.livenessOf(kernel->name.c_str(), number, arguments);
      LaunchCounts counts;
      std::optional<Fault> fault =
          launch(*kernel, shape, arguments, sim.memory, {.seed = seed, .order = &order, .live = live.get()}, &counts);
      ++sim.counts.numLaunches;
      sim.counts.laneInstructions += counts.laneInstructions;
      return fault;
    };
  };
}

} // namespace

extern "C" {

CUresult cuModuleLoadDataEx(CUmodule *handle, const void *image, unsigned int numOptions, CUjit_option *options,
                            void **values) {
  return entry(Needs::context, [&](Simulator &sim) {
    llmc::Result<Module> loaded = Module::load(static_cast<const char *>(image), sim.memory);
    if (!loaded) {
      ErrorLog log = logOf(numOptions, options, values);
      if (log.text && log.bytes > 0)
        log.text[loaded.error().message.copy(log.text, log.bytes - 1)] = '\0';
      return CUDA_ERROR_INVALID_PTX;
    }
    if (architectureOf(loaded->targetName()) > sim.config.computeCapability)
      return CUDA_ERROR_NO_BINARY_FOR_GPU;
    auto module = std::make_unique<SimModule>();
    module->module = std::move(*loaded);
    for (const auto &[name, kernel] : module->module.all())
      module->functions[name] = {.kernel = &kernel, .module = module.get()};
    *handle = reinterpret_cast<CUmodule>(sim.modules.add(std::move(module)));
    return CUDA_SUCCESS;
  });
}

/// Its kernels must have run: pending launches would run code that is gone.
CUresult cuModuleUnload(CUmodule handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    if (CUresult result = sim.finishAll(); result != CUDA_SUCCESS)
      return result;
    return sim.modules.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuModuleGetFunction(CUfunction *handle, CUmodule moduleHandle, const char *name) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimModule *module = sim.modules.find(moduleHandle);
    if (!module)
      return CUDA_ERROR_INVALID_HANDLE;
    auto found = module->functions.find(name);
    if (found == module->functions.end())
      return CUDA_ERROR_NOT_FOUND;
    *handle = reinterpret_cast<CUfunction>(&found->second);
    return CUDA_SUCCESS;
  });
}

CUresult cuModuleGetGlobal(CUdeviceptr *address, size_t *bytes, CUmodule moduleHandle, const char *name) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimModule *module = sim.modules.find(moduleHandle);
    if (!module)
      return CUDA_ERROR_INVALID_HANDLE;
    auto [base, size] = module->module.variable(name);
    if (address)
      *address = base;
    if (bytes)
      *bytes = size;
    return base != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
  });
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimFunction *function = functionOf(sim, handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    switch (attribute) {
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->kernel->staticSharedBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(function->kernel->localBytes);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = function->kernel->maxThreads == 0 ? 1024 : static_cast<int>(function->kernel->maxThreads);
      return CUDA_SUCCESS;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = static_cast<int>(function->maxDynamicSharedBytes);
      return CUDA_SUCCESS;
    default:
      return CUDA_ERROR_NOT_SUPPORTED;
    }
  });
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimFunction *function = functionOf(sim, handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
      return CUDA_ERROR_NOT_SUPPORTED;
    if (value < 0 || value + function->kernel->staticSharedBytes > 163 * 1024)
      return CUDA_ERROR_INVALID_VALUE;
    function->maxDynamicSharedBytes = static_cast<uint32_t>(value);
    return CUDA_SUCCESS;
  });
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimFunction *function = functionOf(sim, handle);
    if (!function)
      return CUDA_ERROR_INVALID_HANDLE;
    if (index >= function->kernel->parameters.size())
      return CUDA_ERROR_INVALID_VALUE;
    const Parameter &parameter = function->kernel->parameters[index];
    *offset = parameter.offset;
    if (bytes)
      *bytes = parameter.bytes;
    return CUDA_SUCCESS;
  });
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction handle, void **parameters, void **extra) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimFunction *function = functionOf(sim, handle);
    SimStream *stream = sim.streamOf(config->hStream);
    if (!function || !stream)
      return CUDA_ERROR_INVALID_HANDLE;
    for (unsigned int i = 0; i < config->numAttrs; ++i)
      if (config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_PRIORITY && config->attrs[i].id != CU_LAUNCH_ATTRIBUTE_IGNORE)
        return CUDA_ERROR_NOT_SUPPORTED;
    const Kernel &kernel = *function->kernel;
    uint32_t mostShared = std::max<uint32_t>(48 * 1024, kernel.staticSharedBytes + function->maxDynamicSharedBytes);
    LaunchShape shape{.grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                      .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                      .dynamicSharedBytes = config->sharedMemBytes,
                      .maxSharedBytes = mostShared};
    std::optional<std::vector<std::byte>> arguments = argumentsOf(kernel, parameters, extra);
    if (!arguments || !launchProblem(kernel, shape).empty())
      return CUDA_ERROR_INVALID_VALUE;
    sim.enqueue(*stream, kernel.name, launchOf(&kernel, shape, std::move(*arguments)));
    return CUDA_SUCCESS;
  });
}

} // extern "C"
