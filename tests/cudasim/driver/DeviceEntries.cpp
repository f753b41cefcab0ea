// Start, errors, the device and its context.
#include "tests/cudasim/driver/Simulator.h"

#include <cstring>

using namespace llmc::cudasim;

namespace {

struct ErrorRow {
  CUresult code;
  const char *name;
  const char *words;
};
constexpr ErrorRow kErrors[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NOT_INITIALIZED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, "CUDA_ERROR_NO_BINARY_FOR_GPU",
     "no kernel image is available for execution on the device"},
    {CUDA_ERROR_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {CUDA_ERROR_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_ERROR_NOT_SUPPORTED, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_ERROR_STREAM_CAPTURE_UNJOINED, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "unjoined work in the capture"},
    {CUDA_ERROR_STREAM_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not begun in this stream"},
    {CUDA_ERROR_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE", "the operation cannot be performed in the present state"},
};

const ErrorRow *rowOf(CUresult code) {
  for (const ErrorRow &row : kErrors)
    if (row.code == code)
      return &row;
  return nullptr;
}

int attributeOf(const Simulator &sim, CUdevice_attribute attribute) {
  switch (attribute) {
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
    return sim.config.computeCapability / 10;
  case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
    return sim.config.computeCapability % 10;
  case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
    return 108;
  case CU_DEVICE_ATTRIBUTE_WARP_SIZE:
    return 32;
  case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    return 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
    return 48 * 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    return 163 * 1024;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X:
    return 0x7fffffff;
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
  case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z:
    return 65535;
  case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
  case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED:
    return 1;
  default:
    return -1;
  }
}

} // namespace

extern "C" {

CUresult cuInit(unsigned int flags) {
  return entry(Needs::nothing, [&](Simulator &sim) {
    if (flags != 0)
      return CUDA_ERROR_INVALID_VALUE;
    if (sim.config.numDevices == 0)
      return CUDA_ERROR_NO_DEVICE;
    sim.isInitialized = true;
    return CUDA_SUCCESS;
  });
}

CUresult cuDriverGetVersion(int *version) {
  return entry(Needs::nothing, [&](Simulator &sim) { return *version = sim.config.driverVersion, CUDA_SUCCESS; });
}

CUresult cuGetErrorName(CUresult error, const char **name) {
  const ErrorRow *row = rowOf(error);
  *name = row ? row->name : nullptr;
  return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/// Where a fault ended everything the words say which: whoever prints the error shows the kernel and the line.
CUresult cuGetErrorString(CUresult error, const char **words) {
  std::lock_guard guard(simulatorLock());
  const ErrorRow *row = rowOf(error);
  bool isFault = error != CUDA_SUCCESS && error == simulator()->sticky;
  *words = isFault ? simulator()->faultText.c_str() : row ? row->words : nullptr;
  return row ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *count) {
  return entry(Needs::init, [&](Simulator &sim) { return *count = sim.config.numDevices, CUDA_SUCCESS; });
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  return entry(Needs::init, [&](Simulator &sim) {
    *device = ordinal;
    return ordinal >= 0 && ordinal < sim.config.numDevices ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  return entry(Needs::init, [&](Simulator &) {
    std::strncpy(name, "Simulated GPU", length);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  return entry(Needs::init, [&](Simulator &sim) {
    *value = attributeOf(sim, attribute);
    return *value >= 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device) {
  return entry(Needs::init, [&](Simulator &sim) { return *bytes = sim.config.memoryBytes, CUDA_SUCCESS; });
}

CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
  return entry(Needs::init, [&](Simulator &) {
    std::memset(uuid, 0x51 + device, sizeof *uuid);
    return CUDA_SUCCESS;
  });
}

CUresult cuDeviceGetPCIBusId(char *id, int length, CUdevice device) {
  return entry(Needs::init, [&](Simulator &) {
    char text[] = "0000:51:00.0";
    text[6] = static_cast<char>('1' + device);
    std::strncpy(id, text, length);
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  return entry(Needs::init, [&](Simulator &sim) {
    *context = primaryContext();
    ++sim.contextUsers;
    return CUDA_SUCCESS;
  });
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  return entry(Needs::init, [&](Simulator &sim) {
    if (sim.contextUsers == 0)
      return CUDA_ERROR_INVALID_CONTEXT;
    --sim.contextUsers;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxSetCurrent(CUcontext context) {
  return entry(Needs::init, [&](Simulator &) {
    if (context && context != primaryContext())
      return CUDA_ERROR_INVALID_CONTEXT;
    currentContext() = context;
    return CUDA_SUCCESS;
  });
}

CUresult cuCtxGetCurrent(CUcontext *context) {
  return entry(Needs::init, [&](Simulator &) { return *context = currentContext(), CUDA_SUCCESS; });
}

CUresult cuCtxSynchronize() {
  return entry(Needs::context, [&](Simulator &sim) {
    return sim.anyCapture() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim.finishAll();
  });
}

CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return entry(Needs::context, [&](Simulator &) { return *least = 0, *greatest = -5, CUDA_SUCCESS; });
}

} // extern "C"
