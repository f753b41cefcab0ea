#include "tools/llmc-gpt/GptTensor.h"

#include "tools/llmc-gpt/RandomNormal.h"

#include <algorithm>
#include <bit>

namespace llmc {

static_assert(std::endian::native == std::endian::little,
              "ONNX weights are little-endian and written as they lie in memory");

uint64_t GptTensor::numElements() const {
  uint64_t count = 1;
  for (int64_t dim : shape)
    count *= static_cast<uint64_t>(dim);
  return count;
}

static void fillNormalTensor(const GptTensor &tensor, uint64_t seed, uint64_t first, std::span<float> dst) {
  auto columns = static_cast<uint64_t>(tensor.shape.back());
  auto streamColumns = static_cast<uint64_t>(tensor.streamColumns);
  uint64_t stream = streamNumber(tensor.streamName);
  while (!dst.empty()) {
    uint64_t row = first / columns, column = first % columns;
    // Whole tensors are one run of the stream; parts of one are a run a row.
    bool isWhole = columns == streamColumns;
    size_t count = isWhole ? dst.size() : std::min<uint64_t>(dst.size(), columns - column);
    fillNormal(seed, stream, row * streamColumns + static_cast<uint64_t>(tensor.firstColumn) + column,
               dst.first(count));
    for (float &value : dst.first(count))
      value *= tensor.deviation;
    first += count;
    dst = dst.subspan(count);
  }
}

static void fillCausalMask(const GptTensor &tensor, uint64_t first, std::span<std::byte> dst) {
  auto columns = static_cast<uint64_t>(tensor.shape.back());
  for (size_t i = 0; i < dst.size(); ++i) {
    uint64_t query = (first + i) / columns, key = (first + i) % columns;
    dst[i] = std::byte{key > query};
  }
}

void fillTensor(const GptTensor &tensor, uint64_t seed, uint64_t first, std::span<std::byte> dst) {
  if (tensor.rule == TensorRule::causalMask)
    return fillCausalMask(tensor, first, dst);
  std::span<float> values(reinterpret_cast<float *>(dst.data()), dst.size() / sizeof(float));
  if (tensor.rule == TensorRule::normal)
    return fillNormalTensor(tensor, seed, first, values);
  std::ranges::fill(values, tensor.rule == TensorRule::ones ? 1.0f : 0.0f);
}

} // namespace llmc
