// How a graph reads a labels input on the way to its cross-entropy. Only where it is known which labels arrive can the
// session count those of a batch: all of them, or all but the first of each row.
#pragma once

#include "ir/Dialect.h"

#include <optional>

namespace llmc {

/// An input whose labels a cross-entropy compares with.
struct LabelPath {
  mlir::BlockArgument input;
  bool isShifted = false; ///< position t is compared with label t + 1; the first label of each row is never used
};

/// The path of `labels` when it is reshapes and casts, and at most one shift by one token: position 0 of the last axis
/// is dropped, with or without one ignored label put at the end. Nothing otherwise.
std::optional<LabelPath> labelPathOf(mlir::Value labels, int64_t ignoreIndex);

} // namespace llmc
