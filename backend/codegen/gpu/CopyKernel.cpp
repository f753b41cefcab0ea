// Strided copies. What is contiguous on both sides moves in units of up to 16 bytes, a thread a unit in the order of
// dst; where src runs along another loop than dst, tiles go through shared memory, so that both are read and written
// in whole lines.
#include "backend/codegen/gpu/Emitters.h"
#include "backend/codegen/gpu/GpuFunction.h"
#include "runtime/CopyLoops.h"

using namespace mlir;

namespace llmc {

static constexpr uint32_t kThreads = 256;
static constexpr int64_t kTile = 32;

namespace {
class CopyKernel {
public:
  CopyKernel(const Launch &launch, StringRef symbol, MLIRContext &context)
      : loops(copyLoops(launch)), srcOffset(integerArgument(launch, "srcOffset")),
        dstOffset(integerArgument(launch, "dstOffset")), f(launch, symbol, context, kThreads) {
    const int64_t bytes = integerArgument(launch, "bytes");
    src = f.operand("src", ElementType::u8);
    dst = f.operand("dst", ElementType::u8);
    src.storage = dst.storage = f.builder.getIntegerType(unsigned(8 * bytes));
    chooseWidth(16 / bytes);
  }

  GpuKernel emit() {
    const CopyLoop *rows = nullptr;
    for (const CopyLoop &loop : loops)
      if (loop.src == 1 && &loop != &loops.back() && loops.back().dst == 1)
        rows = &loop;
    return rows && rows->size >= 8 && loops.back().size >= 8 ? transpose(size_t(rows - loops.data())) : straight();
  }

private:
  /// Elements of one access: as many as divide every stride, offset and the innermost size.
  void chooseWidth(int64_t most) {
    if (loops.empty() || loops.back().src != 1 || loops.back().dst != 1)
      return;
    width = accessWidth(most, {loops.back().size, srcOffset, dstOffset});
    for (const CopyLoop &loop : ArrayRef(loops).drop_back())
      width = accessWidth(width, {loop.src, loop.dst});
    loops.back() = {loops.back().size / width, width, width};
  }

  struct Place {
    Lanes src, dst; ///< i64
  };
  /// Where step `index` (i64) of these loops, the last one fastest, begins.
  Place placeOf(Lanes index, ArrayRef<CopyLoop> nest) {
    Place place{f.i64(srcOffset), f.i64(dstOffset)};
    for (size_t i = nest.size(); i-- > 0;) {
      Lanes step = i == 0 ? index : f.remainder(index, nest[i].size);
      place.src = place.src + step * f.i64(nest[i].src);
      place.dst = place.dst + step * f.i64(nest[i].dst);
      index = f.quotient(index, nest[i].size);
    }
    return place;
  }
  static int64_t stepsOf(ArrayRef<CopyLoop> nest) {
    int64_t steps = 1;
    for (const CopyLoop &loop : nest)
      steps *= loop.size;
    return steps;
  }

  GpuKernel straight() {
    const int64_t units = stepsOf(loops);
    if (units > 0) {
      Lanes at = f.wide(f.block()) * f.i64(kThreads) + f.wide(f.thread());
      f.onlyIf(less(at, f.i64(units)), [&] {
        Place place = placeOf(at, loops);
        f.store(f.load(src, place.src, width), dst, place.dst);
      });
    }
    return f.finish(std::max<int64_t>(1, (units + kThreads - 1) / kThreads));
  }

  /// A block moves a tile of (kTile rows, kTile columns): rows follow each other in src, columns in dst.
  GpuKernel transpose(size_t rowLoop) {
    const CopyLoop rows = loops[rowLoop], columns = loops.back();
    std::vector<CopyLoop> outer(loops.begin(), loops.end() - 1);
    outer.erase(outer.begin() + int64_t(rowLoop));
    const int64_t rowTiles = (rows.size + kTile - 1) / kTile, columnTiles = (columns.size + kTile - 1) / kTile;
    GpuBuffer tile = f.shared(kTile * (kTile + 1), src.storage);
    Lanes columnTile = f.remainder(f.block(), columnTiles), rest = f.quotient(f.block(), columnTiles);
    Lanes rowTile = f.remainder(rest, rowTiles);
    Place place = placeOf(f.wide(f.quotient(rest, rowTiles)), outer);
    Lanes fast = f.remainder(f.thread(), kTile), slow = f.quotient(f.thread(), kTile);
    auto eachLine = [&](bool isLoad) {
      for (int64_t line = 0; line < kTile; line += kThreads / kTile) {
        Lanes other = slow + f.i32(line), inRow = isLoad ? fast : other, inColumn = isLoad ? other : fast;
        Lanes row = rowTile * f.i32(kTile) + inRow, column = columnTile * f.i32(kTile) + inColumn;
        Lanes slot = inColumn * f.i32(kTile + 1) + inRow;
        f.onlyIf(logicalAnd(less(row, f.i32(rows.size)), less(column, f.i32(columns.size))), [&] {
          if (isLoad)
            f.store(f.load(src, place.src + f.wide(row) * f.i64(rows.src) + f.wide(column) * f.i64(columns.src)), tile,
                    slot);
          else
            f.store(f.load(tile, slot), dst,
                    place.dst + f.wide(row) * f.i64(rows.dst) + f.wide(column) * f.i64(columns.dst));
        });
      }
    };
    eachLine(true);
    f.barrier();
    eachLine(false);
    return f.finish(stepsOf(outer) * rowTiles * columnTiles);
  }

  std::vector<CopyLoop> loops;
  const int64_t srcOffset, dstOffset;
  int64_t width = 1;
  GpuFunction f;
  GpuBuffer src, dst;
};
} // namespace

llvm::Expected<GpuKernel> emitCopy(const Launch &launch, StringRef symbol, MLIRContext &context) {
  return CopyKernel(launch, symbol, context).emit();
}

} // namespace llmc
