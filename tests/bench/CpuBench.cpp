// The CPU kernels at the sizes of GPT-2 124M (B=4, T=256), on OMP_NUM_THREADS threads. Time is the CPU time of the
// busiest thread: with OMP_WAIT_POLICY=passive it is right on a machine that others use too; otherwise it is the time
// that passed.
#include "backend/cpu/Layouts.h"
#include "tests/backend/cpu/LaunchRunner.h"
#include "tools/report/MultiplyLoop.h"

#include <algorithm>
#include <array>
#include <benchmark/benchmark.h>
#include <cmath>
#include <ctime>
#include <omp.h>
#include <optional>

namespace llmc::test {
namespace {

/// CPU seconds each thread of the team has used.
std::vector<double> threadSeconds() {
  std::vector<double> seconds(static_cast<size_t>(omp_get_max_threads()));
#pragma omp parallel
  {
    timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    seconds[static_cast<size_t>(omp_get_thread_num())] = double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
  }
  return seconds;
}

/// CPU seconds of the thread that used the most.
template <typename Body> double secondsOf(Body body) {
  std::vector<double> before = threadSeconds();
  body();
  std::vector<double> after = threadSeconds();
  double busiest = 0;
  for (size_t i = 0; i < after.size(); ++i)
    busiest = std::max(busiest, after[i] - before[i]);
  return busiest;
}

/// A fifth of a millisecond of multiply-adds.
constexpr int64_t kLimitRounds = 65000;

/// FLOP/s that the threads together could do in products of a type, at this moment.
double limitNow(ElementType type) {
  double flops = 0;
  double seconds = secondsOf([&] {
#pragma omp parallel reduction(+ : flops)
    flops += runMultiplyLoop(type, kLimitRounds);
  });
  return flops / seconds;
}

/// Times a launch; flops or bytes per run become a rate. With a product type, also the best rate of any run ("best"),
/// and its share of the best limit seen between the runs.
void measure(benchmark::State &state, LaunchRunner &runner, double flops, double bytes,
             std::optional<ElementType> products = {}) {
  auto prepared = runner.prepare();
  if (!prepared.ok() || !(*prepared)->run().ok())
    return state.SkipWithError("the launch failed");
  double best = INFINITY, limit = 0;
  for (auto _ : state) {
    double seconds = secondsOf([&] {
      Status status = (*prepared)->run();
      benchmark::DoNotOptimize(status);
    });
    state.SetIterationTime(seconds);
    best = std::min(best, seconds);
    if (products)
      limit = std::max(limit, limitNow(*products));
  }
  if (flops > 0)
    state.counters["GFLOP/s"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  if (bytes > 0)
    state.counters["GB/s"] = benchmark::Counter(bytes * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  if (products) {
    state.counters["best"] = flops / best * 1e-9;
    state.counters["limit"] = limit * 1e-9;
    state.counters["share"] = flops / best / limit;
  }
}

enum MatMulForm { plain, bias, packed };

/// Arguments: m, n, k, transposeLhs, transposeRhs, form.
void matMul(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1), k = state.range(2), tl = state.range(3), tr = state.range(4);
  LaunchRunner runner(KernelKind::MatMul, omp_get_max_threads());
  runner.ints({{"batch", 1}, {"m", m}, {"n", n}, {"k", k}, {"transposeLhs", tl}, {"transposeRhs", tr}, {"ldDst", n}});
  runner.ints({{"ldLhs", tl ? m : k}, {"ldRhs", tr ? k : n}});
  runner.operand("lhs", std::vector<float>(size_t(m * k), 0.5f)).operand("dst", std::vector<float>(size_t(m * n)));
  if (state.range(5) == packed) {
    runner.ints({{"rhsLayout", int64_t(RhsLayout::blocked16x64)}, {"transposeRhs", 0}});
    runner.operand("rhs", std::vector<float>(size_t(packedElements(RhsLayout::blocked16x64, k, n)), 0.5f));
  } else {
    runner.operand("rhs", std::vector<float>(size_t(k * n), 0.5f));
  }
  if (state.range(5) == bias)
    runner.operand("bias", std::vector<float>(size_t(n), 0.5f));
  measure(state, runner, 2.0 * double(m) * double(n) * double(k), 0);
}

/// Weights (k, n) as GPT-2 stores them; the head's are (V, C).
void gptShapes(benchmark::internal::Benchmark *bench) {
  bench->ArgNames({"m", "n", "k", "tl", "tr", "form"});
  const int64_t tokens = 1024;
  for (auto [in, out] : {std::pair<int64_t, int64_t>{768, 2304}, {768, 768}, {768, 3072}, {3072, 768}}) {
    for (int64_t form : {plain, bias, packed})
      bench->Args({tokens, out, in, 0, 0, form}); // y = x W
    for (int64_t form : {plain, packed})
      bench->Args({tokens, in, out, 0, 1, form}); // dx = dy W^T
    bench->Args({in, out, tokens, 1, 0, plain});  // dW = x^T dy
  }
  for (int64_t form : {plain, packed})
    bench->Args({tokens, 50257, 768, 0, 1, form});
  for (int64_t form : {plain, packed})
    bench->Args({tokens, 768, 50257, 0, 0, form});
  bench->Args({50257, 768, tokens, 1, 0, plain});
}
BENCHMARK(matMul)->Apply(gptShapes)->UseManualTime()->Unit(benchmark::kMillisecond);

/// Arguments: B, H, T, D, bf16. Causal, from packed (B, T, 3C).
ElementType typeOf(const benchmark::State &state) { return state.range(4) ? ElementType::bf16 : ElementType::f32; }

void place(LaunchRunner &runner, ElementType type, const char *name, size_t n) {
  if (type == ElementType::bf16)
    runner.operand(name, asBf16(randomNumbers(n, 1)));
  else
    runner.operand(name, randomNumbers(n, 1));
}

LaunchRunner attentionLaunch(KernelKind kind, const benchmark::State &state) {
  int64_t b = state.range(0), h = state.range(1), t = state.range(2), d = state.range(3), c = h * d;
  ElementType type = typeOf(state);
  LaunchRunner runner(kind, omp_get_max_threads());
  runner.ints(
      {{"batch", b}, {"queries", t}, {"keys", t}, {"heads", h}, {"kvHeads", h}, {"headSize", d}, {"causal", 1}});
  runner.ints(
      {{"qRowStride", 3 * c}, {"kRowStride", 3 * c}, {"vRowStride", 3 * c}, {"kOffset", c}, {"vOffset", 2 * c}});
  runner.ints({{"type", int64_t(type)}}).number("scale", 0.125);
  // One buffer, as in a plan.
  place(runner, type, "q", size_t(b * t * 3 * c));
  runner.alias("k", "q").alias("v", "q");
  place(runner, type, "out", size_t(b * t * c));
  runner.operand("lse", std::vector<float>(size_t(b * h * t), 5.0f));
  return runner;
}

/// Of the forward pass, counting the scores that a causal query has.
double causalFlops(const benchmark::State &state) {
  double t = double(state.range(2));
  return 4.0 * double(state.range(0) * state.range(1) * state.range(3)) * t * (t + 1) / 2;
}

void attention(benchmark::State &state) {
  LaunchRunner runner = attentionLaunch(KernelKind::Attention, state);
  measure(state, runner, causalFlops(state), 0, typeOf(state));
}

void attentionGrad(benchmark::State &state) {
  LaunchRunner runner = attentionLaunch(KernelKind::AttentionGrad, state);
  int64_t c = state.range(1) * state.range(3), rows = state.range(0) * state.range(2);
  runner.ints(
      {{"dqRowStride", 3 * c}, {"dkRowStride", 3 * c}, {"dvRowStride", 3 * c}, {"dkOffset", c}, {"dvOffset", 2 * c}});
  place(runner, typeOf(state), "dOut", size_t(rows * c));
  place(runner, typeOf(state), "dq", size_t(rows * 3 * c));
  runner.alias("dk", "dq").alias("dv", "dq");
  measure(state, runner, 2.5 * causalFlops(state), 0, typeOf(state));
}

void attentionShapes(benchmark::internal::Benchmark *bench) {
  bench->ArgNames({"B", "H", "T", "D", "bf16"});
  for (int64_t bf16 : {0, 1})
    for (auto [b, h, t, d] : std::initializer_list<std::array<int64_t, 4>>{{4, 12, 256, 64},
                                                                           {12, 6, 256, 64},
                                                                           {1, 12, 1024, 64},
                                                                           {1, 3, 1024, 64},
                                                                           {1, 12, 4096, 64},
                                                                           {4, 12, 256, 65},
                                                                           {4, 12, 256, 20},
                                                                           {4, 6, 256, 128}})
      bench->Args({b, h, t, d, bf16});
}
BENCHMARK(attention)->Apply(attentionShapes)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(attentionGrad)->Apply(attentionShapes)->UseManualTime()->Unit(benchmark::kMillisecond);

void embeddingGrad(benchmark::State &state) {
  const int64_t n = 1024, v = 50257, c = 768;
  LaunchRunner runner(KernelKind::EmbeddingGrad, omp_get_max_threads());
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(i * 48271 % v);
  runner.ints({{"n", n}, {"v", v}, {"c", c}, {"accumulate", state.range(0)}}).operand("ids", ids);
  runner.operand("dOut", std::vector<float>(n * c)).operand("dTable", std::vector<float>(v * c));
  measure(state, runner, 0, double(state.range(0) ? 3 * n * c * 4 : (v + 3 * n) * c * 4));
}
BENCHMARK(embeddingGrad)->ArgName("accumulate")->Arg(0)->Arg(1)->UseManualTime()->Unit(benchmark::kMillisecond);

/// A (rows, columns) transpose, or a plain copy.
void copy(benchmark::State &state) {
  int64_t rows = state.range(0), columns = state.range(1);
  bool isTranspose = state.range(2) != 0;
  LaunchRunner runner(KernelKind::Copy, omp_get_max_threads());
  runner.ints(
      {{"bytes", 4}, {"size0", 1}, {"size1", 1}, {"size2", 1}, {"size3", 1}, {"size4", rows}, {"size5", columns}});
  runner.ints({{"srcStride4", isTranspose ? 1 : columns}, {"srcStride5", isTranspose ? rows : 1}});
  runner.ints({{"dstStride4", columns}, {"dstStride5", 1}});
  runner.operand("src", std::vector<float>(size_t(rows * columns)));
  runner.operand("dst", std::vector<float>(size_t(rows * columns)));
  measure(state, runner, 0, 8.0 * double(rows * columns));
}
BENCHMARK(copy)
    ->ArgNames({"rows", "columns", "transpose"})
    ->Args({1024, 3072, 0})
    ->Args({1024, 3072, 1})
    ->Args({768, 50257, 1})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

void packWeights(benchmark::State &state) {
  int64_t k = state.range(0), n = state.range(1);
  LaunchRunner runner(KernelKind::Pack, omp_get_max_threads());
  runner.ints({{"k", k}, {"n", n}, {"transpose", state.range(2)}, {"layout", int64_t(RhsLayout::blocked16x64)}});
  runner.operand("src", std::vector<float>(size_t(k * n)));
  runner.operand("dst", std::vector<float>(size_t(packedElements(RhsLayout::blocked16x64, k, n))));
  measure(state, runner, 0, 8.0 * double(k * n));
}
BENCHMARK(packWeights)
    ->ArgNames({"k", "n", "transpose"})
    ->Args({768, 3072, 0})
    ->Args({768, 3072, 1})
    ->Args({768, 50257, 1})
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond);

} // namespace
} // namespace llmc::test
