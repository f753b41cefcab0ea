// A CPU's task stays in its cache and is worth a thread's while. A GPU wants hundreds of blocks of some hundred
// threads, each with a few accesses of 16 bytes.
#include "passes/FusionBlocks.h"

#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>

namespace llmc {

/// A CPU's task: about this many elements; column sums leave at most so many partial sums.
static constexpr int64_t kTaskElements = 16384, kMaxRowBlocks = 16;
/// From as many rows on a CPU's column reduction walks whole rows, which memory delivers faster than pieces of rows,
/// and leaves a partial sum for each row block.
static constexpr int64_t kStreamedRows = 256;

static int64_t ceilDivide(int64_t a, int64_t b) { return (a + b - 1) / b; }

static FusionBlocks cpuBlocks(const FusionSpace &space) {
  auto [rows, cols, hasRowReduction, hasColumnReduction] = space;
  if (hasColumnReduction && !hasRowReduction && rows < kStreamedRows)
    return sumBlocks(rows, cols, /*isGpu=*/false);
  if (hasColumnReduction)
    return {ceilDivide(rows, std::min(rows, kMaxRowBlocks)), cols};
  if (hasRowReduction)
    return {std::clamp<int64_t>(kTaskElements / cols, 1, rows), cols};
  if (cols >= kTaskElements)
    return {1, rows >= 16 ? cols : kTaskElements};
  return {std::clamp<int64_t>(kTaskElements / cols, 1, rows), cols};
}

/// A GPU's block: about 256 threads with one or two accesses each; blocks that fill the largest GPU a few times; the
/// columns that a block sums, two sectors of memory a row; and how many rows are worth partial sums.
static constexpr int64_t kThreads = 256, kBlockElements = 2048, kGpuBlocks = 1024, kSumColumns = 32, kManyRows = 2048;

static FusionBlocks gpuBlocks(const FusionSpace &space) {
  auto [rows, cols, hasRowReduction, hasColumnReduction] = space;
  if (hasColumnReduction && !hasRowReduction) {
    if (rows <= kManyRows)
      return sumBlocks(rows, cols, /*isGpu=*/true);
    int64_t colBlock = std::min(cols, 4 * kSumColumns);
    int64_t rowBlocks = std::clamp<int64_t>(kGpuBlocks / ceilDivide(cols, colBlock), 1, rows / 64);
    return {ceilDivide(rows, rowBlocks), colBlock};
  }
  if (hasColumnReduction)
    return {ceilDivide(rows, std::min(rows, kGpuBlocks)), cols};
  if (hasRowReduction) { // a warp for a row while that can hold it in registers
    int64_t rowThreads = std::min<int64_t>(32, llvm::PowerOf2Ceil(ceilDivide(cols, 4)));
    return {cols <= kBlockElements / 2 ? std::min(rows, kThreads / rowThreads) : 1, cols};
  }
  if (cols > kBlockElements)
    return {1, rows == 1 ? kBlockElements : kBlockElements / 2};
  return {std::clamp<int64_t>(llvm::bit_floor(uint64_t(2 * kBlockElements / cols)), 1, rows), cols};
}

FusionBlocks sumBlocks(int64_t rows, int64_t cols, bool isGpu) {
  rows = std::max<int64_t>(1, rows), cols = std::max<int64_t>(1, cols);
  int64_t colBlock = isGpu ? kSumColumns : std::max<int64_t>(64, ceilDivide(ceilDivide(cols, 16), 16) * 16);
  return {rows, std::min(cols, colBlock)};
}

FusionBlocks chooseBlocks(const FusionSpace &space, bool isGpu) {
  FusionSpace whole = space;
  whole.rows = std::max<int64_t>(1, space.rows), whole.cols = std::max<int64_t>(1, space.cols);
  return isGpu ? gpuBlocks(whole) : cpuBlocks(whole);
}

} // namespace llmc
