// ONNX to the dialect llmc: the only way in. The result is one module with llmc ops, whose locations are the ONNX
// nodes' names, and what is needed to write the trained model back; ONNX's own structures stay behind.
#pragma once

#include "frontend/ParameterLedger.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct ImportOptions {
  std::string path;
  std::optional<int64_t> batch, seq;   ///< first and second dimension of integer inputs, where these are dynamic
  std::map<std::string, int64_t> dims; ///< dynamic dimensions by name
  std::string lossOutput;              ///< the output that is the loss; "" finds it
  std::string decayRule = "matrices";  ///< "matrices" (rank 2 and more), "all", or a regular expression on names
  bool asExported = false;             ///< take parameters as the file stores them, though that looks damaged
  bool keepDropout = true;             ///< false: every Dropout is the identity
};

/// Where a trained parameter goes back into the source model.
struct Splice {
  std::string parameter;    ///< the variable's name
  mlir::Type type;          ///< the initializer's element type in the file
  std::string transform;    ///< "": the initializer has the parameter's own layout
  uint64_t modelOffset = 0; ///< where its TensorProto ends in strippedModel; the payload's fields belong there
  uint64_t bytes = 0;       ///< payload bytes in `type`
};

struct ImportedModel {
  /// One variable per weight, then @graph: inputs (llmc.name; llmc.role "tokens", "labels", "labels_unshifted" or "";
  /// llmc.vocabulary for the ids of the first three) to results (llmc.name; llmc.role "loss", "logits" or ""), the loss
  /// first.
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::vector<uint8_t>
      strippedModel; ///< the file's bytes without the payloads of weights that train; external data of others inline
  std::vector<std::string> externalFiles; ///< other files that weights were read from
  std::vector<Splice> splice;             ///< in the order of strippedModel
  Ledger ledger;
};

/// Imports a model. Errors go to the context's diagnostics; each names the file and, where there is one, the node.
/// Weights stay mapped from the model's files for as long as the context lives.
mlir::FailureOr<ImportedModel> importOnnx(mlir::MLIRContext &context, const ImportOptions &options);

} // namespace llmc
