// Peak arithmetic: multiply-adds that never leave the registers. Memory: the STREAM triad, a = b + s c, over arrays
// beyond any cache; the store's own read is not counted.
#include "tools/report/MeasureCpu.h"

#include "tools/report/MultiplyLoop.h"

#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <thread>
#include <time.h>

namespace llmc {

namespace {

constexpr int64_t kRounds = 1'500'000;
constexpr int kRepeats = 4;
constexpr size_t kArrayFloats = 8 << 20; ///< of each thread's share; three arrays of 32 MiB

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

double gflops(int threads, ElementType type) {
  std::vector<double> flops(static_cast<size_t>(threads));
  double rate = bestRate(threads, [&](int thread) { flops[size_t(thread)] = runMultiplyLoop(type, kRounds); });
  return flops[0] * rate / 1e9;
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
  DeviceRates rates;
  rates.name = "this";
  rates.description = fmt::format("this machine, {} thread{}, measured", threads, threads == 1 ? "" : "s");
  rates.f32Gflops = rates.tf32Gflops = gflops(threads, ElementType::f32);
  rates.bf16Gflops = gflops(threads, ElementType::bf16);
  rates.memoryGbs = triadGbs(threads);
  rates.isMeasured = true;
  return rates;
}

} // namespace llmc
