// Which values of a program share memory, and where what is not in the arena lies. Copies are inserted first, so that
// every value that must end in a certain place (a variable's new value, a result, what a launch adds to) can be written
// there.
#pragma once

#include "passes/Memory.h"

namespace llmc {

/// Where values live whose place is known before any program is laid out: all of the state, and in the arena of the
/// forward program the outputs that only it has.
struct StateLayout {
  llvm::StringMap<BufferAttr> variables, inputs, scalars, outputs;
  int64_t stateBytes = 0, gradientBytes = 0, forwardBytes = 0;
};

/// Inserts copies in front of launches, sets and the return where their operand cannot be in its place. Returns how
/// many.
mlir::FailureOr<unsigned> insertCopies(ProgramOp program);

/// One piece of memory: anywhere in the arena until a BufferAttr says otherwise.
struct Piece {
  BufferAttr fixed; ///< null where the arena's layout decides
  int64_t bytes = 0;
  unsigned first = 0, last = 0; ///< launches
};

/// The pieces of a program and which piece each root is; needs insertCopies first.
struct Placement {
  llvm::SmallVector<Piece> pieces;
  /// Pieces of the arena that must lie one behind the other, in this order, each at the next multiple of
  /// kBufferAlignment: the messages of collectives.
  llvm::SmallVector<llvm::SmallVector<unsigned>> messages;
  llvm::MapVector<mlir::Value, unsigned> pieceOf; ///< roots in order of definition
};
mlir::FailureOr<Placement> placeValues(ProgramOp program, const StateLayout &state);

} // namespace llmc
