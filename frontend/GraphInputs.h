// Shapes of a graph's inputs: dynamic dimensions get their sizes from the user, and what stays open is asked for by
// name.
#pragma once

#include "frontend/ModelFile.h"
#include "frontend/OnnxImporter.h"

#include "llvm/ADT/StringMap.h"

namespace llmc {

struct GraphInputs {
  std::vector<std::string> names;
  std::vector<mlir::RankedTensorType> types; ///< one for each name
  llvm::StringMap<int64_t> dims;             ///< sizes of named dimensions
};

/// Binds the inputs that are no initializers. Errors name the dimensions and the flags that bind them.
mlir::FailureOr<GraphInputs> bindInputs(mlir::MLIRContext *context, const ModelFile &file,
                                        const ImportOptions &options);

} // namespace llmc
