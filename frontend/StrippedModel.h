// The source model without its weights' payloads: what the runtime needs, beside the parameters, to write the trained
// model as ONNX.
#pragma once

#include "frontend/ModelFile.h"

#include "llvm/ADT/STLFunctionalExtras.h"

namespace llmc {

struct StrippedModel {
  std::vector<uint8_t> bytes;
  std::vector<uint64_t> ends; ///< for each initializer of the main graph: where its TensorProto ends in `bytes`
};

/// Copies the file's bytes, every field that it does not know included. Initializers for which `strips` says so lose
/// their payload, those in external data get the bytes that `payload` gives for them.
StrippedModel stripModel(const ModelFile &file, llvm::ArrayRef<bool> strips,
                         llvm::function_ref<llvm::StringRef(int)> payload);

} // namespace llmc
