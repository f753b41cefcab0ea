// Numbers of generated code: a Lanes is an MLIR value, a vector (CPU) or a scalar (a GPU thread), with the vocabulary
// of Formula.h. Each operation emits one arith or math op. Floats are f32 here whatever their storage; integers are i64
// or i32, booleans i1.
#pragma once

#include "ir/Formula.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace llmc {

/// A value of generated code and where to emit the next one.
struct Lanes {
  mlir::OpBuilder *builder = nullptr;
  mlir::Location loc;
  mlir::Value value;

  /// f32, i64, i32 or i1.
  mlir::Type elementType() const;
  bool isFloat() const { return mlir::isa<mlir::FloatType>(elementType()); }
  /// The same number in every lane, in this value's type.
  Lanes constant(double number) const;
  /// Converted to another element type (f32, i64, i32, i1); floats truncate towards zero to integers, x != 0 makes i1.
  Lanes castTo(mlir::Type elementType) const;
  Lanes with(mlir::Value other) const { return {builder, loc, other}; }
};

Lanes operator+(Lanes a, Lanes b);
Lanes operator-(Lanes a, Lanes b);
Lanes operator*(Lanes a, Lanes b);
Lanes operator/(Lanes a, Lanes b);
Lanes operator-(Lanes a);

Lanes exp(Lanes a);
Lanes log(Lanes a);
Lanes sqrt(Lanes a);
Lanes rsqrt(Lanes a);
Lanes tanh(Lanes a);
Lanes erf(Lanes a);
Lanes sin(Lanes a);
Lanes cos(Lanes a);
Lanes abs(Lanes a);
Lanes floor(Lanes a);
Lanes round(Lanes a); ///< to nearest, ties to even
Lanes pow(Lanes a, Lanes b);
Lanes max(Lanes a, Lanes b); ///< NaN if either is
Lanes min(Lanes a, Lanes b); ///< NaN if either is
Lanes equal(Lanes a, Lanes b);
Lanes less(Lanes a, Lanes b);
Lanes lessEqual(Lanes a, Lanes b);
Lanes logicalAnd(Lanes a, Lanes b);
Lanes logicalOr(Lanes a, Lanes b);
Lanes logicalNot(Lanes a);
Lanes isNan(Lanes a);
Lanes select(Lanes condition, Lanes a, Lanes b);

/// What an emitter (backend/codegen) offers an op beside its operands: where in the iteration space the lanes are.
class LaneScope {
public:
  virtual ~LaneScope() = default;
  virtual mlir::OpBuilder &builder() = 0;
  virtual mlir::Location loc() = 0;
  /// The index along dimension `dim` of the op's result, as i64 lanes.
  virtual Lanes index(mlir::Operation *op, unsigned dim) = 0;
  /// The row-major index of the element in the op's result, as i64 lanes.
  virtual Lanes linearIndex(mlir::Operation *op) = 0;
};

} // namespace llmc
