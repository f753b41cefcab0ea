// Blocks of partial sums that stay in the first-level cache. One body compiled for three vector widths, and the widest
// that the CPU has is called.
#include "backend/comm/Sum.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace llmc {

constexpr uint64_t kBlock = 1024;
using Sources = std::span<const std::byte *const>;

#define LLMC_BODY [[gnu::always_inline]] static inline

LLMC_BODY float widen(uint16_t value) { return std::bit_cast<float>(static_cast<uint32_t>(value) << 16); }

LLMC_BODY uint16_t narrow(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  uint32_t rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16;
  uint32_t quietNan = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7FFFFFFF) > 0x7F800000 ? quietNan : rounded);
}

LLMC_BODY void sumBlockF32(std::byte *dst, Sources sources, uint64_t begin, uint64_t count) {
  float sums[kBlock];
  std::memcpy(sums, sources[0] + begin * sizeof(float), count * sizeof(float));
  for (const std::byte *source : sources.subspan(1)) {
    const float *from = reinterpret_cast<const float *>(source) + begin;
    for (uint64_t i = 0; i < count; ++i)
      sums[i] += from[i];
  }
  std::memcpy(dst + begin * sizeof(float), sums, count * sizeof(float));
}

LLMC_BODY void sumBlockBf16(std::byte *dst, Sources sources, uint64_t begin, uint64_t count) {
  float sums[kBlock];
  auto at = [&](const std::byte *base) { return reinterpret_cast<const uint16_t *>(base) + begin; };
  const uint16_t *first = at(sources[0]);
  for (uint64_t i = 0; i < count; ++i)
    sums[i] = widen(first[i]);
  for (const std::byte *source : sources.subspan(1)) {
    const uint16_t *from = at(source);
    for (uint64_t i = 0; i < count; ++i)
      sums[i] += widen(from[i]);
  }
  uint16_t *to = reinterpret_cast<uint16_t *>(dst) + begin;
  for (uint64_t i = 0; i < count; ++i)
    to[i] = narrow(sums[i]);
}

LLMC_BODY void sumAll(std::byte *dst, Sources sources, uint64_t count, ElementType type) {
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    uint64_t size = std::min(kBlock, count - begin);
    if (type == ElementType::bf16)
      sumBlockBf16(dst, sources, begin, size);
    else
      sumBlockF32(dst, sources, begin, size);
  }
}

// No target_clones: its resolvers run before a sanitizer is ready.
[[gnu::target("arch=x86-64-v4")]] static void sumV4(std::byte *dst, Sources sources, uint64_t count, ElementType type) {
  sumAll(dst, sources, count, type);
}
[[gnu::target("arch=x86-64-v3")]] static void sumV3(std::byte *dst, Sources sources, uint64_t count, ElementType type) {
  sumAll(dst, sources, count, type);
}
static void sumPlain(std::byte *dst, Sources sources, uint64_t count, ElementType type) {
  sumAll(dst, sources, count, type);
}

void sumInto(std::byte *dst, Sources sources, uint64_t count, ElementType type) {
  if (__builtin_cpu_supports("x86-64-v4"))
    return sumV4(dst, sources, count, type);
  if (__builtin_cpu_supports("x86-64-v3"))
    return sumV3(dst, sources, count, type);
  sumPlain(dst, sources, count, type);
}

} // namespace llmc
