// What passes say: errors become the tool's error, remarks a record of what was done and declined, warnings are shown
// and stand among the remarks.
#pragma once

#include "runtime/Status.h"

#include "mlir/IR/Diagnostics.h"

#include <map>
#include <vector>

namespace llmc {

/// A remark of a pass.
struct Remark {
  std::string pass;
  std::string program; ///< of the plan; "" for what is said before there are programs
  std::string node;    ///< the ONNX nodes' names; "" where there is none
  std::string kind;    ///< "applied", "declined" or "info"
  std::string message; ///< without the kind
};

/// Listens to a context's diagnostics for as long as it lives.
class DiagnosticRecord {
public:
  /// `currentPass` says who is speaking; it must outlive the record.
  DiagnosticRecord(mlir::MLIRContext &context, const std::string &currentPass);

  /// Warnings are among them, as "info".
  const std::vector<Remark> &getRemarks() const { return remarks; }
  /// Each with its node, for the terminal.
  const std::vector<std::string> &getWarnings() const { return warnings; }
  /// All errors so far, a line each; `otherwise` when nobody said anything.
  Error error(const std::string &otherwise) const;
  /// Writes the remarks as JSON, one a line.
  Status write(const std::string &path) const;

private:
  mlir::LogicalResult handle(mlir::Diagnostic &diagnostic);

  const std::string &currentPass;
  std::vector<Remark> remarks;
  std::vector<std::string> warnings;
  std::string errors;
  mlir::ScopedDiagnosticHandler handler;
};

} // namespace llmc
