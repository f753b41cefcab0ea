// A plan without its trained weights compresses to almost nothing and travels to a machine with a GPU; there it gets
// new ones, as `llmc-gpt` draws them: N(0, 0.02) for matrices, ones for other weights, zeros for biases. The two halves
// of tools/device-check's large model.
#include "runtime/PlanFile.h"
#include "runtime/PlanWriter.h"
#include "tools/llmc-gpt/GptTensor.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>

namespace llmc {

using Section = std::vector<std::byte>;

static Result<Section> readWeights(const PlanFile &file) {
  Section weights(file.weightsBytes());
  std::vector<std::byte> buffer(kWeightsChunkBytes);
  for (size_t i = 0; i < file.numWeightsChunks(); ++i) {
    Result<std::span<const std::byte>> chunk = file.readWeightsChunk(i, buffer);
    LLMC_RETURN_IF_ERROR(chunk);
    std::ranges::copy(*chunk, weights.begin() + static_cast<ptrdiff_t>(i * kWeightsChunkBytes));
  }
  return weights;
}

static GptTensor initialValues(const StateEntry &entry) {
  bool isMatrix = entry.shape.size() > 1;
  GptTensor tensor{entry.name, entry.shape, isMatrix ? TensorRule::normal : TensorRule::ones, 0.02f};
  if (entry.name.ends_with("bias"))
    tensor.rule = TensorRule::zeros;
  tensor.streamName = entry.name;
  tensor.streamColumns = entry.shape.empty() ? 1 : entry.shape.back();
  return tensor;
}

/// Writes `to`: the plan `from` with its parameters zeroed, or drawn anew.
static Status rewrite(const std::string &from, const std::string &to, bool draws) {
  Result<PlanFile> file = PlanFile::open(from);
  LLMC_RETURN_IF_ERROR(file);
  Result<Section> weights = readWeights(*file);
  LLMC_RETURN_IF_ERROR(weights);
  for (const StateEntry &entry : file->plan().state) {
    if (entry.kind != StateKind::parameter)
      continue;
    uint64_t count = 1;
    for (int64_t size : entry.shape)
      count *= static_cast<uint64_t>(size);
    std::span<std::byte> values = std::span(*weights).subspan(entry.fileOffset, count * elementBytes(entry.type));
    std::ranges::fill(values, std::byte{0});
    if (draws)
      fillTensor(initialValues(entry), /*seed=*/1, 0, values);
  }
  return writePlan(to, file->plan(), {{{0, *weights}}, file->code(), file->model()});
}

} // namespace llmc

int main(int argc, char **argv) {
  bool isStrip = argc == 4 && std::strcmp(argv[1], "strip") == 0;
  if (!isStrip && !(argc == 4 && std::strcmp(argv[1], "draw") == 0)) {
    fmt::print(stderr, "usage: plan-weights strip|draw FROM.plan TO.plan\n\n"
                       "strip: zeroes the weights that train; draw: draws them anew, as llmc-gpt does.\n"
                       "Example: plan-weights strip gpt.plan small.plan && gzip small.plan\n");
    return 2;
  }
  if (llmc::Status status = llmc::rewrite(argv[2], argv[3], !isStrip); !status) {
    fmt::print(stderr, "plan-weights: {}\n", status.error().message);
    return 1;
  }
  return 0;
}
