// A driver with no device that takes code all the same, so that cuDNN compiles its plans where there is no GPU. It has
// what cuDNN looks for, by these names; arguments do not matter, but for the handles that loading gives.
#define REFUSES(name)                                                                                                  \
  extern "C" int name() { return 34; /* CUDA_ERROR_STUB_LIBRARY */ }
#define AGREES(name)                                                                                                   \
  extern "C" int name() { return 0; }
#define GIVES_A_HANDLE(name)                                                                                           \
  extern "C" int name(void **handle) { return *handle = handle, 0; }
#define GIVES_WORDS(name)                                                                                              \
  extern "C" int name(int, const char **words) { return *words = "no driver", 0; }

REFUSES(cuCtxGetCurrent)
REFUSES(cuCtxGetDevice)
REFUSES(cuCtxGetLimit)
REFUSES(cuCtxPopCurrent)
REFUSES(cuCtxPushCurrent)
REFUSES(cuDeviceGet)
REFUSES(cuDeviceGetAttribute)
REFUSES(cuDeviceGetCount)
REFUSES(cuDevicePrimaryCtxRelease)
REFUSES(cuDevicePrimaryCtxReset)
REFUSES(cuDevicePrimaryCtxRetain)
REFUSES(cuDriverGetVersion)
REFUSES(cuInit)
REFUSES(cuLaunchCooperativeKernel)
REFUSES(cuLaunchKernel)
REFUSES(cuLaunchKernelEx)
REFUSES(cuLinkAddData)
REFUSES(cuLinkAddData_v2)
REFUSES(cuLinkAddFile_v2)
REFUSES(cuLinkComplete)
REFUSES(cuLinkCreate)
REFUSES(cuLinkCreate_v2)
REFUSES(cuLinkDestroy)
REFUSES(cuMemcpyDtoH_v2)
REFUSES(cuModuleGetGlobal_v2)
REFUSES(cuOccupancyMaxActiveBlocksPerMultiprocessor)
REFUSES(cuOccupancyMaxPotentialClusterSize)
REFUSES(cuStreamGetCtx)
REFUSES(cuStreamSynchronize)
REFUSES(cuTensorMapEncodeTiled)
AGREES(cuFuncGetAttribute)
AGREES(cuFuncSetAttribute)
AGREES(cuKernelGetAttribute)
AGREES(cuKernelSetAttribute)
AGREES(cuLibraryUnload)
AGREES(cuModuleUnload)
GIVES_A_HANDLE(cuLibraryLoadData)
GIVES_A_HANDLE(cuLibraryGetKernel)
GIVES_A_HANDLE(cuLibraryLoadFromFile)
GIVES_A_HANDLE(cuModuleLoadData)
GIVES_A_HANDLE(cuModuleLoadDataEx)
GIVES_A_HANDLE(cuModuleGetFunction)
GIVES_A_HANDLE(cuModuleLoadFatBinary)
GIVES_WORDS(cuGetErrorName)
GIVES_WORDS(cuGetErrorString)
