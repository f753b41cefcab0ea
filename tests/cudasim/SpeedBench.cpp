// How many PTX instructions (times lanes) a second the simulator executes, with all its checks.
#include "tests/cudasim/SimRun.h"

#include <benchmark/benchmark.h>
#include <fstream>
#include <sstream>

namespace llmc::cudasim {
namespace {

std::string kernels() {
  std::ifstream stream(std::string(LLMC_CUDASIM_PTX) + "/LlvmKernels.ptx");
  std::stringstream text;
  text << stream.rdbuf();
  return text.str();
}

void layerNorm(benchmark::State &state) {
  constexpr int kRows = 64, kWidth = 768;
  cudasim::SimBench bench(kernels());
  uint64_t x = bench.upload(std::vector<float>(kRows * kWidth, 1.5f)),
           w = bench.upload(std::vector<float>(kWidth, 1.0f));
  uint64_t y = bench.reserve(kRows * kWidth * 4);
  double executed = 0;
  for (auto _ : state) {
    bench.runNamed("layerNorm", kRows, 128,
                   {SimBench::argument(x), SimBench::argument(w), SimBench::argument(y), SimBench::argument(kWidth),
                    SimBench::argument(1e-5f)});
    executed += static_cast<double>(bench.counts.laneInstructions);
  }
  state.counters["instructions/s"] = benchmark::Counter(executed, benchmark::Counter::kIsRate);
}
BENCHMARK(layerNorm);

void gelu(benchmark::State &state) {
  constexpr int64_t kVectors = 1 << 14;
  cudasim::SimBench bench(kernels());
  uint64_t x = bench.upload(std::vector<float>(4 * kVectors, 0.5f)), y = bench.reserve(16 * kVectors);
  double executed = 0;
  for (auto _ : state) {
    bench.runNamed("gelu", 64, 256, {SimBench::argument(x), SimBench::argument(y), SimBench::argument(kVectors)});
    executed += static_cast<double>(bench.counts.laneInstructions);
  }
  state.counters["instructions/s"] = benchmark::Counter(executed, benchmark::Counter::kIsRate);
}
BENCHMARK(gelu);

} // namespace
} // namespace llmc::cudasim
