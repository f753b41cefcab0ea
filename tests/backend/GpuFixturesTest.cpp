// All kernels of all exported GPTs, f32 and bf16, as GPUs run them: through LLVM's PTX and NVIDIA's assembler, for
// every architecture, without spills. Models share kernels, and those of all models are one text for the assembler.
#include "backend/ProgramEmitter.h"
#include "frontend/OnnxImporter.h"
#include "passes/Passes.h"
#include "tests/backend/codegen/Ptxas.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/ThreadPool.h"

#include <gtest/gtest.h>
#include <set>

using namespace mlir;

namespace llmc::test {
namespace {

/// Folders of the fixtures that are GPTs of our own exporters.
std::set<std::string> fixtures() {
  std::set<std::string> names;
  std::error_code error;
  for (llvm::sys::fs::directory_iterator at(LLMC_TEST_FIXTURES, error), end; at != end && !error; at.increment(error))
    if (StringRef path = at->path(); llvm::sys::fs::exists(path + "/ref.json"))
      names.insert(path.str());
  return names;
}

/// A fixture in plan form for GPUs, with the sizes of its own where it does not take ours; null where it does not
/// compile.
OwningOpRef<ModuleOp> planForm(MLIRContext &context, const std::string &folder, bool isBf16) {
  ImportOptions options;
  options.path = folder + "/model.onnx";
  options.asExported = true;
  FailureOr<ImportedModel> model = importOnnx(context, options);
  if (failed(model)) {
    options.batch = 2;
    options.seq = 32;
    model = importOnnx(context, options);
  }
  if (failed(model))
    return {};
  PipelineOptions pipeline;
  pipeline.isBf16 = isBf16;
  pipeline.isGpu = true;
  PassManager manager(&context, ModuleOp::getOperationName());
  buildPipeline(manager, pipeline);
  if (failed(manager.run(*model->module)))
    return {};
  return std::move(model->module);
}

class GpuFixtures : public ::testing::TestWithParam<bool> {};

TEST_P(GpuFixtures, AssembleWithoutSpills) {
#ifndef LLMC_PTXAS
  GTEST_SKIP() << "there is no ptxas";
#else
  MLIRContext context(MLIRContext::Threading::DISABLED);
  llvm::DefaultThreadPool pool(llvm::hardware_concurrency());
  context.setThreadPool(pool);
  context.getDiagEngine().registerHandler([](Diagnostic &) { return success(); });
  std::vector<OwningOpRef<ModuleOp>> modules;
  std::vector<GpuSource> sources;
  for (const std::string &folder : fixtures()) {
    OwningOpRef<ModuleOp> module = planForm(context, folder, GetParam());
    EXPECT_TRUE(module) << folder;
    if (!module)
      continue;
    FailureOr<GpuPrograms> made = emitGpuPrograms(*module);
    ASSERT_TRUE(succeeded(made)) << folder;
    llvm::append_range(sources, made->sources);
    modules.push_back(std::move(module)); // which the sources refer to
  }
  ASSERT_FALSE(sources.empty());
  llvm::Expected<GpuCode> code = compileGpuSources(context, sources, gpuIsas()[0]);
  ASSERT_TRUE(bool(code)) << llvm::toString(code.takeError());
  std::string problems[std::size(kPtxasArchitectures)];
  for (size_t i = 0; i < std::size(problems); ++i)
    pool.async([&, i] { problems[i] = ptxasProblem(LLMC_PTXAS, code->ptx, kPtxasArchitectures[i]); });
  pool.wait();
  for (size_t i = 0; i < std::size(problems); ++i)
    EXPECT_EQ(problems[i], "") << kPtxasArchitectures[i];
#endif
}

INSTANTIATE_TEST_SUITE_P(Precisions, GpuFixtures, ::testing::Bool(),
                         [](const auto &info) { return info.param ? "bf16" : "f32"; });

} // namespace
} // namespace llmc::test
