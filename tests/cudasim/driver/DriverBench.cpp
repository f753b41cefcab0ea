// The kernels and the calls around them.
#include "tests/cudasim/driver/DriverBench.h"

#include <stdexcept>

namespace llmc::cudasim {

namespace {

constexpr const char *kKernels = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry fill(.param .u64 dst, .param .u32 value) {
  .reg .b32 %r<5>; .reg .b64 %d<3>;
  ld.param.u64 %d0, [dst]; ld.param.u32 %r0, [value];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 64, %r2;
  mul.wide.u32 %d1, %r3, 4; add.s64 %d0, %d0, %d1; st.global.u32 [%d0], %r0;
  ret;
}
.visible .entry add(.param .u64 dst, .param .u64 a, .param .u64 b) {
  .reg .b32 %r<8>; .reg .b64 %d<8>;
  ld.param.u64 %d0, [dst]; ld.param.u64 %d1, [a]; ld.param.u64 %d2, [b];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 64, %r2;
  mul.wide.u32 %d3, %r3, 4; add.s64 %d0, %d0, %d3; add.s64 %d1, %d1, %d3; add.s64 %d2, %d2, %d3;
  ld.global.u32 %r4, [%d1]; ld.global.u32 %r5, [%d2]; add.u32 %r6, %r4, %r5; st.global.u32 [%d0], %r6;
  ret;
}
.global .align 4 .u32 table[2] = {7, 8};
.extern .shared .align 16 .b8 dynamic[];
.visible .entry shares(.param .u64 dst) {
  .reg .b32 %r<8>; .reg .b64 %d<8>;
  ld.param.u64 %d0, [dst];
  mov.u32 %r1, %ctaid.x; mov.u32 %r2, %tid.x; mad.lo.u32 %r3, %r1, 64, %r2; mul.wide.u32 %d1, %r3, 4; add.s64 %d0, %d0, %d1;
  mul.wide.u32 %d2, %r2, 4; mov.u64 %d3, dynamic; add.s64 %d3, %d3, %d2;
  st.shared.u32 [%d3], %r3; ld.shared.u32 %r4, [%d3]; st.global.u32 [%d0], %r4;
  ret;
}
)";

} // namespace

DriverBench::DriverBench(const CudasimConfig &config) {
  Result<std::unique_ptr<cuda::Driver>> loaded = cuda::Driver::load(LLMC_CUDASIM_DRIVER);
  if (!loaded)
    throw std::runtime_error(loaded.error().message); // GoogleTest reports it as this test's failure
  driver = std::move(*loaded);
  hook<void (*)(const CudasimConfig *)>("cudasimReset")(&config);
  CUcontext context = nullptr;
  ok(driver->cuInit(0));
  ok(driver->cuDevicePrimaryCtxRetain(&context, 0));
  ok(driver->cuCtxSetCurrent(context));
  ok(driver->cuModuleLoadDataEx(&module, kKernels, 0, nullptr, nullptr));
  one = newStream();
  two = newStream();
}

DriverBench::~DriverBench() { hook<void (*)(const CudasimConfig *)>("cudasimReset")(&kPlainConfig); }

uint32_t *DriverBench::pinned() const {
  void *memory = nullptr;
  ok(driver->cuMemHostAlloc(&memory, kBytes, 0));
  return static_cast<uint32_t *>(memory);
}

CUstream DriverBench::newStream(unsigned int flags) const {
  CUstream stream = nullptr;
  ok(driver->cuStreamCreateWithPriority(&stream, flags, 0));
  return stream;
}

CUevent DriverBench::newEvent() const {
  CUevent event = nullptr;
  ok(driver->cuEventCreate(&event, CU_EVENT_DEFAULT));
  return event;
}

CUfunction DriverBench::function(const char *name) const {
  CUfunction found = nullptr;
  ok(driver->cuModuleGetFunction(&found, module, name));
  return found;
}

CUresult DriverBench::launch(CUstream stream, CUfunction function, std::vector<void *> parameters,
                             uint32_t sharedBytes) const {
  CUlaunchConfig config{.gridDimX = kCount / 64,
                        .gridDimY = 1,
                        .gridDimZ = 1,
                        .blockDimX = 64,
                        .blockDimY = 1,
                        .blockDimZ = 1,
                        .sharedMemBytes = sharedBytes,
                        .hStream = stream,
                        .attrs = nullptr,
                        .numAttrs = 0};
  return driver->cuLaunchKernelEx(&config, function, parameters.data(), nullptr);
}

CUresult DriverBench::fill(CUstream stream, CUdeviceptr dst, uint32_t value) const {
  return launch(stream, function("fill"), {&dst, &value});
}

CUresult DriverBench::add(CUstream stream, CUdeviceptr dst, CUdeviceptr a, CUdeviceptr b) const {
  return launch(stream, function("add"), {&dst, &a, &b});
}

std::vector<uint32_t> DriverBench::download(CUdeviceptr src) const {
  std::vector<uint32_t> values(kCount);
  ok(driver->cuCtxSynchronize());
  ok(driver->cuMemcpyDtoH(values.data(), src, kBytes));
  return values;
}

} // namespace llmc::cudasim
