// External data of a tensor: where its entries say it lies, believed only after every check.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <onnx/onnx_pb.h>
#include <optional>
#include <string>

namespace llmc {

struct ExternalData {
  std::string location; ///< relative to the model's folder, inside it
  uint64_t offset = 0;
  std::optional<uint64_t> length;
};

/// The entries of a tensor. Nothing, and an error, when they are incomplete, no numbers, or lead out of the model's
/// folder.
std::optional<ExternalData> parseExternalData(const onnx::TensorProto &tensor, std::string &error);
/// The file of a location, as a path, when it is a regular file below `modelPath`'s folder and reached by no symbolic
/// link.
std::optional<std::string> resolveExternalFile(llvm::StringRef modelPath, llvm::StringRef location, std::string &error);

} // namespace llmc
