// Offsets for values with known lifetimes in one arena: dynamic storage allocation, by trying several greedy orders.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"

#include <optional>

namespace llmc {

/// A value of the arena; it lives from launch `first` to launch `last`, both included.
struct ArenaValue {
  int64_t bytes = 0;
  unsigned first = 0, last = 0;
  std::optional<int64_t> offset = std::nullopt; ///< where it must lie; values that must do not overlap
};

struct ArenaLayout {
  llvm::SmallVector<int64_t> offsets; ///< of each value, multiples of kBufferAlignment
  int64_t bytes = 0;                  ///< the arena's
};

inline constexpr int64_t kBufferAlignment = 64;
inline int64_t alignBuffer(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

/// Places all values so that those which live at the same time do not overlap. Deterministic.
ArenaLayout layoutArena(llvm::ArrayRef<ArenaValue> values);
/// The largest sum over time of the values' dense bytes: no layout can be smaller.
int64_t arenaLowerBound(llvm::ArrayRef<ArenaValue> values);

} // namespace llmc
