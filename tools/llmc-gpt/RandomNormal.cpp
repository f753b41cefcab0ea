// Works on batches of counters, structure of arrays, so that the compiler makes vector code of each loop.
#include "tools/llmc-gpt/RandomNormal.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace llmc {

static constexpr uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
static constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
static constexpr int kRounds = 10;

static constexpr size_t kBatch = 256;              ///< counters at a time
static constexpr size_t kBatchValues = 4 * kBatch; ///< a counter gives four values

namespace {
/// A counter's or an output's four words, for a batch.
struct PhiloxBatch {
  alignas(64) uint32_t word[4][kBatch];
};
} // namespace

static inline void philoxRound(uint32_t &x0, uint32_t &x1, uint32_t &x2, uint32_t &x3, uint32_t key0, uint32_t key1) {
  uint64_t product0 = static_cast<uint64_t>(kMultiplier0) * x0;
  uint64_t product1 = static_cast<uint64_t>(kMultiplier1) * x2;
  x0 = static_cast<uint32_t>(product1 >> 32) ^ x1 ^ key0;
  x2 = static_cast<uint32_t>(product0 >> 32) ^ x3 ^ key1;
  x1 = static_cast<uint32_t>(product1);
  x3 = static_cast<uint32_t>(product0);
}

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < kRounds; ++round) {
    philoxRound(counter[0], counter[1], counter[2], counter[3], key[0], key[1]);
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

uint64_t streamNumber(std::string_view name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (char letter : name)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return hash;
}

/// Philox of the counters (block + i, stream).
static void philoxBatch(uint64_t seed, uint64_t stream, uint64_t block, PhiloxBatch &out) {
  for (size_t i = 0; i < kBatch; ++i) {
    uint32_t x0 = static_cast<uint32_t>(block + i), x1 = static_cast<uint32_t>((block + i) >> 32);
    uint32_t x2 = static_cast<uint32_t>(stream), x3 = static_cast<uint32_t>(stream >> 32);
    uint32_t key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
    for (int round = 0; round < kRounds; ++round, key0 += kWeyl0, key1 += kWeyl1)
      philoxRound(x0, x1, x2, x3, key0, key1);
    out.word[0][i] = x0;
    out.word[1][i] = x1;
    out.word[2][i] = x2;
    out.word[3][i] = x3;
  }
}

/// ln(u), u in (0, 1): u = 2^e m with m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh(s), s = (m - 1) / (m + 1), |s| <
/// 0.172.
static inline float logOf(float u) {
  constexpr uint32_t kSqrtHalfBits = 0x3f3504f3;
  uint32_t bits = std::bit_cast<uint32_t>(u);
  int32_t exponent = static_cast<int32_t>(bits - kSqrtHalfBits) >> 23;
  float m = std::bit_cast<float>(bits - (static_cast<uint32_t>(exponent) << 23));
  float s = (m - 1.0f) / (m + 1.0f), z = s * s;
  float series = 1.0f + z * (1.0f / 3 + z * (1.0f / 5 + z * (1.0f / 7 + z * (1.0f / 9))));
  return 0.693147180559945f * static_cast<float>(exponent) + 2.0f * s * series;
}

/// Two independent N(0, 1) values from 64 random bits: sqrt(-2 ln u) times the cosine and the sine of a random angle.
/// The angle is a quarter turn's number (2 bits) and an offset in [-pi/4, pi/4) (30 bits), where Taylor's series are
/// short.
static inline void boxMuller(uint32_t bitsU, uint32_t bitsAngle, float &first, float &second) {
  float u = (static_cast<float>(static_cast<int32_t>(bitsU >> 9)) + 0.5f) * 0x1p-23f; // in (0, 1), exact
  float radius = std::sqrt(-2.0f * logOf(u));
  float x = (static_cast<float>(static_cast<int32_t>(bitsAngle & 0x3fffffff)) * 0x1p-30f - 0.5f) * 1.57079632679490f;
  float y = x * x;
  float sine = x * (1.0f - y / 6 * (1.0f - y / 20 * (1.0f - y / 42 * (1.0f - y / 72))));
  float cosine = 1.0f - y / 2 * (1.0f - y / 12 * (1.0f - y / 30 * (1.0f - y / 56 * (1.0f - y / 90))));
  // A quarter turn swaps sine and cosine and half a turn flips both signs: done on the bits, as branches are not
  // vectorized.
  bool isOdd = bitsAngle & 0x40000000;
  uint32_t sign = bitsAngle & 0x80000000;
  uint32_t along = std::bit_cast<uint32_t>(radius * cosine), across = std::bit_cast<uint32_t>(radius * sine);
  first = std::bit_cast<float>((isOdd ? across ^ 0x80000000 : along) ^ sign);
  second = std::bit_cast<float>((isOdd ? along : across) ^ sign);
}

/// All values of the batch that begins at counter `block`.
static void normalBatch(uint64_t seed, uint64_t stream, uint64_t block, float *dst) {
  PhiloxBatch random;
  philoxBatch(seed, stream, block, random);
  for (size_t i = 0; i < kBatch; ++i) {
    boxMuller(random.word[0][i], random.word[1][i], dst[4 * i], dst[4 * i + 1]);
    boxMuller(random.word[2][i], random.word[3][i], dst[4 * i + 2], dst[4 * i + 3]);
  }
}

void fillNormal(uint64_t seed, uint64_t stream, uint64_t first, std::span<float> dst) {
  alignas(64) float batch[kBatchValues];
  while (!dst.empty()) {
    uint64_t block = first / 4;
    size_t skip = first % 4;
    size_t count = std::min(dst.size(), kBatchValues - skip);
    normalBatch(seed, stream, block, batch);
    std::copy_n(batch + skip, count, dst.begin());
    first += count;
    dst = dst.subspan(count);
  }
}

} // namespace llmc
