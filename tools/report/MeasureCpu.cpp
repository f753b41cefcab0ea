// Peak arithmetic: independent chains of multiply-adds that never leave the registers, in the widest vectors the CPU
// has. Memory: the STREAM triad, a = b + s c, over arrays beyond any cache; the store's own read is not counted.
#include "tools/report/MeasureCpu.h"

#include <algorithm>
#include <fmt/format.h>
#include <immintrin.h>
#include <memory>
#include <thread>
#include <time.h>

namespace llmc {

namespace {

constexpr int kChains = 12; ///< latency 4, two units: eight or more
constexpr int64_t kRounds = 1'500'000;
constexpr int kRepeats = 4;
constexpr size_t kArrayFloats = 8 << 20; ///< of each thread's share; three arrays of 32 MiB

using Work = void (*)(float *);

/// Seconds that this thread has had a CPU: what other processes take is not counted.
double threadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

/// Runs `work(thread)` on all threads at once; what they do together in a second, when each does 1 in a call.
template <typename F> double rateOf(int threads, F work) {
  std::vector<double> seconds(static_cast<size_t>(threads));
  auto timed = [&](int thread) {
    double start = threadSeconds();
    work(thread);
    seconds[size_t(thread)] = threadSeconds() - start;
  };
  std::vector<std::thread> others;
  for (int thread = 1; thread < threads; ++thread)
    others.emplace_back(timed, thread);
  timed(0);
  for (std::thread &other : others)
    other.join();
  double rate = 0;
  for (double time : seconds)
    rate += 1 / std::max(time, 1e-9);
  return rate;
}

template <typename F> double bestRate(int threads, F work) {
  double best = 0;
  for (int repeat = 0; repeat < kRepeats; ++repeat)
    best = std::max(best, rateOf(threads, work));
  return best;
}

// The sums go to memory so that they are not optimized away; nothing may be known of them, or equal chains become one.
__attribute__((target("avx2,fma"))) void multiplyAdd256(float *sink) {
  __m256 sums[kChains] = {}, factor = _mm256_set1_ps(0.999f);
#pragma GCC unroll 16
  for (__m256 &sum : sums)
    asm volatile("" : "+v"(sum));
  for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 16
    for (__m256 &sum : sums)
      sum = _mm256_fmadd_ps(sum, factor, factor);
  for (int i = 0; i < kChains; ++i)
    _mm256_storeu_ps(sink + 8 * i, sums[i]);
}

__attribute__((target("avx512f"))) void multiplyAdd512(float *sink) {
  __m512 sums[kChains] = {}, factor = _mm512_set1_ps(0.999f);
#pragma GCC unroll 16
  for (__m512 &sum : sums)
    asm volatile("" : "+v"(sum));
  for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 16
    for (__m512 &sum : sums)
      sum = _mm512_fmadd_ps(sum, factor, factor);
  for (int i = 0; i < kChains; ++i)
    _mm512_storeu_ps(sink + 16 * i, sums[i]);
}

__attribute__((target("avx512f,avx512bf16"))) void dotBf16(float *sink) {
  __m512 sums[kChains] = {};
#pragma GCC unroll 16
  for (__m512 &sum : sums)
    asm volatile("" : "+v"(sum));
  __m512bh factor = _mm512_cvtne2ps_pbh(_mm512_set1_ps(0.5f), _mm512_set1_ps(0.25f));
  for (int64_t round = 0; round < kRounds; ++round)
#pragma GCC unroll 16
    for (__m512 &sum : sums)
      sum = _mm512_dpbf16_ps(sum, factor, factor);
  for (int i = 0; i < kChains; ++i)
    _mm512_storeu_ps(sink + 16 * i, sums[i]);
}

double gflops(int threads, Work work, double flopsPerRound) {
  std::vector<float> sink(size_t(threads) * 16 * kChains);
  double rate = bestRate(threads, [&](int thread) { work(sink.data() + size_t(thread) * 16 * kChains); });
  return flopsPerRound * kChains * double(kRounds) * rate / 1e9;
}

double triadGbs(int threads) {
  size_t size = kArrayFloats * size_t(threads);
  // Uninitialized: each thread touches its own share first.
  std::unique_ptr<float[]> a(new float[size]), b(new float[size]), c(new float[size]);
  auto share = [&](int thread, auto body) {
    for (size_t i = size_t(thread) * kArrayFloats, end = i + kArrayFloats; i < end; ++i)
      body(i);
  };
  rateOf(threads, [&](int thread) {
    share(thread, [&](size_t i) {
      a[i] = 0;
      b[i] = 1;
      c[i] = float(i & 7);
    });
  });
  double rate = bestRate(threads, [&](int thread) { share(thread, [&](size_t i) { a[i] = b[i] + 0.5f * c[i]; }); });
  return 3.0 * sizeof(float) * double(kArrayFloats) * rate / 1e9;
}

} // namespace

DeviceRates measureCpu(int threads) {
  __builtin_cpu_init();
  bool isWide = __builtin_cpu_supports("avx512f");
  DeviceRates rates;
  rates.name = "this";
  rates.description = fmt::format("this machine, {} thread{}, measured", threads, threads == 1 ? "" : "s");
  rates.f32Gflops = isWide ? gflops(threads, multiplyAdd512, 32) : gflops(threads, multiplyAdd256, 16);
  rates.tf32Gflops = rates.f32Gflops;
  // Without the unit, bf16 operands are widened and multiplied in f32.
  rates.bf16Gflops = isWide && __builtin_cpu_supports("avx512bf16") ? gflops(threads, dotBf16, 64) : rates.f32Gflops;
  rates.memoryGbs = triadGbs(threads);
  rates.isMeasured = true;
  return rates;
}

} // namespace llmc
