// Counter-based random numbers: a value is a function of its keys, the same on every machine and for any order of
// asking.
#pragma once

#include <bit>
#include <cstdint>

namespace llmc {

/// The finalizer of SplitMix64 (Steele, Lea, Flood 2014): a bijection of 64 bits that mixes well.
inline uint64_t mixBits(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

/// A uniform number in [0, bound); the bias is below bound / 2^64.
inline uint64_t uniformBelow(uint64_t bits, uint64_t bound) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(bits) * bound) >> 64);
}

/// A random permutation of [0, size) that needs no memory: a Feistel network over the next even number of bits, walked
/// until it lands inside (Black and Rogaway 2002).
class Permutation {
public:
  Permutation(uint64_t size, uint64_t key)
      : size(size), key(key),
        halfBits((size > 2 ? std::bit_width(size - 1) : 1) / 2 + (size > 2 ? std::bit_width(size - 1) : 1) % 2) {}

  uint64_t operator()(uint64_t index) const {
    if (size < 2)
      return index;
    do
      index = encrypt(index);
    while (index >= size);
    return index;
  }

private:
  uint64_t encrypt(uint64_t index) const {
    uint64_t mask = (1ull << halfBits) - 1, left = index >> halfBits, right = index & mask;
    for (uint64_t round = 0; round < 6; ++round) {
      uint64_t next = left ^ (mixBits(key ^ mixBits(right * 8 + round)) & mask);
      left = right;
      right = next;
    }
    return left << halfBits | right;
  }

  uint64_t size, key;
  int halfBits;
};

} // namespace llmc
