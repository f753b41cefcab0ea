// The part of a fusion that computes one of its results, from whatever else is at hand.
#pragma once

#include "ir/Dialect.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace llmc {

struct FusionSlice {
  llvm::MapVector<mlir::Value, mlir::Value> inputs; ///< body value -> the value outside that holds it
  llvm::SetVector<mlir::Operation *> ops;           ///< body ops to run, in order
};

/// The slice for result `result`; other results of the fusion and its inputs may be read where `isAtHand` says so.
/// Nothing where that is not enough, or where a column reduction would have to run again.
std::optional<FusionSlice> sliceFusion(FusionOp fusion, unsigned result,
                                       llvm::function_ref<bool(mlir::Value)> isAtHand);

/// A fusion that runs the slice, at the builder's insertion point.
FusionOp buildSlice(mlir::OpBuilder &builder, FusionOp fusion, unsigned result, const FusionSlice &slice);

} // namespace llmc
