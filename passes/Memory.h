// Which piece of memory a value is, before anything has a place: views are their root's memory, a tied result is its
// operand's, and a variable's new value should be the variable's. What schedule and plan-memory both need to know.
#pragma once

#include "ir/Dialect.h"
#include "ir/Views.h"

#include "llvm/ADT/MapVector.h"

namespace llmc {

/// Whether the root's memory is `value` from its first to its last byte.
bool isWhole(mlir::Value value);
/// All uses of a root and of its views, by ops that are not views, in no order.
llvm::SmallVector<mlir::OpOperand *> usesOf(mlir::Value root);

/// The operand that result `result` is written over, or null.
mlir::OpOperand *tiedOperand(mlir::OpResult result);
/// Whether `result` may be written into the memory of `operand`, as far as that operand goes.
bool mayOverwrite(mlir::OpOperand &operand, mlir::OpResult result);
/// Whether `op` may write `result` into the memory of `root`: it reads the root whole, and only through operands that
/// allow it.
bool canOverwrite(mlir::Operation *op, mlir::OpResult result, mlir::Value root);

/// Gives each user of an llmc.empty one of its own, at the user: each is one piece of memory.
void splitEmpties(ProgramOp program);

/// Bytes of a value.
int64_t bytesOf(mlir::Value value);

/// The variables of a program: who reads the old value, who gives a new one.
struct VariableUses {
  llvm::SmallVector<GetOp> gets;      ///< before the set, in order
  llvm::SmallVector<GetOp> getsAfter; ///< reading the new value
  SetOp set;                          ///< null when the variable keeps its value
};
/// By the variable's name, in the order of first use. Fails where a variable is set twice in one program.
mlir::FailureOr<llvm::MapVector<mlir::StringAttr, VariableUses>> variableUses(ProgramOp program);

} // namespace llmc
