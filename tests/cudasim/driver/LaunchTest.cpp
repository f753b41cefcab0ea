// Start-up, modules and launches on the simulated driver: what works, and what is refused as the driver does.
#include "tests/cudasim/driver/DriverBench.h"

#include <cstring>

namespace llmc::cudasim {
namespace {

using testing::Each;
using testing::HasSubstr;

TEST(CudaSimDriver, startsAsTheDriverDoes) {
  CudasimConfig config = kPlainConfig;
  DriverBench bench;
  auto reset = bench.hook<void (*)(const CudasimConfig *)>("cudasimReset");
  reset(&config);
  int count = 0;
  EXPECT_EQ(bench.driver->cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  bench.ok(bench.driver->cuInit(0));
  bench.ok(bench.driver->cuDeviceGetCount(&count));
  EXPECT_EQ(count, 1);
  CUdevice device = 0;
  EXPECT_EQ(bench.driver->cuDeviceGet(&device, 1), CUDA_ERROR_INVALID_DEVICE);
  bench.ok(bench.driver->cuDeviceGet(&device, 0));
  int value = 0;
  bench.ok(bench.driver->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
  EXPECT_EQ(value, 8);
  EXPECT_EQ(bench.driver->cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_TCC_DRIVER, device),
            CUDA_ERROR_INVALID_VALUE);
  char name[64] = "";
  bench.ok(bench.driver->cuDeviceGetName(name, sizeof name, device));
  EXPECT_STREQ(name, "Simulated GPU");
  size_t bytes = 0;
  EXPECT_EQ(bench.driver->cuMemGetInfo(&bytes, &bytes), CUDA_ERROR_INVALID_CONTEXT);
  EXPECT_EQ(bench.driver->cuDevicePrimaryCtxRelease(device), CUDA_ERROR_INVALID_CONTEXT);
  config.numDevices = 0;
  reset(&config);
  EXPECT_EQ(bench.driver->cuInit(0), CUDA_ERROR_NO_DEVICE);
}

TEST(CudaSimDriver, explainsErrors) {
  DriverBench bench;
  EXPECT_THAT(bench.driver->check(CUDA_ERROR_OUT_OF_MEMORY, "arena").error().message,
              HasSubstr("arena: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory"));
  EXPECT_THAT(bench.driver->check(static_cast<CUresult>(12345), "arena").error().message,
              HasSubstr("unknown error (12345): the driver has no words for it"));
  EXPECT_TRUE(bench.driver->check(CUDA_SUCCESS, "arena"));
}

TEST(CudaSimDriver, refusesModulesWithTheReason) {
  DriverBench bench;
  CUmodule module = nullptr;
  char log[256] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log, reinterpret_cast<void *>(sizeof log)};
  const char *text = ".version 7.0\n.target sm_80\n.entry k() {\n  frobnicate;\n  ret;\n}\n";
  EXPECT_EQ(bench.driver->cuModuleLoadDataEx(&module, text, 2, options, values), CUDA_ERROR_INVALID_PTX);
  EXPECT_STREQ(log, "PTX line 4: frobnicate: unknown instruction");
  EXPECT_EQ(bench.driver->cuModuleLoadDataEx(&module, ".version 7.8\n.target sm_90\n", 0, nullptr, nullptr),
            CUDA_ERROR_NO_BINARY_FOR_GPU);
  CUfunction function = nullptr;
  EXPECT_EQ(bench.driver->cuModuleGetFunction(&function, bench.module, "nothing"), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(bench.driver->cuModuleGetFunction(&function, nullptr, "fill"), CUDA_ERROR_INVALID_HANDLE);
}

TEST(CudaSimDriver, knowsFunctionsAndVariables) {
  DriverBench bench;
  size_t offset = 0, bytes = 0;
  CUfunction fill = bench.function("fill");
  bench.ok(bench.driver->cuFuncGetParamInfo(fill, 1, &offset, &bytes));
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(bench.driver->cuFuncGetParamInfo(fill, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr table = 0;
  bench.ok(bench.driver->cuModuleGetGlobal(&table, &bytes, bench.module, "table"));
  EXPECT_EQ(bytes, 8u);
  uint32_t values[2] = {};
  bench.ok(bench.driver->cuMemcpyDtoH(values, table, 8));
  EXPECT_EQ(values[1], 8u);
  EXPECT_EQ(bench.driver->cuModuleGetGlobal(&table, &bytes, bench.module, "nothing"), CUDA_ERROR_NOT_FOUND);
  bench.ok(bench.driver->cuModuleUnload(bench.module));
  EXPECT_EQ(bench.driver->cuModuleUnload(bench.module), CUDA_ERROR_INVALID_HANDLE);
}

TEST(CudaSimDriver, dynamicSharedMemoryMustBeAllowed) {
  DriverBench bench;
  CUdeviceptr x = bench.allocate();
  CUfunction shares = bench.function("shares");
  bench.ok(bench.launch(bench.one, shares, {&x}, 256));
  EXPECT_EQ(bench.download(x)[kCount - 1], kCount - 1);
  EXPECT_EQ(bench.launch(bench.one, shares, {&x}, 100 * 1024), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(bench.driver->cuFuncSetAttribute(shares, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 200 * 1024),
            CUDA_ERROR_INVALID_VALUE);
  bench.ok(bench.driver->cuFuncSetAttribute(shares, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 100 * 1024));
  bench.ok(bench.launch(bench.one, shares, {&x}, 100 * 1024));
  bench.ok(bench.driver->cuCtxSynchronize());
  bench.ok(bench.launch(bench.one, shares, {&x}, 252)); // one thread's word too few
  EXPECT_EQ(bench.driver->cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(CudaSimDriver, argumentsAsOneBufferMustHaveItsSize) {
  DriverBench bench;
  struct {
    CUdeviceptr dst;
    uint32_t value;
  } arguments{bench.allocate(), 6};
  size_t bytes = 12;
  void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                   CU_LAUNCH_PARAM_END};
  CUlaunchConfig config{};
  config.gridDimX = kCount / 64;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = 64;
  config.hStream = bench.one;
  bench.ok(bench.driver->cuLaunchKernelEx(&config, bench.function("fill"), nullptr, extra));
  EXPECT_THAT(bench.download(arguments.dst), Each(6u));
  bytes = 16;
  EXPECT_EQ(bench.driver->cuLaunchKernelEx(&config, bench.function("fill"), nullptr, extra), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(bench.driver->cuLaunchKernelEx(&config, bench.function("fill"), nullptr, nullptr),
            CUDA_ERROR_INVALID_VALUE);
  bytes = 12;
  config.blockDimX = 2048;
  EXPECT_EQ(bench.driver->cuLaunchKernelEx(&config, bench.function("fill"), nullptr, extra), CUDA_ERROR_INVALID_VALUE);
}

} // namespace
} // namespace llmc::cudasim
