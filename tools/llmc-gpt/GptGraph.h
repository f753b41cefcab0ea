// The GPT itself: token ids in, logits and mean cross-entropy out, GPT-2's architecture and initialisation, in ONNX
// opset 18's standard operators. Names are nanoGPT's; linear weights are stored (in, out), so that none needs a
// Transpose; the head is transformer.wte.weight itself, transposed in the graph.
#pragma once

#include "tools/llmc-gpt/GptConfig.h"
#include "tools/llmc-gpt/GptTensor.h"

#include <onnx/onnx_pb.h>
#include <vector>

namespace llmc {

struct GptModel {
  onnx::ModelProto proto;         ///< everything but the tensors
  std::vector<GptTensor> tensors; ///< weights and the mask, in the order of their first use
};

/// Builds the model of a valid config (see whyInvalid). Small, whatever the model's size: weights are rules.
GptModel buildGpt(const GptConfig &config);

} // namespace llmc
