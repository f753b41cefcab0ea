// Generated kernels on one core: layer norm (1024, 768), bias + GELU (1024, 3072), AdamW on 10 M parameters, softmax,
// and the time that compiling takes. Figures to compare with stand in design.md, "Kernels: described once, lowered
// twice".
#include "tests/backend/codegen/ExecutableCode.h"
#include "tests/backend/codegen/FusionCase.h"

#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>

namespace llmc {
namespace {

using AlignedBytes = std::unique_ptr<std::byte, decltype(&std::free)>;

/// Runs a spec's kernel over all its blocks.
void runSpec(benchmark::State &state, const FusionSpec &spec) {
  const CpuIsa &isa = cpuIsas()[state.range(0)];
  mlir::OwningOpRef<mlir::ModuleOp> module = parseFusion(spec);
  FusionOp fusion = fusionIn(*module);
  mlir::FailureOr<CodeBlob> blob = compileFusions({fusion}, isa);
  if (mlir::failed(blob) || !canRun(isa))
    return state.SkipWithError("this machine lacks the ISA level");
  ExecutableCode code(*blob);
  std::vector<AlignedBytes> buffers;
  std::vector<void *> operands;
  double bytes = 0;
  auto add = [&](mlir::Value value) {
    auto type = mlir::cast<mlir::RankedTensorType>(value.getType());
    size_t size = size_t(tensorBytes(type) + 4095) / 4096 * 4096;
    buffers.emplace_back(static_cast<std::byte *>(std::aligned_alloc(4096, size)), &std::free);
    std::vector<std::byte> content = toBytes(randomTensor(type, spec, unsigned(buffers.size())));
    std::copy(content.begin(), content.end(), buffers.back().get());
    operands.push_back(buffers.back().get());
    bytes += double(content.size());
  };
  for (mlir::Value input : fusion.getInputs())
    add(input);
  for (auto [i, output] : llvm::enumerate(fusion.getOutputs())) {
    if (i < spec.inPlace.size() && spec.inPlace[i] >= 0) {
      operands.push_back(operands[spec.inPlace[i]]);
      bytes += double(tensorBytes(mlir::cast<mlir::RankedTensorType>(output.getType())));
    } else {
      add(output);
    }
  }
  int64_t rows = fusion.getRows(), cols = fusion.getCols(), rowBlock = fusion.getRowBlock(),
          colBlock = fusion.getColBlock();
  for (auto _ : state)
    for (int64_t row = 0; row < rows; row += rowBlock)
      for (int64_t col = 0; col < cols; col += colBlock)
        code.entry(0)(operands.data(), row, std::min(rows, row + rowBlock), col, std::min(cols, col + colBlock));
  state.SetLabel(isa.name);
  state.SetBytesProcessed(int64_t(double(state.iterations()) * bytes));
}

const FusionSpec kLayerNorm{.space = {1024, 768},
                            .inputs = {"1024x768xf32", "1x768xf32", "1x768xf32"},
                            .body = R"(%n = llmc.constant dense<768.0> : tensor<f32>
  %eps = llmc.constant dense<1.000000e-05> : tensor<f32>
  %0 = llmc.reduce_sum %a0 {axes = array<i64: 1>} : (tensor<1024x768xf32>) -> tensor<1024x1xf32>
  %1 = llmc.div %0, %n : (tensor<1024x1xf32>, tensor<f32>) -> tensor<1024x1xf32>
  %2 = llmc.sub %a0, %1 : (tensor<1024x768xf32>, tensor<1024x1xf32>) -> tensor<1024x768xf32>
  %3 = llmc.mul %2, %2 : (tensor<1024x768xf32>, tensor<1024x768xf32>) -> tensor<1024x768xf32>
  %4 = llmc.reduce_sum %3 {axes = array<i64: 1>} : (tensor<1024x768xf32>) -> tensor<1024x1xf32>
  %5 = llmc.div %4, %n : (tensor<1024x1xf32>, tensor<f32>) -> tensor<1024x1xf32>
  %6 = llmc.add %5, %eps : (tensor<1024x1xf32>, tensor<f32>) -> tensor<1024x1xf32>
  %7 = llmc.rsqrt %6 : tensor<1024x1xf32>
  %8 = llmc.mul %2, %7 : (tensor<1024x768xf32>, tensor<1024x1xf32>) -> tensor<1024x768xf32>
  %9 = llmc.mul %8, %a1 : (tensor<1024x768xf32>, tensor<1x768xf32>) -> tensor<1024x768xf32>
  %10 = llmc.add %9, %a2 : (tensor<1024x768xf32>, tensor<1x768xf32>) -> tensor<1024x768xf32>
  llmc.yield %10, %1, %7 : tensor<1024x768xf32>, tensor<1024x1xf32>, tensor<1024x1xf32>)",
                            .outputs = {"1024x768xf32", "1024x1xf32", "1024x1xf32"},
                            .rowBlock = 32};

const FusionSpec kSoftmax{
    .space = {1024, 1024},
    .inputs = {"1024x1024xf32"},
    .body = R"(%0 = llmc.reduce_max %a0 {axes = array<i64: 1>} : (tensor<1024x1024xf32>) -> tensor<1024x1xf32>
  %1 = llmc.sub %a0, %0 : (tensor<1024x1024xf32>, tensor<1024x1xf32>) -> tensor<1024x1024xf32>
  %2 = llmc.exp %1 : tensor<1024x1024xf32>
  %3 = llmc.reduce_sum %2 {axes = array<i64: 1>} : (tensor<1024x1024xf32>) -> tensor<1024x1xf32>
  %4 = llmc.div %2, %3 : (tensor<1024x1024xf32>, tensor<1024x1xf32>) -> tensor<1024x1024xf32>
  llmc.yield %4 : tensor<1024x1024xf32>)",
    .outputs = {"1024x1024xf32"},
    .rowBlock = 32};

FusionSpec biasGelu(const std::string &attributes) {
  return {.space = {1024, 3072},
          .inputs = {"1024x3072xf32", "1x3072xf32"},
          .body = "%0 = llmc.add %a0, %a1 : (tensor<1024x3072xf32>, tensor<1x3072xf32>) -> tensor<1024x3072xf32>\n%1 = "
                  "llmc.gelu %0 " +
                  attributes + " : tensor<1024x3072xf32>\nllmc.yield %1 : tensor<1024x3072xf32>",
          .outputs = {"1024x3072xf32"},
          .rowBlock = 16};
}

/// p, g, m, v, and the scalars lr, 1 - beta1, 1 - beta2, the bias corrections' reciprocals, eps, decay.
FusionSpec adamw() {
  std::string full = "tensor<10485760xf32>", one = "tensor<1xf32>", body;
  auto op = [&](const char *name, const char *kind, const char *a, const char *b, bool bIsScalar) {
    body += std::string(name) + " = llmc." + kind + " " + a + ", " + b + " : (" + full + ", " +
            (bIsScalar ? one : full) + ") -> " + full + "\n";
  };
  op("%0", "sub", "%a1", "%a2", false); // m' = m + (1 - beta1) (g - m)
  op("%1", "mul", "%0", "%a5", true);
  op("%2", "add", "%a2", "%1", false);
  op("%3", "mul", "%a1", "%a1", false); // v' = v + (1 - beta2) (g^2 - v)
  op("%4", "sub", "%3", "%a3", false);
  op("%5", "mul", "%4", "%a6", true);
  op("%6", "add", "%a3", "%5", false);
  op("%7", "mul", "%6", "%a8", true); // p' = p decay - lr (m' / c1) / (sqrt(v' / c2) + eps)
  body += "%8 = llmc.sqrt %7 : " + full + "\n";
  op("%9", "add", "%8", "%a9", true);
  op("%10", "mul", "%2", "%a7", true);
  op("%11", "div", "%10", "%9", false);
  op("%12", "mul", "%11", "%a4", true);
  op("%13", "mul", "%a0", "%a10", true);
  op("%14", "sub", "%13", "%12", false);
  body += "llmc.yield %14, %2, %6 : " + full + ", " + full + ", " + full;
  FusionSpec spec{.space = {10485760},
                  .body = body,
                  .rowBlock = 1,
                  .colBlock = 65536,
                  .inPlace = {0, 2, 3},
                  .low = 0.01,
                  .high = 1};
  spec.inputs.assign(4, "10485760xf32");
  spec.inputs.insert(spec.inputs.end(), 7, "1xf32");
  spec.outputs.assign(3, "10485760xf32");
  return spec;
}

/// 25 kernels, all of different code.
void compileKernels(benchmark::State &state) {
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules;
  std::vector<FusionOp> fusions;
  auto add = [&](const FusionSpec &spec) {
    modules.push_back(parseFusion(spec));
    fusions.push_back(fusionIn(*modules.back()));
  };
  for (int64_t eps = 0; eps < 5; ++eps) {
    auto vary = [&](FusionSpec spec) {
      std::string type = "tensor<" + spec.outputs[0] + ">", name = "%vary";
      size_t yield = spec.body.find("llmc.yield");
      spec.body.insert(yield,
                       "%vary = llmc.constant dense<" + std::to_string(eps) + ".5> : tensor<f32>\n%varied = llmc.add " +
                           spec.body.substr(yield + 11, spec.body.find_first_of(", :", yield + 11) - yield - 11) +
                           ", %vary : (" + type + ", tensor<f32>) -> " + type + "\n");
      yield = spec.body.find("llmc.yield");
      spec.body.replace(yield + 11, spec.body.find_first_of(", :", yield + 11) - yield - 11, "%varied");
      add(spec);
    };
    vary(kLayerNorm);
    vary(kSoftmax);
    vary(biasGelu(""));
    vary(biasGelu("{approximate}"));
    vary(adamw());
  }
  const CpuIsa &isa = cpuIsas()[state.range(0)];
  for (auto _ : state)
    benchmark::DoNotOptimize(compileFusions(fusions, isa));
  state.SetLabel(isa.name + ", " + std::to_string(fusions.size()) + " kernels");
}

void layerNorm(benchmark::State &state) { runSpec(state, kLayerNorm); }
void softmax(benchmark::State &state) { runSpec(state, kSoftmax); }
void biasGeluExact(benchmark::State &state) { runSpec(state, biasGelu("")); }
void biasGeluTanh(benchmark::State &state) { runSpec(state, biasGelu("{approximate}")); }
void adamw10M(benchmark::State &state) { runSpec(state, adamw()); }

BENCHMARK(layerNorm)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(softmax)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(biasGeluExact)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(biasGeluTanh)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(adamw10M)->DenseRange(0, 2)->Unit(benchmark::kMillisecond);
BENCHMARK(compileKernels)->DenseRange(0, 2)->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

} // namespace
} // namespace llmc
