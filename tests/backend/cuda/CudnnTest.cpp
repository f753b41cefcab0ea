// What cuDNN takes and declines, asked without a GPU: plans are built and compiled for described devices, with a driver
// that says yes to loading code (CudnnDriver.cpp). Needs the library; without it the tests skip.
#include "backend/cuda/Attention.h"
#include "runtime/KernelArguments.h"

#include <algorithm>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <map>

namespace llmc::cuda {
namespace {

using testing::HasSubstr;

/// A device as cuDNN describes one.
std::string deviceJson(int capability, int numProcessors, int sharedBytes) {
  return R"({"deviceVer":)" + std::to_string(capability * 10) + R"(,"multiProcessorCount":)" +
         std::to_string(numProcessors) + R"(,"maxSharedMemoryPerBlockOptin":)" + std::to_string(sharedBytes) +
         R"(,"driverVer":13000,"regsPerBlock":65536,"warpSize":32,"maxSharedMemoryPerBlock":49152,
"reservedSharedMemoryPerBlock":1024,"maxRegistersPerSM":65536,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,
"maxThreadsPerSM":2048,"maxGridSize":[2147483647,65535,65535],"maxBlockSize":[1024,1024,64],"pciDeviceId":0,
"isTccDriver":0,"supportCoopLaunch":1,"totalGlobalMem":85899345920,"smClockRateKHz":1410000,"memClockRateKHz":1593000,
"l2CacheSize":41943040,"cudaDeviceId":0,"deviceName":"NVIDIA"})";
}

class CudnnTest : public testing::TestWithParam<int> {
protected:
  void SetUp() override {
    ASSERT_TRUE(dlopen(LLMC_CUDNN_DRIVER, RTLD_NOW | RTLD_GLOBAL)) << dlerror(); // found again as libcuda.so.1
    bool isHopper = GetParam() == 90;
    Result<std::unique_ptr<AttentionLibrary>> opened = openCudnnFor(
        deviceJson(GetParam(), isHopper ? 132 : 108, isHopper ? 232448 : 166912), GetParam(), LLMC_CUDNN_LIBRARY);
    if (!opened)
      GTEST_SKIP() << opened.error().message;
    library = std::move(*opened);
  }
  std::unique_ptr<AttentionLibrary> library;
};

size_t countOf(std::string_view list) { return size_t(std::count(list.begin(), list.end(), ' ')) + 1; }

/// Packed q, k and v of GPT-2's shape, changed by `ints`; every operand is there but the mask.
Launch launchOf(KernelKind kind, std::map<std::string, int64_t> ints = {}) {
  const KernelInfo &info = kernelInfo(kind);
  Launch launch;
  launch.kind = kind;
  launch.name = "node";
  launch.ints.resize(countOf(info.ints));
  launch.floats = {0.125};
  launch.operands.resize(countOf(info.operands), BufferRef{Space::arena, 0, 64});
  launch.operands[argumentPlace("mask", info.operands)] = {};
  ints.insert({{"batch", 64}, {"queries", 1024}, {"keys", 1024}, {"heads", 12}, {"kvHeads", 12}, {"headSize", 64}});
  ints.insert({{"causal", 1}, {"type", int64_t(ElementType::bf16)}});
  const int64_t columns = ints["heads"] * ints["headSize"], kvColumns = ints["kvHeads"] * ints["headSize"];
  for (std::string prefix : {"", "d"}) {
    if (prefix == "d" && kind == KernelKind::Attention)
      break;
    for (const char *name : {"q", "k", "v"})
      ints.insert({prefix + name + "RowStride", columns + 2 * kvColumns});
    ints.insert({{prefix + "kOffset", columns}, {prefix + "vOffset", columns + kvColumns}});
  }
  for (const auto &[name, value] : ints)
    launch.ints[argumentPlace(name, info.ints)] = value;
  return launch;
}

TEST_P(CudnnTest, TakesWhatModelsHave) {
  for (KernelKind kind : {KernelKind::Attention, KernelKind::AttentionGrad})
    for (const std::map<std::string, int64_t> &ints : std::vector<std::map<std::string, int64_t>>{
             {}, {{"heads", 32}, {"kvHeads", 8}, {"batch", 8}}, {{"headSize", 128}}, {{"window", 256}}}) {
      Result<std::unique_ptr<AttentionPlan>> plan = library->take(launchOf(kind, ints));
      ASSERT_TRUE(plan) << plan.error().message;
      if (kind == KernelKind::AttentionGrad) {
        EXPECT_GT((*plan)->workspaceBytes(), 0u);
      }
      RecordProperty("workspace", std::to_string((*plan)->workspaceBytes()));
    }
}

TEST_P(CudnnTest, SaysWhyItDeclines) {
  auto why = [&](const Launch &launch) {
    Result<std::unique_ptr<AttentionPlan>> plan = library->take(launch);
    return plan ? "taken" : plan.error().message;
  };
  EXPECT_EQ(why(launchOf(KernelKind::Attention, {{"type", int64_t(ElementType::f32)}})),
            "cuDNN's attention takes bf16, not f32");
  Launch masked = launchOf(KernelKind::Attention);
  masked.operands[argumentPlace("mask", kernelInfo(masked.kind).operands)] = {Space::arena, 0, 64};
  EXPECT_EQ(why(masked), "cuDNN's attention takes no mask operand");
  EXPECT_EQ(why(launchOf(KernelKind::AttentionGrad, {{"causal", 0}, {"window", 8}})),
            "cuDNN's attention takes a window only with a causal mask");
  EXPECT_EQ(why(launchOf(KernelKind::Attention, {{"keys", 512}})),
            "cuDNN's attention takes no causal mask over more queries than keys");
  EXPECT_THAT(why(launchOf(KernelKind::Attention, {{"headSize", 65}})), HasSubstr("cuDNN declines: "));
}

INSTANTIATE_TEST_SUITE_P(Devices, CudnnTest, testing::Values(80, 90),
                         [](const auto &device) { return "sm_" + std::to_string(device.param); });

TEST(CudnnLibrary, MissingLibraryIsNamed) {
  Result<std::unique_ptr<AttentionLibrary>> opened = openCudnn(90, "/nowhere/libcudnn.so.9");
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().message, HasSubstr("cannot load cuDNN: /nowhere/libcudnn.so.9"));
}

} // namespace
} // namespace llmc::cuda
