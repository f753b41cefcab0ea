// What a graph gives: its loss, found or appended, then its other outputs; and which of its inputs carry tokens and
// labels.
#pragma once

#include "frontend/GraphInputs.h"
#include "frontend/OnnxOps.h"

namespace llmc {

/// One result of the program.
struct GraphOutput {
  std::string name;
  std::string role; ///< "loss", "logits" or ""
  mlir::Value value;
};

/// The outputs, the loss first. Without a loss among them, cross-entropy of the logits against a new input `targets` is
/// appended.
mlir::FailureOr<llvm::SmallVector<GraphOutput>> findOutputs(GraphState &state, const GraphInputs &inputs,
                                                            const ImportOptions &options, ProgramOp program);

/// Sets llmc.role and llmc.vocabulary of the program's arguments. Fails when tokens contradict --batch or --seq.
mlir::LogicalResult setInputRoles(const ModelFile &file, const ImportOptions &options, ProgramOp program);

} // namespace llmc
