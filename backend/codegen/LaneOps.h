// Ops on lanes that the vocabulary of ir/Lanes.h leaves out because no formula needs them: conversions and integer ops
// by name.
#pragma once

#include "ir/Lanes.h"

#include "mlir/IR/BuiltinTypes.h"

namespace llmc {

/// `element` in the shape of the lanes.
inline mlir::Type shaped(Lanes lanes, mlir::Type element) {
  if (auto vector = mlir::dyn_cast<mlir::VectorType>(lanes.value.getType()))
    return mlir::VectorType::get(vector.getShape(), element);
  return element;
}
/// The lanes converted to `element` by a cast op.
template <typename Op> Lanes convert(Lanes lanes, mlir::Type element) {
  return lanes.with(lanes.builder->create<Op>(lanes.loc, shaped(lanes, element), lanes.value));
}
/// One op on two lanes of one type.
template <typename Op> Lanes apply(Lanes a, Lanes b) { return a.with(a.builder->create<Op>(a.loc, a.value, b.value)); }

} // namespace llmc
