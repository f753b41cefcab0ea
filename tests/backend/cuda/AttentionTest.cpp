// Who runs attention on the device: a library that takes the launch, or the plan's own kernel, with the reason told
// once.
#include "backend/cuda/Attention.h"
#include "runtime/KernelArguments.h"
#include "tests/backend/cuda/SimDevice.h"

namespace llmc::cuda::test {
namespace {

using testing::ElementsAre;

/// own: writes 1 to the first word of out.
constexpr const char *kKernels = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry own(.param .u64 q, .param .u64 k, .param .u64 v, .param .u64 out, .param .u64 lse) {
  .reg .b32 %r<1>; .reg .b64 %d<1>;
  ld.param.u64 %d0, [out]; mov.u32 %r0, 1; st.global.u32 [%d0], %r0;
  ret;
}
)";

/// Takes bf16. Its "attention" fills the first word of out with the bytes 2, and its workspace with 3.
class FakeLibrary : public AttentionLibrary {
public:
  FakeLibrary(const Driver &driver, int &numAsked) : driver(driver), numAsked(numAsked) {}

  Result<std::unique_ptr<AttentionPlan>> take(const Launch &launch) override {
    ++numAsked;
    if (typeArgument(launch, "type") != ElementType::bf16)
      return Error{"the library takes bf16, not f32"};
    return std::unique_ptr<AttentionPlan>(new FakePlan(driver));
  }

private:
  class FakePlan : public AttentionPlan {
  public:
    explicit FakePlan(const Driver &driver) : driver(driver) {}
    uint64_t workspaceBytes() const override { return 1000; }
    Status submit(CUstream stream, std::span<const CUdeviceptr> operands, CUdeviceptr workspace) override {
      EXPECT_EQ(operands.size(), 7u);
      EXPECT_EQ(operands[3], 0u); // no mask
      LLMC_RETURN_IF_ERROR(driver.check(driver.cuMemsetD8Async(workspace, 3, 1000, stream), "fake"));
      return driver.check(driver.cuMemsetD8Async(operands[4], 2, 4, stream), "fake");
    }

  private:
    const Driver &driver;
  };
  const Driver &driver;
  int &numAsked;
};

/// Two layers of attention that differ in where they write.
Program twoLayers(ElementType type) {
  Launch launch;
  launch.kind = KernelKind::Attention;
  launch.name = "h.0/attn";
  launch.entry = 0;
  launch.ints.resize(17);
  launch.ints[argumentPlace("type", kernelInfo(launch.kind).ints)] = int64_t(type);
  launch.floats = {0.125};
  launch.operands.resize(7);
  for (size_t i : {0, 1, 2, 4, 5})
    launch.operands[i] = {Space::arena, 4096 * i, 64};
  Program program;
  program.launches = {launch, launch};
  program.launches[1].operands[4].offset = 4096 * 7;
  program.arenaBytes = 4096 * 8;
  return program;
}

/// What the two layers wrote.
struct Ran {
  std::vector<uint32_t> out;
  std::vector<std::string> notices;
  int numAsked = 0;
};

Ran runLayers(ElementType type, bool hasLibrary) {
  Ran ran;
  CudaDeviceOptions options = simOptions();
  std::unique_ptr<Driver> driver = std::move(*Driver::load(options.driverLibrary));
  options.openAttention = [&](int capability) -> Result<std::unique_ptr<AttentionLibrary>> {
    EXPECT_EQ(capability, 80);
    if (!hasLibrary)
      return Error{"cannot load the library"};
    return std::unique_ptr<AttentionLibrary>(new FakeLibrary(*driver, ran.numAsked));
  };
  options.notice = [&](const std::string &words) { ran.notices.push_back(words); };
  SimDevice sim(kPlainConfig, options);
  EXPECT_TRUE(sim.load(kKernels, {{.name = "own", .offset = 0, .symbol = "own", .gridX = 1, .blockX = 1}}).ok());
  Program program = twoLayers(type);
  std::byte *arena = *sim.device->allocate(program.arenaBytes, "the arena");
  DeviceSpaces spaces;
  spaces.arena = arena;
  auto prepared = sim.device->prepare(program, spaces, nullptr);
  EXPECT_TRUE(prepared) << prepared.error().message;
  if (!prepared)
    return ran;
  for (int step = 0; step < 3; ++step) { // direct, captured, and again
    Status status = (*prepared)->run();
    EXPECT_TRUE(status.ok()) << status.error().message;
  }
  for (uint64_t offset : {4096 * 4, 4096 * 7}) {
    uint32_t word = 0;
    EXPECT_TRUE(sim.device->copyOut(std::as_writable_bytes(std::span(&word, 1)), arena + offset).ok());
    ran.out.push_back(word);
  }
  return ran;
}

TEST(CudaAttention, RunsByTheLibraryThatTakesIt) {
  Ran ran = runLayers(ElementType::bf16, true);
  EXPECT_THAT(ran.out, ElementsAre(0x02020202u, 0x02020202u));
  EXPECT_THAT(ran.notices, ElementsAre());
  EXPECT_EQ(ran.numAsked, 1); // one plan for both layers
}

TEST(CudaAttention, RunsAsThePlansOwnKernelAndSaysWhyOnce) {
  Ran ran = runLayers(ElementType::f32, true);
  EXPECT_THAT(ran.out, ElementsAre(1u, 1u));
  EXPECT_THAT(ran.notices, ElementsAre("attention runs as the plan's own kernel: the library takes bf16, not f32"));
  EXPECT_EQ(ran.numAsked, 1);
}

TEST(CudaAttention, RunsWithoutALibrary) {
  Ran ran = runLayers(ElementType::bf16, false);
  EXPECT_THAT(ran.out, ElementsAre(1u, 1u));
  EXPECT_THAT(ran.notices, ElementsAre("attention runs as the plan's own kernel: cannot load the library"));
}

} // namespace
} // namespace llmc::cuda::test
