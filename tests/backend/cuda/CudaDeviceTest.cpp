// What can go wrong between a plan and a GPU, each with the words that reach the person at the terminal; and what the
// conformance test of all devices does not see.
#include "tests/backend/cuda/CopyCode.h"
#include "tests/backend/cuda/SimDevice.h"

#include <thread>

namespace llmc::cuda::test {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;

constexpr const char *kIdentity = "Simulated GPU, PCI 0000:51:00.0, UUID GPU-51515151-5151-5151-5151-515151515151";

/// copy: a word a thread. look: an "embedding" that cannot work with position 3. astray: writes far outside.
const std::string kKernels = std::string(llmc::test::kCopyCode) + R"(
.visible .entry look(.param .u64 table, .param .u64 ids, .param .u64 dst, .param .u64 status) {
  .reg .b64 %d<2>;
  ld.param.u64 %d0, [status]; mov.u64 %d1, 4; st.global.u64 [%d0], %d1;
  ret;
}
.visible .entry astray(.param .u64 src, .param .u64 dst) {
  .reg .b32 %r<1>; .reg .b64 %d<1>;
  ld.param.u64 %d0, [dst]; mov.u32 %r0, 1; st.global.u32 [%d0+1048576], %r0;
  ret;
}
.visible .entry small(.param .u32 src, .param .u64 dst) { ret; }
)";

CodeEntry entryOf(const char *symbol, uint32_t blockX = 16, uint32_t sharedBytes = 0) {
  return {.name = symbol, .offset = 0, .symbol = symbol, .gridX = 1, .blockX = blockX, .sharedBytes = sharedBytes};
}

Program copyOfWords(uint64_t count) {
  Launch launch;
  launch.kind = KernelKind::Copy;
  launch.name = "h.0/copy";
  launch.entry = 0;
  launch.operands = {{Space::arena, 0, count * 4}, {Space::arena, 4096, count * 4}};
  launch.ints.resize(21);
  Program program;
  program.launches = {launch};
  program.arenaBytes = 8192;
  return program;
}

TEST(CudaDevice, saysWhatIsMissingWhenItIsOpened) {
  CudasimConfig config = kPlainConfig;
  config.numDevices = 0;
  EXPECT_THAT(openingError(config), AllOf(HasSubstr("the NVIDIA driver finds no GPU"), HasSubstr("--device cpu")));
  config = kPlainConfig;
  config.driverVersion = 12040;
  EXPECT_THAT(openingError(config), AllOf(HasSubstr("the NVIDIA driver is for CUDA 12.4, at least 13.0 is needed"),
                                          HasSubstr("--device cpu")));
  CudaDeviceOptions options = simOptions();
  options.ordinal = 2;
  EXPECT_THAT(openingError(kPlainConfig, options), "GPU 2 of 1: each rank of a machine needs a GPU of its own");
  options = simOptions();
  options.driverLibrary = "libcuda-that-is-nowhere.so.1";
  EXPECT_THAT(openingError(kPlainConfig, options),
              AllOf(HasSubstr("no NVIDIA driver: libcuda-that-is-nowhere.so.1"), HasSubstr("--device cpu")));
}

TEST(CudaDevice, picksTheNewestArchitectureItCanRun) {
  CudasimConfig config = kPlainConfig;
  config.computeCapability = 90;
  SimDevice sim(config);
  Plan plan;
  for (auto [target, isa] : {std::pair("cpu", "x86-64-v4"), {"cuda", "sm_80"}, {"cuda", "sm_90"}, {"cuda", "sm_100"}}) {
    plan.targets.emplace_back();
    plan.targets.back().target = target;
    plan.targets.back().isa = isa;
  }
  ASSERT_TRUE(sim.device->pickTarget(plan).ok());
  EXPECT_EQ(*sim.device->pickTarget(plan), 2u);
  plan.targets.erase(plan.targets.begin() + 1, plan.targets.begin() + 3);
  EXPECT_EQ(sim.device->pickTarget(plan).error().message,
            "the plan has cpu x86-64-v4, cuda sm_100; this device is Simulated GPU (sm_90); llmc-compile --target cuda "
            "makes programs for sm_80 and later");
  EXPECT_EQ(sim.device->loadCode(plan, plan.targets[1], {}).error().message,
            "cannot run cuda sm_100 on Simulated GPU (sm_90)");
}

TEST(CudaDevice, countsMemoryAndRefusesWhatIsNotFree) {
  SimDevice sim;
  uint64_t before = sim.device->peakBytes();
  Result<std::byte *> memory = sim.device->allocate(1 << 20, "arena");
  ASSERT_TRUE(memory.ok());
  EXPECT_GE(sim.device->peakBytes(), before + (1 << 20));
  EXPECT_LE(sim.device->peakBytes(), before + (1 << 20) + 4096);
  sim.device->release(*memory);
  uint64_t peak = sim.device->peakBytes();
  EXPECT_EQ(sim.device->allocate(uint64_t(3) << 29, "arena").error().message,
            std::string("cannot allocate 1.500 GiB for arena: 1.000 of 1.000 GiB are free (") + kIdentity + ")");
  EXPECT_EQ(sim.device->peakBytes(), peak);
}

TEST(CudaDevice, copiesMoreThanASlotAndFromManyThreads) {
  SimDevice sim;
  std::vector<uint32_t> values(3 << 20);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<uint32_t>(i);
  std::byte *memory = sim.upload(values);
  EXPECT_EQ(sim.download<uint32_t>(memory, values.size()), values);
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 12; ++thread)
    threads.emplace_back([&, thread] {
      std::vector<uint32_t> part(1 << 16, thread);
      EXPECT_TRUE(sim.device->copyIn(memory + thread * (4 << 16), std::as_bytes(std::span(part))).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  for (uint32_t thread = 0; thread < 12; ++thread)
    EXPECT_THAT(sim.download<uint32_t>(memory + thread * (4 << 16), 1 << 16), Each(thread));
}

TEST(CudaDevice, showsWhyPtxIsRefused) {
  SimDevice sim;
  EXPECT_EQ(sim.load(".version 7.0\n.target sm_80\n.entry k() {\n  frobnicate;\n  ret;\n}\n", {}).error().message,
            std::string("compiling the plan's PTX: CUDA_ERROR_INVALID_PTX (218): a PTX JIT compilation failed (") +
                kIdentity + "): PTX line 4: frobnicate: unknown instruction");
  Plan plan;
  plan.targets.resize(1);
  plan.targets[0].target = "cuda";
  plan.targets[0].isa = "sm_80";
  EXPECT_EQ(sim.device->loadCode(plan, plan.targets[0], std::vector(4, std::byte('x'))).error().message,
            "the plan's PTX does not end");
}

TEST(CudaDevice, refusesKernelsThatDoNotTakeTheLaunch) {
  SimDevice sim;
  std::byte *arena = sim.upload(std::vector<uint32_t>(2048, 1));
  Program program = copyOfWords(16);
  auto errorWith = [&](const CodeEntry &entry) {
    EXPECT_TRUE(sim.load(kKernels.c_str(), {entry}).ok());
    auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
    return prepared ? "" : prepared.error().message;
  };
  EXPECT_EQ(errorWith(entryOf("copy")), "");
  EXPECT_EQ(errorWith(entryOf("paste")), "copy 'h.0/copy': the plan's PTX has no kernel 'paste'");
  EXPECT_EQ(errorWith(entryOf("look")), "copy 'h.0/copy': its kernel takes more than the 2 addresses of this launch");
  EXPECT_EQ(errorWith(entryOf("small")),
            "copy 'h.0/copy': its kernel does not take 2 addresses: parameter 0 is missing or of another size");
  EXPECT_EQ(errorWith(entryOf("copy", 16, 200 * 1024)),
            "copy 'h.0/copy': blocks with 204800 bytes of shared memory, this device has 166912");
  EXPECT_EQ(errorWith(entryOf("copy", 16, 100 * 1024)), "");
  program.launches[0].operands.push_back({Space::arena, 0, 64});
  EXPECT_EQ(errorWith(entryOf("copy")),
            "copy 'h.0/copy': its kernel does not take 3 addresses: parameter 2 is missing or of another size");
  program.launches[0].entry = 1;
  EXPECT_EQ(errorWith(entryOf("copy")), "copy 'h.0/copy': code entry 1 is not in the loaded code");
}

TEST(CudaDevice, namesTheTokenThatIsNoToken) {
  SimDevice sim;
  std::vector<int64_t> ids{1, 2, 3, -7};
  std::byte *arena = sim.upload(ids);
  ASSERT_TRUE(sim.load(kKernels.c_str(), {entryOf("look", 1)}).ok());
  Launch launch;
  launch.kind = KernelKind::Embedding;
  launch.name = "wte";
  launch.entry = 0;
  launch.operands = {{Space::arena, 0, 32}, {Space::arena, 0, 32}, {Space::arena, 0, 32}};
  launch.ints = {4, 5, 1, 0, 0};
  Program program;
  program.launches = {launch};
  auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  for (int run = 0; run < 3; ++run) {
    Status status = (*prepared)->run();
    ASSERT_FALSE(status.ok());
    EXPECT_EQ(status.error().message, "embedding 'wte': token id -7 at position 3 is outside [0, 5)");
  }
  prepared = Error{"done"};
}

TEST(CudaDevice, anErrorOfTheGpuIsFinalAndNamesIt) {
  SimDevice sim;
  std::byte *arena = sim.upload(std::vector<uint32_t>(2048, 1));
  ASSERT_TRUE(sim.load(kKernels.c_str(), {entryOf("astray", 1)}).ok());
  auto prepared = sim.device->prepare(copyOfWords(16), {nullptr, nullptr, arena}, nullptr);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  Status status = (*prepared)->run();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(status.error().message,
              AllOf(HasSubstr("this process can no longer use the GPU: CUDA_ERROR_ILLEGAL_ADDRESS (700)"),
                    HasSubstr("astray"), HasSubstr(kIdentity)));
  EXPECT_THAT((*prepared)->run().error().message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  std::vector<std::byte> host(4);
  EXPECT_THAT(sim.device->copyOut(host, arena).error().message, HasSubstr("CUDA_ERROR_ILLEGAL_ADDRESS"));
  prepared = Error{"done"};
}

TEST(CudaDevice, aProgramThatDoesNotEndIsGivenUp) {
  CudaDeviceOptions options = simOptions();
  options.stepTimeout = std::chrono::milliseconds(0);
  SimDevice sim(kPlainConfig, options);
  std::byte *arena = sim.upload(std::vector<uint32_t>(2048, 1));
  ASSERT_TRUE(sim.load(kKernels.c_str(), {entryOf("copy")}).ok());
  Program program = copyOfWords(16);
  program.launches.resize(50, program.launches[0]);
  auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  Status status = (*prepared)->run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message,
            std::string("the program has not ended within 0 ms: a kernel hangs (") + kIdentity + ")");
  prepared = Error{"done"};
}

TEST(CudaDevice, replaysAGraphOfTheWholeProgram) {
  SimDevice sim;
  std::vector<uint32_t> values(2048, 0);
  std::byte *arena = sim.upload(values);
  ASSERT_TRUE(sim.load(kKernels.c_str(), {entryOf("copy")}).ok());
  Program program = copyOfWords(16);
  Launch zero;
  zero.kind = KernelKind::Zero;
  zero.operands = {{Space::arena, 4096, 32}};
  program.launches.push_back(zero);
  auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  auto counts = sim.hook<CudasimCounts (*)()>("cudasimCounts");
  for (uint32_t run = 1; run <= 4; ++run) {
    std::vector<uint32_t> words(16, run);
    ASSERT_TRUE(sim.device->copyIn(arena, std::as_bytes(std::span(words))).ok());
    Status status = (*prepared)->run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    std::fill_n(words.begin(), 8, 0);
    EXPECT_EQ(sim.download<uint32_t>(arena + 4096, 16), words);
    EXPECT_EQ(counts().numLaunches, run);
    EXPECT_EQ(counts().numGraphLaunches, run - 1) << "the first run launches directly";
  }
  prepared = Error{"done"};
}

} // namespace
} // namespace llmc::cuda::test
