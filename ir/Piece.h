// Parameters that the model has apart and the step keeps as one: each is a variable of kind "part", a piece of the
// merged variable, and says so in its attribute llmc.piece: {axis = 1 : i64, of = @qkv, start = 384 : i64}.
#pragma once

#include "ir/Dialect.h"

namespace llmc {

/// The elements of a variable from `start` on along dimension `axis`, all of the other dimensions.
struct Piece {
  mlir::FlatSymbolRefAttr whole;
  int64_t axis = 0;
  int64_t start = 0;
};

/// Where a part lies; nothing for a variable that is none.
std::optional<Piece> pieceOf(VariableOp variable);
/// Makes a variable a part. The verifier holds it inside the whole.
void makePart(VariableOp variable, const Piece &piece);

} // namespace llmc
