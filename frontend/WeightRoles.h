// What a weight is by its place in the graph and its values: a mask of attention scores, a table of rotary embedding,
// or its frequencies.
#pragma once

#include "frontend/ParameterLedger.h"

#include "llvm/ADT/DenseSet.h"

namespace llmc {

/// Whether a weight is added to, or selects, attention scores and holds -inf, something <= -1e30 (or the lowest number
/// of `storedType`), or only 0 and 1.
bool isMask(Weight weight, llvm::StringRef storedType);
/// Whether a weight's cosine and sine are taken, or its name says that it is inv_freq.
bool isRotaryFrequency(Weight weight);
/// The variables among `weights` that are tables of cosines and sines: two of one shape that multiply, with a^2 + b^2 =
/// 1 throughout.
llvm::DenseSet<mlir::Operation *> rotaryTables(llvm::ArrayRef<Weight> weights);

} // namespace llmc
