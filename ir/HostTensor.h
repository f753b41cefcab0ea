// A tensor on the host, wide: f64 for floats, i64 for integers and booleans. What constant folding and the tests' f64
// oracle compute with.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

#include <vector>

namespace llmc {

struct HostTensor {
  mlir::RankedTensorType type;   ///< the element type says how values were or will be stored
  std::vector<double> floats;    ///< row-major, when the element type is a float
  std::vector<int64_t> integers; ///< row-major, else

  bool isFloat() const { return mlir::isa<mlir::FloatType>(type.getElementType()); }
  int64_t size() const { return type.getNumElements(); }
  double asDouble(int64_t i) const { return isFloat() ? floats[i] : double(integers[i]); }
  /// Zeros of a type.
  static HostTensor zeros(mlir::RankedTensorType type);
  /// The values of a dense or dense_resource attribute.
  static mlir::FailureOr<HostTensor> fromAttribute(mlir::ElementsAttr attribute);
  /// A dense attribute of `type`: floats rounded to the element type, integers wrapped.
  mlir::ElementsAttr toAttribute() const;
};

/// Row-major strides of a shape, in elements.
llvm::SmallVector<int64_t> rowMajorStrides(llvm::ArrayRef<int64_t> shape);
/// NumPy's broadcast of two shapes; fails when they do not fit.
mlir::FailureOr<llvm::SmallVector<int64_t>> broadcastShapes(llvm::ArrayRef<int64_t> a, llvm::ArrayRef<int64_t> b);
/// For each element of `shape` in order: its index in an operand of shape `operandShape` that is broadcast to it.
std::vector<int64_t> broadcastIndices(llvm::ArrayRef<int64_t> shape, llvm::ArrayRef<int64_t> operandShape);

} // namespace llmc
