// A tensor of the model that is not held in memory: its name, its shape and the rule that makes its values, a piece at
// a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// How a tensor's values come about.
enum class TensorRule {
  zeros,     ///< f32
  ones,      ///< f32
  normal,    ///< f32, N(0, deviation^2), see fillNormal
  causalMask ///< bool (T, T), true where a query (row) must not see a key (column): above the diagonal
};

struct GptTensor {
  std::string name;
  std::vector<int64_t> shape; ///< one or two dimensions
  TensorRule rule = TensorRule::zeros;
  float deviation = 0; ///< of rule normal

  // Rule normal: the tensor is the columns [firstColumn, firstColumn + shape[1]) of a matrix of streamColumns columns,
  // whose values in row-major order are the stream named streamName. So a third of c_attn has the same values as in
  // c_attn itself.
  std::string streamName = {};
  int64_t streamColumns = 0;
  int64_t firstColumn = 0;

  uint64_t numElements() const;
  uint64_t elementBytes() const { return rule == TensorRule::causalMask ? 1 : sizeof(float); }
  uint64_t numBytes() const { return numElements() * elementBytes(); }
};

/// Writes the elements [first, first + dst.size() / elementBytes()) of the tensor in row-major order, little-endian.
void fillTensor(const GptTensor &tensor, uint64_t seed, uint64_t first, std::span<std::byte> dst);

} // namespace llmc
