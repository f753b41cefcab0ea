// How the threads of a block share a task of a fusion: which are of one row, how many elements each takes at once.
#pragma once

#include "backend/codegen/FusionStages.h"

namespace llmc {

/// A block has rowsAtOnce groups of rowThreads threads; group g works on rows g, g + rowsAtOnce, … of the task, a
/// thread on `width` columns that follow each other, then on those rowThreads * width further. All are powers of two.
struct GpuGeometry {
  int64_t width = 1;      ///< elements of one access
  int64_t rowThreads = 1; ///< at most a warp, or the whole block
  int64_t rowsAtOnce = 1; ///< rowThreads * rowsAtOnce is at least a warp
  int64_t grid = 1;       ///< blocks: the tasks
  /// Partial results are summed up in shared memory, each group its own; else in memory, by one group.
  bool hasSharedPartials = false;

  int64_t threads() const { return rowThreads * rowsAtOnce; }
  /// Columns that a group covers at once.
  int64_t stride() const { return rowThreads * width; }
};

GpuGeometry chooseGeometry(const FusionStages &stages);

} // namespace llmc
