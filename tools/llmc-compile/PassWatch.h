// Watches passes run: how long each takes, which one is running, and what the module is after it.
#pragma once

#include "runtime/Status.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "llvm/ADT/MapVector.h"

#include <chrono>
#include <vector>

namespace llmc {

/// What is written down of the module.
struct DumpOptions {
  std::string folder;             ///< "" or where each pass's result goes, numbered in order
  std::vector<std::string> after; ///< passes whose result goes to standard error
};

/// The record of a pipeline; a PassWatch fills it while the pass manager owns that.
struct PassRecord {
  llvm::MapVector<llvm::StringRef, double> seconds; ///< by pass name without "llmc-", in order of first run
  std::string current = "import";                   ///< the pass that is running
  Status dumpStatus;                                ///< the first dump that failed
};

class PassWatch : public mlir::PassInstrumentation {
public:
  PassWatch(PassRecord &record, DumpOptions options) : record(record), options(std::move(options)) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPass(mlir::Pass *pass, mlir::Operation *op) override;
  void runAfterPassFailed(mlir::Pass *pass, mlir::Operation *op) override { runAfterPass(pass, op); }
  /// Writes the module down as the result of `pass`.
  void dump(llvm::StringRef pass, mlir::Operation *module);

private:
  PassRecord &record;
  DumpOptions options;
  unsigned number = 0;
  std::chrono::steady_clock::time_point start;
};

} // namespace llmc
