// The dialect llmc for C++: interfaces, ops, and the few helpers their definitions share. See ir/ops/*.td for what each
// op means.
#pragma once

#include "ir/Expr.h"
#include "ir/Formula.h"
#include "ir/HostTensor.h"
#include "ir/Lanes.h"

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/StringMap.h"

namespace llmc {

/// How a float operand or result is stored in a bf16 plan; see PrecisionOpInterface.
enum class PrecisionPolicy { keepF32, follow, bf16 };

/// One launch as its op describes it; backend/PlanEmitter turns it into runtime/Plan.h's Launch, in the order of
/// Kernels.def.
struct LaunchDescription {
  llvm::StringRef kernel;                  ///< name in Kernels.def
  llvm::SmallVector<mlir::Value> operands; ///< inputs and results in Kernels.def's order; null where absent
  llvm::StringMap<int64_t> ints;           ///< by name; names not set are 0
  llvm::StringMap<double> floats;          ///< by name
};

/// ElementType's number (runtime/Plan.h) of an element type; -1 for a type that plans do not store.
int64_t elementTypeNumber(mlir::Type type);
/// Bytes a tensor takes densely, or in whole blocks where it is packed; booleans take one byte each.
int64_t tensorBytes(mlir::RankedTensorType type);

/// The number that every element of a constant has; nothing for other values.
std::optional<double> constantSplat(mlir::Value value);
/// The value of a constant, or of a llmc.get of a variable of kind "constant" or "parameter" with a stored value.
mlir::FailureOr<HostTensor> knownValue(mlir::Value value);

// What the generated definitions call.
std::string elementwiseShardingRule(mlir::Operation *op);
mlir::LogicalResult verifyElementwise(mlir::Operation *op);
mlir::LogicalResult evaluateElementwise(mlir::Operation *op, llvm::ArrayRef<HostTensor> operands,
                                        llvm::SmallVectorImpl<HostTensor> &results);
mlir::OpFoldResult foldByEvaluation(mlir::Operation *op, llvm::ArrayRef<mlir::Attribute> operands);
mlir::LogicalResult inferBroadcast(std::optional<mlir::Location> location, mlir::ValueRange operands, bool isPredicate,
                                   llvm::SmallVectorImpl<mlir::Type> &types);
mlir::LogicalResult inferSelect(std::optional<mlir::Location> location, mlir::ValueRange operands,
                                llvm::SmallVectorImpl<mlir::Type> &types);
mlir::LogicalResult inferReduction(mlir::Type operand, llvm::ArrayRef<int64_t> axes,
                                   llvm::SmallVectorImpl<mlir::Type> &types);
mlir::LogicalResult verifyAxes(mlir::Operation *op, llvm::ArrayRef<int64_t> axes, mlir::RankedTensorType type);
mlir::LogicalResult verifyNorm(mlir::Operation *op);
mlir::LogicalResult verifyLoss(mlir::Operation *op);
mlir::LogicalResult verifyCollective(mlir::Operation *op, int64_t position);
std::string collectiveShardingRule(mlir::ValueRange parts);

} // namespace llmc

#include "ir/Dialect.h.inc"
#include "ir/Enums.h.inc"
#include "ir/Interfaces.h.inc"

#define GET_ATTRDEF_CLASSES
#include "ir/Attributes.h.inc"

#define GET_OP_CLASSES
#include "ir/Ops.h.inc"
