// Kernels of a training step as LLVM's NVPTX makes PTX of them, for the simulator's tests and benchmark. Compiled with
// clang for sm_80 when the tests are built. MISSING_BARRIER leaves out one barrier of the block's sum.
typedef float Float4 __attribute__((ext_vector_type(4)));
typedef unsigned Words4 __attribute__((ext_vector_type(4)));
#define GLOBAL __attribute__((address_space(1)))
#define KERNEL __attribute__((nvptx_kernel)) void
#define THREAD __nvvm_read_ptx_sreg_tid_x()
#define NUM_THREADS __nvvm_read_ptx_sreg_ntid_x()
#define BLOCK __nvvm_read_ptx_sreg_ctaid_x()
#define NUM_BLOCKS __nvvm_read_ptx_sreg_nctaid_x()

static __attribute__((address_space(3))) float partial[32];

static inline float exchanged(float value, int distance) {
  return __builtin_bit_cast(float, __nvvm_shfl_sync_bfly_i32(-1, __builtin_bit_cast(int, value), distance, 31));
}

static inline float blockSum(float value) {
  for (int distance = 16; distance > 0; distance /= 2)
    value += exchanged(value, distance);
#ifndef MISSING_BARRIER
  __nvvm_bar_sync(0);
#endif
  if (THREAD % 32 == 0)
    partial[THREAD / 32] = value;
  __nvvm_bar_sync(0);
  float sum = 0;
  for (unsigned i = 0; i < NUM_THREADS / 32; ++i)
    sum += partial[i];
  return sum;
}

KERNEL layerNorm(GLOBAL const float *src, GLOBAL const float *weight, GLOBAL float *dst, int width, float epsilon) {
  GLOBAL const float *row = src + (long)BLOCK * width;
  float sum = 0;
  for (int i = THREAD; i < width; i += NUM_THREADS)
    sum += row[i];
  float mean = blockSum(sum) / width;
  sum = 0;
  for (int i = THREAD; i < width; i += NUM_THREADS)
    sum += (row[i] - mean) * (row[i] - mean);
  float scale = __nvvm_rsqrt_approx_f(blockSum(sum) / width + epsilon);
  for (int i = THREAD; i < width; i += NUM_THREADS)
    dst[(long)BLOCK * width + i] = (row[i] - mean) * scale * weight[i];
}

KERNEL gelu(GLOBAL const Float4 *src, GLOBAL Float4 *dst, long numVectors) {
  for (long i = (long)BLOCK * NUM_THREADS + THREAD; i < numVectors; i += (long)NUM_BLOCKS * NUM_THREADS) {
    Float4 value = src[i];
    for (int k = 0; k < 4; ++k) {
      float x = value[k], inner = 0.7978845608f * (x + 0.044715f * x * x * x);
      // x·(1 + tanh(u))/2 = x·(1 − 1/(e^2u + 1))
      value[k] = x * (1 - 1 / (__nvvm_ex2_approx_f(2.885390082f * inner) + 1));
    }
    dst[i] = value;
  }
}

KERNEL crossEntropy(GLOBAL const float *logits, GLOBAL const long *targets, GLOBAL float *losses, int vocabulary) {
  GLOBAL const float *row = logits + (long)BLOCK * vocabulary;
  float sum = 0;
  for (int i = THREAD; i < vocabulary; i += NUM_THREADS)
    sum += __nvvm_ex2_approx_f(row[i] * 1.442695041f);
  sum = blockSum(sum);
  if (THREAD == 0)
    losses[BLOCK] = __nvvm_lg2_approx_f(sum) * 0.6931471806f - row[targets[BLOCK]];
}

/// Eight bf16 in 16 bytes, times a scale, rounded by adding half.
KERNEL scaleBf16(GLOBAL const Words4 *src, GLOBAL Words4 *dst, float scale, long numVectors) {
  long i = (long)BLOCK * NUM_THREADS + THREAD;
  if (i >= numVectors)
    return;
  Words4 value = src[i];
  for (int k = 0; k < 4; ++k) {
    float low = __builtin_bit_cast(float, value[k] << 16) * scale;
    float high = __builtin_bit_cast(float, value[k] & 0xffff0000u) * scale;
    value[k] = (__builtin_bit_cast(unsigned, low) + 0x8000u) >> 16 |
               ((__builtin_bit_cast(unsigned, high) + 0x8000u) & 0xffff0000u);
  }
  dst[i] = value;
}

/// Integers of all widths, a table in local memory, a switch.
KERNEL mixed(GLOBAL const unsigned short *src, GLOBAL int *dst, int n) {
  int table[64];
  for (int i = 0; i < 64; ++i)
    table[i * n & 63] = i * 3 - n;
  int value = src[THREAD];
  long product = (long)value * n;
  switch (value & 7) {
  case 0:
    value = product / 7;
    break;
  case 1:
    value = product % 13;
    break;
  case 2:
    value = __builtin_popcount(value) - n;
    break;
  case 3:
    value = (signed char)value;
    break;
  default:
    value = product >> 3;
    break;
  }
  dst[THREAD] = value + table[THREAD & 63];
}
