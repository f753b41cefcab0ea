// Normally distributed weights from a counter: value i of stream s under seed k is a pure function of (k, s, i), so
// that any part of any tensor can be made alone and in any order. Philox4x32-10 makes the bits (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3", 2011), Box-Muller the normals, with our own polynomials: only +, -, *,
// / and sqrt, which IEEE rounds the same everywhere, so the bytes depend on no C library.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace llmc {

/// Ten rounds of Philox4x32: 128 random bits for a 128-bit counter and a 64-bit key.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A stream's number from its name (FNV-1a, 64 bits).
uint64_t streamNumber(std::string_view name);

/// Writes values [first, first + dst.size()) of a stream of N(0, 1) values, f32, |value| < 5.8. Deterministic.
void fillNormal(uint64_t seed, uint64_t stream, uint64_t first, std::span<float> dst);

} // namespace llmc
