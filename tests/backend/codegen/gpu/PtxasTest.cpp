// Kernels of the sizes that models have, through NVIDIA's assembler: for every architecture, without spills.
#include "tests/backend/codegen/Ptxas.h"
#include "backend/codegen/GpuModule.h"
#include "backend/codegen/LowerModule.h"
#include "backend/codegen/gpu/GpuKernels.h"
#include "tests/backend/cpu/LaunchRunner.h"

#include <gtest/gtest.h>

namespace llmc::test {
namespace {

/// A launch with these integers (others are 0) and all operands but the named ones.
Launch launchOf(KernelKind kind, const std::map<std::string, int64_t> &ints,
                const std::vector<std::string> &absent = {}) {
  const KernelInfo &info = kernelInfo(kind);
  auto count = [](std::string_view list) {
    return list.empty() ? size_t(0) : size_t(std::count(list.begin(), list.end(), ' ') + 1);
  };
  Launch launch;
  launch.kind = kind;
  launch.ints.resize(count(info.ints));
  launch.floats.resize(count(info.floats), 0.125);
  launch.operands.resize(count(info.operands), BufferRef{Space::arena, 0, 64});
  for (const auto &[name, value] : ints)
    launch.ints[indexIn(info.ints, name)] = value;
  for (const std::string &name : absent)
    launch.operands[indexIn(info.operands, name)] = {};
  return launch;
}

void checkKernel(const Launch &launch, llvm::ArrayRef<const char *> architectures = kPtxasArchitectures) {
#ifdef LLMC_PTXAS
  mlir::MLIRContext context;
  loadKernelDialects(context);
  llvm::Expected<GpuKernel> kernel = gpuKernelEmitter(launch.kind)(launch, "kernel", context);
  ASSERT_TRUE(bool(kernel)) << llvm::toString(kernel.takeError());
  llvm::Expected<std::string> ptx = compileToPtx(*kernel->module, gpuIsas()[0]);
  ASSERT_TRUE(bool(ptx)) << llvm::toString(ptx.takeError());
  for (const char *architecture : architectures)
    EXPECT_EQ(ptxasProblem(LLMC_PTXAS, *ptx, architecture), "") << architecture;
#else
  GTEST_SKIP() << "there is no ptxas";
#endif
}

constexpr int64_t kBf16 = int64_t(ElementType::bf16);

TEST(Ptxas, Embeddings) {
  for (int64_t type : {int64_t(0), kBf16})
    for (auto [v, c] : {std::pair<int64_t, int64_t>{50304, 768}, {50257, 1600}, {256, 37}}) {
      checkKernel(launchOf(KernelKind::Embedding, {{"n", 65536}, {"v", v}, {"c", c}, {"dstType", type}}));
      checkKernel(launchOf(KernelKind::EmbeddingGrad, {{"n", 65536}, {"v", v}, {"c", c}, {"dOutType", type}}));
    }
}

TEST(Ptxas, Copies) {
  std::map<std::string, int64_t> sizes{{"size0", 1}, {"size1", 1}, {"size2", 64}, {"size3", 12}};
  for (int64_t bytes : {1, 2, 4, 8}) {
    std::map<std::string, int64_t> slice{{"bytes", bytes},        {"size4", 1024},        {"size5", 64},
                                         {"srcStride2", 2359296}, {"srcStride3", 64},     {"srcStride4", 2304},
                                         {"srcStride5", 1},       {"dstStride2", 786432}, {"dstStride3", 65536},
                                         {"dstStride4", 64},      {"dstStride5", 1}};
    slice.insert(sizes.begin(), sizes.end());
    checkKernel(launchOf(KernelKind::Copy, slice));
    slice["srcStride4"] = 1; // a transpose
    slice["srcStride5"] = 1024;
    checkKernel(launchOf(KernelKind::Copy, slice));
    slice["srcStride4"] = 0; // neither
    checkKernel(launchOf(KernelKind::Copy, slice));
  }
}

std::map<std::string, int64_t> attentionSizes(int64_t headSize, int64_t kvHeads, int64_t type) {
  const int64_t heads = 12, stride = (heads + 2 * kvHeads) * headSize, k = heads * headSize, v = k + kvHeads * headSize;
  return {{"batch", 64},           {"queries", 1024},       {"keys", 1024},          {"heads", heads},
          {"kvHeads", kvHeads},    {"headSize", headSize},  {"causal", 1},           {"type", type},
          {"qRowStride", stride},  {"kRowStride", stride},  {"kOffset", k},          {"vRowStride", stride},
          {"vOffset", v},          {"dqRowStride", stride}, {"dkRowStride", stride}, {"dkOffset", k},
          {"dvRowStride", stride}, {"dvOffset", v}};
}

void checkAttention(KernelKind kind) {
  for (int64_t headSize : {16, 64, 65, 128, 256})
    for (int64_t type : {int64_t(0), kBf16}) {
      std::map<std::string, int64_t> ints = attentionSizes(headSize, headSize == 128 ? 4 : 12, type);
      if (kind == KernelKind::Attention)
        std::erase_if(ints, [](const auto &entry) { return entry.first[0] == 'd'; });
      checkKernel(launchOf(kind, ints, {"mask", "workspace"}), {"sm_80", "sm_90"}); // a second each
      if (headSize == 64) {
        ints["window"] = 256;
        ints["maskQueryStride"] = 1024;
        ints["maskKeyStride"] = 1;
        checkKernel(launchOf(kind, ints));
      }
    }
}

TEST(Ptxas, Attention) { checkAttention(KernelKind::Attention); }
TEST(Ptxas, AttentionGrad) { checkAttention(KernelKind::AttentionGrad); }

#ifdef LLMC_PTXAS
TEST(Ptxas, SaysWhatSpills) {
  EXPECT_NE(ptxasProblem(LLMC_PTXAS, ".version 7.0\n.target sm_80\n.address_size 64\n.entry k() { retrn; }", "sm_80"),
            "");
  const char *array =
      ".version 7.0\n.target sm_80\n.address_size 64\n.entry k(.param .u64 p) { .local .b8 a[64]; .reg .b64 "
      "%d<2>; .reg .b32 %r<2>; ld.param.u64 %d0, [p]; mov.u64 %d1, a; add.u64 %d1, %d1, %d0; mov.u32 "
      "%r0, 1; st.local.u32 [%d1], %r0; ld.local.u32 %r1, [a]; st.global.u32 [%d0], %r1; ret; }";
  EXPECT_NE(ptxasProblem(LLMC_PTXAS, array, "sm_80").find("64 bytes stack frame"), std::string::npos);
}
#endif

} // namespace
} // namespace llmc::test
