// Short rows get a warp or less each, so that their reductions are shuffles; long ones get the whole block.
#include "backend/codegen/GpuGeometry.h"
#include "backend/codegen/Storage.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace llmc {

static constexpr int64_t kWarp = 32, kThreads = 256, kMostThreads = 1024, kAccessBytes = 16;
/// A row with reductions belongs to one warp up to so many elements a thread, which stay in registers.
static constexpr int64_t kWarpElements = 32;
/// Shared memory that a block's partial results may take.
static constexpr int64_t kPartialBytes = 32 << 10;

/// As many elements as fill an access to the narrowest floats of whole rows, if all rows are so aligned.
static int64_t chooseWidth(const FusionStages &stages) {
  int64_t bytes = 4;
  auto look = [&](Value value, Type storage) {
    if (stages.level(value) == Level::lane && isa<FloatType>(storage))
      bytes = std::min<int64_t>(bytes, storageBytes(storage));
  };
  for (BlockArgument argument : stages.body().getArguments())
    look(argument, getElementTypeOrSelf(argument.getType()));
  for (const FusionResult &result : stages.results)
    look(result.value, result.storage);
  int64_t width = kAccessBytes / bytes;
  while (width > 1 && (stages.cols % width != 0 || (stages.colBlock < stages.cols && stages.colBlock % width != 0)))
    width /= 2;
  return width;
}

GpuGeometry chooseGeometry(const FusionStages &stages) {
  int64_t cols = std::min(stages.colBlock, stages.cols), rows = std::min(stages.rowBlock, stages.rows);
  bool hasRowReduction = llvm::any_of(stages.stages, [](const Stage &stage) { return !stage.reductions.empty(); });
  int64_t numPartials =
      llvm::count_if(stages.results, [](const FusionResult &result) { return result.partial.has_value(); });
  GpuGeometry geometry;
  geometry.width = chooseWidth(stages);
  int64_t accesses = llvm::divideCeil(cols, geometry.width);
  if (!hasRowReduction)
    geometry.rowThreads = std::min<int64_t>(llvm::PowerOf2Ceil(accesses), kThreads);
  else if (cols <= kWarp * kWarpElements)
    geometry.rowThreads = std::min<int64_t>(llvm::PowerOf2Ceil(accesses), kWarp);
  else
    geometry.rowThreads = std::clamp<int64_t>(llvm::PowerOf2Ceil(accesses / 4), kThreads / 2, kMostThreads);
  // Groups beside each other, while there are rows for them and their partial results fit.
  int64_t groupBytes = numPartials * cols * 4;
  geometry.hasSharedPartials = numPartials > 0 && groupBytes <= kPartialBytes;
  int64_t most = std::min<int64_t>(llvm::PowerOf2Ceil(rows), std::max<int64_t>(1, kThreads / geometry.rowThreads));
  if (hasRowReduction && geometry.rowThreads > kWarp) // barriers
    most = 1;
  else if (geometry.hasSharedPartials)
    most = std::min<int64_t>(most, llvm::bit_floor(uint64_t(kPartialBytes / groupBytes)));
  else if (numPartials > 0)
    most = 1;
  // A group that shares its warp with others or stands alone: whole warps, whose surplus groups find no row.
  geometry.rowsAtOnce = std::max(most, kWarp / std::min(kWarp, geometry.rowThreads));
  geometry.grid = llvm::divideCeil(stages.rows, stages.rowBlock) * llvm::divideCeil(stages.cols, stages.colBlock);
  return geometry;
}

} // namespace llmc
