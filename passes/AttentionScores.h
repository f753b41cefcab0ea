// Reading an attention's scores: from its probabilities back to the softmax, and from there down to the product of
// queries and keys.
#pragma once

#include "passes/AttentionMask.h"

#include <string>

namespace llmc {

/// softmax's argument: `scale` times the product, with masks.
struct Scores {
  MatMulOp product;
  double scale = 1;
  llvm::SmallVector<MaskTerm> masks;
};

/// The softmax behind probabilities, through what changes nothing for attention: reshapes of leading dimensions, and
/// zeros in place of NaN in rows that see no key. `hasDropout` says whether some probabilities are dropped. Null where
/// there is none.
SoftmaxOp softmaxOf(mlir::Value probabilities, bool &hasDropout);

/// Reads a softmax's argument; where it is not scores, `why` says what is in the way.
std::optional<Scores> readScores(mlir::Value value, std::string &why);

} // namespace llmc
