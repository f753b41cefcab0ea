// The view that normalisation, softmax, losses and optimizers share: a tensor as rows, all its leading dimensions
// together, of its last dimension; and math in f32 whatever the storage.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// Elements of the last dimension; 1 at rank 0.
inline int64_t rowSize(mlir::RankedTensorType type) { return type.getRank() == 0 ? 1 : type.getShape().back(); }
inline int64_t numRows(mlir::RankedTensorType type) {
  return rowSize(type) == 0 ? 0 : type.getNumElements() / rowSize(type);
}

/// a as (rows, last dimension).
inline Expr asRows(Expr a) { return reshape(a, {numRows(a.type()), rowSize(a.type())}); }

/// a in another element type; a itself when it has it.
inline Expr castTo(Expr a, mlir::Type elementType) {
  return a.type().getElementType() == elementType ? a : cast(a, elementType);
}

/// The float type that math on `type` is done in: f32, or f64.
inline mlir::FloatType computeType(mlir::RankedTensorType type) {
  auto element = mlir::cast<mlir::FloatType>(type.getElementType());
  return element.getWidth() < 32 ? mlir::FloatType::getF32(type.getContext()) : element;
}

/// A value computed on rows, back in a type of as many elements.
inline Expr asType(Expr a, mlir::RankedTensorType type) {
  return reshape(castTo(a, type.getElementType()), type.getShape());
}

} // namespace llmc
