// Numbers of the graph: an Expr is a tensor value with the vocabulary of Formula.h; each operation builds one llmc op,
// with NumPy broadcasting and constants as splats of one element. Gradients and decompositions are written in it.
#pragma once

#include "ir/Formula.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace llmc {

/// A tensor value and where to build the next op.
struct Expr {
  mlir::OpBuilder *builder = nullptr;
  mlir::Location loc;
  mlir::Value value;

  operator mlir::Value() const { return value; }
  mlir::RankedTensorType type() const { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
  llvm::ArrayRef<int64_t> shape() const { return type().getShape(); }
  int64_t rank() const { return type().getRank(); }
  Expr with(mlir::Value other) const { return {builder, loc, other}; }
  /// One number as a tensor<f32 or the element type of this> of rank 0.
  Expr constant(double number) const;
};

/// Makes Exprs at one place.
struct ExprScope {
  mlir::OpBuilder &builder;
  mlir::Location loc;
  Expr operator()(mlir::Value value) const { return {&builder, loc, value}; }
};

Expr operator+(Expr a, Expr b);
Expr operator-(Expr a, Expr b);
Expr operator*(Expr a, Expr b);
Expr operator/(Expr a, Expr b);
Expr operator-(Expr a);

Expr exp(Expr a);
Expr log(Expr a);
Expr sqrt(Expr a);
Expr rsqrt(Expr a);
Expr sigmoid(Expr a);
Expr sin(Expr a);
Expr cos(Expr a);
Expr pow(Expr a, Expr b);
Expr max(Expr a, Expr b);
Expr min(Expr a, Expr b);
Expr equal(Expr a, Expr b);
Expr less(Expr a, Expr b);
Expr logicalNot(Expr a);
Expr select(Expr condition, Expr a, Expr b);

/// Sum and maximum over axes; the axes stay with size 1.
Expr reduceSum(Expr a, llvm::ArrayRef<int64_t> axes);
Expr reduceMax(Expr a, llvm::ArrayRef<int64_t> axes);
/// Sum over the last axis, kept with size 1.
inline Expr rowSum(Expr a) { return reduceSum(a, {a.rank() - 1}); }
Expr reshape(Expr a, llvm::ArrayRef<int64_t> shape);
Expr transpose(Expr a, llvm::ArrayRef<int64_t> permutation);
Expr broadcastTo(Expr a, llvm::ArrayRef<int64_t> shape);
Expr cast(Expr a, mlir::Type elementType);
/// The index along `dim` of a tensor of `type` (integer elements).
Expr iota(ExprScope scope, mlir::RankedTensorType type, int64_t dim);
/// a summed to a shape that NumPy broadcasts to a's shape: the gradient of a broadcast.
Expr sumTo(Expr a, llvm::ArrayRef<int64_t> shape);
/// Zeros of a type.
Expr zeros(ExprScope scope, mlir::RankedTensorType type);
/// Sums each gradient to the shape of the operand it belongs to; nulls stay null.
llvm::SmallVector<mlir::Value> sumToOperands(mlir::Operation *op, llvm::ArrayRef<Expr> gradients);

} // namespace llmc
