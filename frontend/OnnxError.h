// How import errors look: "<file>: node 'name' (Op): what was expected and what was found". They go through the
// context's diagnostics, so whoever calls the importer decides where they are printed.
#pragma once

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"

#include <string>

namespace llmc {

/// An error about the whole file: "<path>: " and what follows.
mlir::InFlightDiagnostic fileError(mlir::MLIRContext *context, llvm::StringRef path);

/// A name of the model in quotes, for messages: control characters escaped, shortened beyond 100 characters.
std::string inQuotes(llvm::StringRef name);

} // namespace llmc
