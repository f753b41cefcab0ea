// What a program returns, with the attributes of its results: read and replaced together.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// The values a program returns and one attribute dictionary for each.
struct ProgramResults {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<mlir::Attribute> attributes;

  static ProgramResults of(ProgramOp program);
  /// Makes these the program's results: terminator, function type and attributes.
  void setOn(ProgramOp program) const;
  void add(mlir::Value value, mlir::DictionaryAttr attributes);
};

/// The index of the result with role "loss"; nothing when there is none.
std::optional<unsigned> lossResult(ProgramOp program);

} // namespace llmc
