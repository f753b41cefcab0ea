// What the launches of a step program compute, and by which ONNX nodes' names a value of one compilation finds its
// counterpart in another compilation of the same model.
#pragma once

#include "ir/Dialect.h"
#include "runtime/Plan.h"

#include <map>

namespace llmc {

/// One float result of a launch.
struct StepValue {
  mlir::Value value;
  llvm::SmallVector<llvm::StringRef> names; ///< of the nodes whose result it is
  size_t launch = 0;
  bool isForward = false; ///< the loss is computed from it
  bool isFinal = false;   ///< the node's own result, not what is computed on the way there

  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
};

struct StepValues {
  std::vector<StepValue> values; ///< in the order of the launches
  /// What variables hold after the step, by their names, and the outputs by theirs: the same in every compilation.
  std::map<std::string, mlir::Value> variables, outputs;
};

/// The module's program "step".
ProgramOp stepProgram(mlir::ModuleOp module);
/// Its values. With `viewNames` a value is also known by the views of it.
StepValues collectStepValues(ProgramOp program, bool viewNames);
/// The launches that read a value, also through views.
llvm::SmallVector<mlir::Operation *> readersOf(mlir::Value value);

} // namespace llmc
