// Writes a model whose tensors are rules (GptTensor) to disk, streaming. Small models are one file. Above kInlineBytes
// of tensors the large ones go into MODEL.data beside it (ONNX external data), each at a page boundary so that it can
// be mapped: Protobuf can't hold 2 GB, and a reader needs several times what lies inside a message.
#pragma once

#include "runtime/Status.h"
#include "tools/llmc-gpt/GptGraph.h"

#include <string>

namespace llmc {

inline constexpr uint64_t kInlineBytes = 256ull << 20;

struct ModelFileOptions {
  std::string path;
  uint64_t seed = 0;
  uint64_t inlineBytes = kInlineBytes; ///< with more bytes of tensors than this, there is a data file
};

struct ModelFileReport {
  uint64_t tensorBytes = 0;
  std::string dataPath; ///< empty: all in one file
};

/// Writes the model, and its data file first. Each appears whole or not at all. Progress goes to standard error.
Result<ModelFileReport> writeModel(GptModel model, const ModelFileOptions &options);

} // namespace llmc
