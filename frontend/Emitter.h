// Builds llmc ops from values that come from a file: every shape and type is checked before an op is made, so that a
// wrong model is an error with its node's name and never a failed assertion. Ops on constants are computed on the spot:
// legacy exporters' shape arithmetic and masks vanish while the graph is walked.
//
// A null Value stands for "an error was reported": every method takes and returns it, so that handlers chain calls and
// check once.
#pragma once

#include "frontend/ModelFile.h"
#include "ir/Dialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

namespace llmc {

/// The type of a value of the graph.
inline mlir::RankedTensorType typeOf(mlir::Value value) { return mlir::cast<mlir::RankedTensorType>(value.getType()); }
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return typeOf(value).getShape(); }
inline int64_t rankOf(mlir::Value value) { return typeOf(value).getRank(); }
inline mlir::Type elementOf(mlir::Value value) { return typeOf(value).getElementType(); }
inline bool isFloat(mlir::Value value) { return mlir::isa<mlir::FloatType>(elementOf(value)); }
inline bool isConstant(mlir::Value value) { return mlir::matchPattern(value, mlir::m_Constant()); }
/// Elements of a shape from dimension `first` to before `last`.
int64_t productOf(llvm::ArrayRef<int64_t> sizes);
/// A shape in words: "[2, 32]".
std::string shapeText(llvm::ArrayRef<int64_t> shape);

class Emitter {
public:
  /// `place` precedes every error: "model.onnx: node 'x' (Add)".
  Emitter(mlir::OpBuilder &builder, mlir::Location loc, std::string place)
      : builder(builder), loc(loc), place(std::move(place)) {}

  /// Reports an error at this place.
  mlir::LogicalResult error(const llvm::Twine &message);
  /// The same, as a value.
  mlir::Value fail(const llvm::Twine &message);

  mlir::Type f32() { return builder.getF32Type(); }
  mlir::Type i64() { return builder.getI64Type(); }

  /// A tensor type; null, and an error, when its size is out of bounds.
  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape, mlir::Type element);
  mlir::Value constant(const HostTensor &tensor);
  /// A rank-0 constant.
  mlir::Value scalar(double number, mlir::Type element);
  mlir::Value integers(llvm::ArrayRef<int64_t> values);

  template <typename Op> mlir::Value unary(mlir::Value a) {
    return a ? finish(builder.create<Op>(loc, a.getType(), a)) : mlir::Value();
  }
  /// An elementwise op of two operands, which broadcast.
  template <typename Op> mlir::Value binary(mlir::Value a, mlir::Value b) {
    return agree(a, b) ? finish(builder.create<Op>(loc, a, b)) : mlir::Value();
  }
  mlir::Value select(mlir::Value condition, mlir::Value a, mlir::Value b);
  mlir::Value cast(mlir::Value a, mlir::Type element);

  mlir::Value reshape(mlir::Value a, llvm::ArrayRef<int64_t> shape);
  mlir::Value transpose(mlir::Value a, llvm::ArrayRef<int64_t> permutation);
  mlir::Value swapDims(mlir::Value a, int64_t first, int64_t second);
  mlir::Value broadcastTo(mlir::Value a, llvm::ArrayRef<int64_t> shape);
  /// Elements start, start + step, … along one axis.
  mlir::Value slice(mlir::Value a, int64_t axis, int64_t start, int64_t size, int64_t step = 1);
  mlir::Value concat(llvm::ArrayRef<mlir::Value> parts, int64_t axis);
  /// `a` inside a larger tensor of `fill`, `before[d]` elements from the start of dimension d.
  mlir::Value pad(mlir::Value a, llvm::ArrayRef<int64_t> before, llvm::ArrayRef<int64_t> shape, double fill);
  mlir::Value embedding(mlir::Value table, mlir::Value ids);
  /// The index along dimension `dim`, computed where it is used.
  mlir::Value iota(llvm::ArrayRef<int64_t> shape, int64_t dim);

  template <typename Op> mlir::Value reduce(mlir::Value a, llvm::ArrayRef<int64_t> axes, bool keepDims) {
    return a ? dropAxes(axes.empty() ? a : finish(builder.create<Op>(loc, a, builder.getDenseI64ArrayAttr(axes))), axes,
                        keepDims)
             : a;
  }
  /// Softmax or log-softmax along any axis.
  template <typename Op> mlir::Value alongAxis(mlir::Value a, int64_t axis) {
    return a ? swapDims(unary<Op>(swapDims(a, axis, rankOf(a) - 1)), axis, rankOf(a) - 1) : a;
  }
  mlir::Value matmul(mlir::Value a, mlir::Value b, mlir::Value bias = {}, bool transposeA = false,
                     bool transposeB = false);

  /// An op's result, or the constant it folds to.
  mlir::Value finish(mlir::Operation *op);

  mlir::OpBuilder &builder;
  mlir::Location loc;

private:
  bool agree(mlir::Value a, mlir::Value b);
  mlir::Value dropAxes(mlir::Value a, llvm::ArrayRef<int64_t> axes, bool keepDims);

  std::string place;
};

} // namespace llmc
