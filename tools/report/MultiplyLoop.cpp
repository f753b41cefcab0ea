// 12 sums in flight hide the latency of four on two units, and leave registers for the factors of AVX2's 16.
#include "tools/report/MultiplyLoop.h"

#include <immintrin.h>

namespace llmc {

static constexpr int kSums = 12;

/// The factors are unknown to the compiler and the sums count as used, but stay in registers in the loop.
#define LLMC_MULTIPLY_LOOP(Vec, zero, step)                                                                            \
  Vec sums[kSums], a = zero, b = zero;                                                                                 \
  for (Vec & sum : sums)                                                                                               \
    sum = zero;                                                                                                        \
  asm volatile("" : "+v"(a), "+v"(b));                                                                                 \
  for (int64_t i = 0; i < rounds; ++i) {                                                                               \
    _Pragma("GCC unroll 16") for (Vec & sum : sums) sum = step;                                                        \
  }                                                                                                                    \
  asm volatile("" : : "m"(sums))

__attribute__((target("avx2,fma"))) static double runV3(int64_t rounds) {
  LLMC_MULTIPLY_LOOP(__m256, _mm256_setzero_ps(), _mm256_fmadd_ps(a, b, sum));
  return 2.0 * 8 * kSums * double(rounds);
}
__attribute__((target("avx512f"))) static double runV4(int64_t rounds) {
  LLMC_MULTIPLY_LOOP(__m512, _mm512_setzero_ps(), _mm512_fmadd_ps(a, b, sum));
  return 2.0 * 16 * kSums * double(rounds);
}
__attribute__((target("avx512f,avx512bf16"))) static double runV4Bf16(int64_t rounds) {
  LLMC_MULTIPLY_LOOP(__m512, _mm512_setzero_ps(), _mm512_dpbf16_ps(sum, __m512bh(a), __m512bh(b)));
  return 4.0 * 16 * kSums * double(rounds);
}

double runMultiplyLoop(ElementType type, int64_t rounds) {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx512f"))
    return runV3(rounds);
  return type == ElementType::bf16 && __builtin_cpu_supports("avx512bf16") ? runV4Bf16(rounds) : runV4(rounds);
}

} // namespace llmc
