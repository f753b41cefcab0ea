// A piece's value is dense where people see it (the plan's file, exports) and rows of a larger value in memory: what
// copies between the two goes run by run.
#pragma once

#include "runtime/Plan.h"

#include <algorithm>

namespace llmc {

/// Bytes that follow each other on both sides: offsets from the value's first byte, and from its first row in memory.
struct PieceRun {
  uint64_t value = 0;
  uint64_t memory = 0;
  uint64_t bytes = 0;
};

/// Calls copy(run), which returns a Status, for each run of bytes [first, first + bytes) of a value, in order; one run
/// when the value is no piece. Stops at the first error.
template <typename Copy>
Status forEachRun(const PieceRows &rows, uint64_t elementSize, uint64_t first, uint64_t bytes, Copy copy) {
  if (rows == PieceRows{})
    return copy(PieceRun{first, first, bytes});
  uint64_t length = rows.length * elementSize, stride = rows.stride * elementSize;
  for (uint64_t at = first, end = first + bytes; at < end;) {
    uint64_t inRow = at % length, run = std::min(length - inRow, end - at);
    LLMC_RETURN_IF_ERROR(copy(PieceRun{at, at / length * stride + inRow, run}));
    at += run;
  }
  return {};
}

} // namespace llmc
