// Who is who among a model's float initializers: which of them train, which decay, and why the others do not.
#pragma once

#include "ir/Dialect.h"

#include <optional>
#include <string>
#include <vector>

namespace llmc {

/// One float initializer as it is shown to people.
struct LedgerEntry {
  std::string name;
  std::string storedType; ///< in the file: "float", "float16", ...
  std::vector<int64_t> shape;
  std::vector<std::string> uses; ///< names of the ONNX nodes that read it
  bool trains = false;
  bool decays = false;
  std::string
      reason; ///< why it does not train: "mask", "rotary table", "one number", "no gradient reaches it", "not used"
};

/// An input and who fills it.
struct LedgerInput {
  std::string name;
  std::string role;
};

struct Ledger {
  std::vector<LedgerEntry> entries; ///< in the order of the file
  std::vector<LedgerInput> inputs;

  /// A table for the terminal: what trains, then what does not and why.
  void print(llvm::raw_ostream &out) const;
};

/// A float initializer of two or more elements, as a variable of the module.
struct Weight {
  VariableOp variable;
  GetOp get;        ///< null once nothing reads it
  size_t entry = 0; ///< in the ledger
};

/// Decides which weights train: those that the loss's gradient reaches and that are no mask, rotary table or rotary
/// frequencies.
void decideTraining(llvm::ArrayRef<Weight> weights, mlir::Value loss, Ledger &ledger);

/// Decides which of those that train decay, by "matrices", "all" or a regular expression. The error is what is wrong
/// with the expression.
std::optional<std::string> decideDecay(const std::string &rule, Ledger &ledger);

/// What makes a model look damaged by its exporter: a matrix that trains twice, once as its own transpose (a split
/// tie), or a vector that several nodes share (merged parameters). Nothing when nothing does.
std::optional<std::string> describeDamage(llvm::ArrayRef<Weight> weights, const Ledger &ledger);

} // namespace llmc
