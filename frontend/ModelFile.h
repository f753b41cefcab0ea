// A model file, opened and validated but not imported: mapped, walked on the wire, its graph parsed without the
// weights' payloads (they stay where they lie in the file), checked by ONNX's checker, local functions inlined.
// ModelProto is seen by this folder only.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "mlir/Support/LLVM.h"
#include "llvm/Support/MemoryBuffer.h"

#include <memory>
#include <onnx/onnx_pb.h>
#include <string>
#include <vector>

namespace llmc {

/// The opsets of ONNX's own domain that are read.
inline constexpr int64_t kOldestOpset = 7, kNewestOpset = 26;
/// No tensor of a model may have more elements: a terabyte of f32.
inline constexpr int64_t kMostElements = int64_t(1) << 38;

/// Where an initializer of the main graph lies in the file.
struct InitializerBytes {
  llvm::StringRef message; ///< the TensorProto
  llvm::StringRef rawData; ///< its raw_data
  bool hasRawData = false;
};

struct ModelFile {
  std::string path; ///< as given, for messages
  std::shared_ptr<llvm::MemoryBuffer> bytes;
  onnx::ModelProto model;                     ///< initializers of the main graph lack their raw_data
  std::vector<InitializerBytes> initializers; ///< one for each of model.graph().initializer(), in the same order
  int64_t opset = 0;                          ///< of ONNX's own domain
};

/// Opens a model. Errors go to the context's diagnostics and name the file.
mlir::FailureOr<ModelFile> openModel(mlir::MLIRContext *context, const std::string &path);

/// Why a file cannot be a model, in words, when its first bytes say so; else "".
std::string foreignFileHint(llvm::StringRef bytes);

} // namespace llmc
