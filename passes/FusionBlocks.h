// What one task of a fusion computes: how many rows and columns of its space, for a CPU's threads or a GPU's blocks.
#pragma once

#include <cstdint>

namespace llmc {

struct FusionSpace {
  int64_t rows, cols;
  bool hasRowReduction, hasColumnReduction;
};

struct FusionBlocks {
  int64_t rows, cols;
};

/// Fixed by the shape alone, so that results do not depend on the number of threads. Row reductions get whole rows.
FusionBlocks chooseBlocks(const FusionSpace &space, bool isGpu);
/// For the sum over `rows` partial results: one task has all rows.
FusionBlocks sumBlocks(int64_t rows, int64_t cols, bool isGpu);

} // namespace llmc
