// The bytes of a plan file: what its writer and its reader must agree on, and nobody else knows.
//
//   header (128 bytes) | metadata (plan.proto) | pad | weights | pad | code | pad | model
//
// Sections start on page boundaries, the padding is zero. The header holds each section's place and hash and the file's
// size; the weights' hash is that of their chunks' hashes (in the metadata), so the header's hash names the whole
// content. All numbers are little-endian.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace llmc {

static_assert(std::endian::native == std::endian::little, "plan files are little-endian and read in place");

inline constexpr std::array<char, 8> kPlanMagic = {'L', 'L', 'M', 'C', 'P', 'L', 'A', 'N'};
inline constexpr uint32_t kPlanVersion = 3;
inline constexpr uint64_t kPlanPageBytes = 4096;
/// The metadata is small (launches, names); anything larger is no plan.
inline constexpr uint64_t kMaxMetadataBytes = 256ull << 20;

struct PlanSection {
  uint64_t offset = 0; ///< from the file's start
  uint64_t bytes = 0;
  uint64_t hash = 0; ///< XXH3-64
};

struct PlanHeader {
  std::array<char, 8> magic = kPlanMagic;
  uint32_t version = kPlanVersion;
  uint32_t headerBytes = 128;
  uint64_t fileBytes = 0;
  PlanSection metadata, weights, code, model;
  uint64_t headerHash = 0; ///< of all bytes before it
};
static_assert(sizeof(PlanHeader) == 128);

inline uint64_t planHash(std::span<const std::byte> bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

inline uint64_t planHeaderHash(const PlanHeader &header) {
  return XXH3_64bits(&header, offsetof(PlanHeader, headerHash));
}

inline uint64_t planPageAligned(uint64_t offset) {
  return (offset + kPlanPageBytes - 1) / kPlanPageBytes * kPlanPageBytes;
}

} // namespace llmc
