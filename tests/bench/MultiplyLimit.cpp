// 16 sums in flight hide the latency of either instruction.
#include "tests/bench/MultiplyLimit.h"

#include "backend/cpu/CpuInfo.h"

#include <immintrin.h>

namespace llmc::test {

static constexpr int kSums = 16, kSteps = 50000;

/// The factors are unknown to the compiler and the sums count as used, but stay in registers in the loop.
#define LLMC_LIMIT_LOOP(Vec, zero, step)                                                                               \
  Vec sums[kSums], a = zero, b = zero;                                                                                 \
  for (Vec & sum : sums)                                                                                               \
    sum = zero;                                                                                                        \
  asm volatile("" : "+v"(a), "+v"(b));                                                                                 \
  for (int i = 0; i < kSteps; ++i) {                                                                                   \
    _Pragma("GCC unroll 16") for (Vec & sum : sums) sum = step;                                                        \
  }                                                                                                                    \
  asm volatile("" : : "m"(sums))

__attribute__((target("avx2,fma"))) static double runV3() {
  LLMC_LIMIT_LOOP(__m256, _mm256_setzero_ps(), _mm256_fmadd_ps(a, b, sum));
  return 2.0 * 8 * kSums * kSteps;
}
__attribute__((target("avx512f"))) static double runV4() {
  LLMC_LIMIT_LOOP(__m512, _mm512_setzero_ps(), _mm512_fmadd_ps(a, b, sum));
  return 2.0 * 16 * kSums * kSteps;
}
__attribute__((target("avx512f,avx512bf16"))) static double runV4Bf16() {
  LLMC_LIMIT_LOOP(__m512, _mm512_setzero_ps(), _mm512_dpbf16_ps(sum, __m512bh(a), __m512bh(b)));
  return 4.0 * 16 * kSums * kSteps;
}

double runMultiplyLimit(ElementType type) {
  IsaLevel level = detectIsaLevel().value_or(IsaLevel::v3);
  if (level == IsaLevel::v4Bf16 && type == ElementType::bf16)
    return runV4Bf16();
  return level == IsaLevel::v3 ? runV3() : runV4();
}

} // namespace llmc::test
