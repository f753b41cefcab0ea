// The module as a graph that people can look at: the model as it came, the training step before it is fused, the
// kernels that it ends as.
#pragma once

#include "ir/Dialect.h"
#include "tools/report/ReportPage.h"

#include "mlir/Pass/PassInstrumentation.h"

namespace llmc {

/// The ops of a program as nodes. Where values are kept (get, set, scalars, constants) is no node but said at the op
/// that reads or writes it; neither are views where `isKernels`.
Graph graphOf(ProgramOp program, bool isKernels);

/// Takes a graph of the training step before the first pass that makes kernels of it.
class GraphWatch : public mlir::PassInstrumentation {
public:
  /// `graphs` must outlive the pass manager.
  explicit GraphWatch(std::vector<PageGraph> &graphs) : graphs(graphs) {}
  void runBeforePass(mlir::Pass *pass, mlir::Operation *op) override;

private:
  std::vector<PageGraph> &graphs;
  bool isTaken = false;
};

/// Adds a graph of the module's program of that kind, if it has one.
void addGraph(std::vector<PageGraph> &graphs, mlir::ModuleOp module, llvm::StringRef kind, bool isKernels,
              const std::string &title, const std::string &note);

} // namespace llmc
