// Blocks of partial sums that stay in the first-level cache. Compiled once per vector width, chosen when loaded.
#include "backend/comm/Sum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llmc {

constexpr uint64_t kBlock = 1024;

static inline float widen(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

static inline uint16_t narrow(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  uint32_t quietNan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quietNan : rounded);
}

#define LLMC_VECTOR_WIDTHS __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))

LLMC_VECTOR_WIDTHS static void sumF32(float *dst, const float *a, const float *b, uint64_t count) {
#pragma GCC ivdep
  for (uint64_t i = 0; i < count; ++i)
    dst[i] = a[i] + b[i];
}

LLMC_VECTOR_WIDTHS static void widenInto(float *dst, const uint16_t *src, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    dst[i] = widen(src[i]);
}

LLMC_VECTOR_WIDTHS static void addWidened(float *dst, const uint16_t *src, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    dst[i] += widen(src[i]);
}

LLMC_VECTOR_WIDTHS static void narrowInto(uint16_t *dst, const float *src, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i)
    dst[i] = narrow(src[i]);
}

static void sumBlockF32(std::byte *dst, std::span<const std::byte *const> sources, uint64_t begin, uint64_t count) {
  auto at = [&](const std::byte *base) { return reinterpret_cast<const float *>(base) + begin; };
  float sums[kBlock];
  float *result = reinterpret_cast<float *>(dst) + begin;
  const float *partial = at(sources[0]);
  for (size_t i = 1; i < sources.size(); ++i) {
    float *to = i + 1 == sources.size() ? result : sums;
    sumF32(to, partial, at(sources[i]), count);
    partial = to;
  }
  if (partial != result)
    std::memmove(result, partial, count * sizeof(float));
}

static void sumBlockBf16(std::byte *dst, std::span<const std::byte *const> sources, uint64_t begin, uint64_t count) {
  auto at = [&](const std::byte *base) { return reinterpret_cast<const uint16_t *>(base) + begin; };
  float sums[kBlock];
  widenInto(sums, at(sources[0]), count);
  for (const std::byte *source : sources.subspan(1))
    addWidened(sums, at(source), count);
  narrowInto(reinterpret_cast<uint16_t *>(dst) + begin, sums, count);
}

void sumInto(std::byte *dst, std::span<const std::byte *const> sources, uint64_t count, ElementType type) {
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t size = std::min(kBlock, count - begin);
    type == ElementType::bf16 ? sumBlockBf16(dst, sources, begin, size) : sumBlockF32(dst, sources, begin, size);
  }
}

} // namespace llmc
