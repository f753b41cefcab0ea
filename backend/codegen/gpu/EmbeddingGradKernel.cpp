// dTable (v, c) = sum over n of dOut (n, c) at ids, in f32, in the order of n; the bits do not depend on how blocks
// run. A block owns a range of the table's rows. It goes over all ids, 256 at a time, and lists those of its rows in
// order; when the list may overflow and at the end, it sorts it by row (stable, by counting) and adds each row's
// gradients, a thread a few columns. Ids outside the table belong to nobody: the forward pass has named them.
#include "backend/codegen/LaneOps.h"
#include "backend/codegen/gpu/Emitters.h"
#include "backend/codegen/gpu/GpuFunction.h"
#include "runtime/KernelArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <algorithm>

using namespace mlir;

namespace llmc {

namespace {
constexpr uint32_t kThreads = 256;
constexpr int64_t kWarps = kThreads / 32, kList = 2048, kMostRows = 64;
constexpr int64_t kUnroll = 8; ///< gradients of a row on their way at once

class EmbeddingGradKernel {
public:
  EmbeddingGradKernel(const Launch &launch, StringRef symbol, MLIRContext &context)
      : n(integerArgument(launch, "n")), v(integerArgument(launch, "v")), c(integerArgument(launch, "c")),
        accumulates(integerArgument(launch, "accumulate") != 0), rows(std::clamp<int64_t>(v / 512, 1, kMostRows)),
        width(accessWidth(4, {c})), f(launch, symbol, context, kThreads) {
    ids = f.operand("ids", ElementType::i64);
    dOut = f.operand("dOut", typeArgument(launch, "dOutType"));
    dTable = f.operand("dTable", ElementType::f32);
    Type i32 = f.builder.getI32Type();
    found = f.shared(kList, i32);
    foundRow = f.shared(kList, i32);
    sorted = f.shared(kList, i32);
    ends = f.shared(rows, i32);
    inWarp = f.shared(2 * kWarps, i32);
  }

  GpuKernel emit() {
    firstRow = (f.block() * f.i32(rows)).value;
    const int64_t chunks = std::max<int64_t>(1, (n + kThreads - 1) / kThreads);
    // Carried: entries in the list, and whether rows hold sums already.
    f.loop(f.i32(0), f.i32(chunks), 1, {f.i32(0), f.i32(accumulates)}, [&](Lanes chunk, ArrayRef<Lanes> state) {
      Lanes count = list(chunk, state[0]);
      Lanes mustAdd = logicalOr(equal(chunk, f.i32(chunks - 1)), less(f.i32(kList - kThreads), count));
      return f.onlyIf(mustAdd, {count, state[1]}, [&] {
        f.barrier();
        sort(count);
        f.loop(f.i32(0), f.i32(rows), 1, [&](Lanes row) { addRow(row, state[1]); });
        return LaneList{f.i32(0), f.i32(1)};
      });
    });
    return f.finish((v + rows - 1) / rows);
  }

private:
  Lanes row0() { return {&f.builder, f.loc, firstRow}; }

  /// Appends a chunk's ids that are ours, and gives the new length. Counts of the warps lie in one of two places by
  /// turns, so that one barrier a chunk is enough.
  Lanes list(Lanes chunk, Lanes count) {
    Lanes position = chunk * f.i32(kThreads) + f.thread();
    Lanes isInside = less(position, f.i32(n));
    Lanes id = f.onlyIf(isInside, {f.i64(-1)}, [&] { return LaneList{f.load(ids, position)}; })[0];
    Lanes row = id - f.wide(row0());
    Lanes isOurs = logicalAnd(logicalAnd(lessEqual(f.i64(0), row), less(row, f.i64(rows))), less(id, f.i64(v)));
    Lanes votes = f.ballot(isOurs), lane = f.remainder(f.thread(), 32), warp = f.quotient(f.thread(), 32);
    Lanes turn = f.remainder(chunk, 2) * f.i32(kWarps);
    f.onlyIf(equal(lane, f.i32(0)), [&] { f.store(ones(votes), inWarp, turn + warp); });
    f.barrier();
    Lanes before = count, total = count;
    for (int64_t other = 0; other < kWarps; ++other) {
      Lanes ofOther = f.load(inWarp, turn + f.i32(other));
      before = before + select(less(f.i32(other), warp), ofOther, f.i32(0));
      total = total + ofOther;
    }
    Lanes earlier = apply<arith::ShLIOp>(f.i32(1), lane) - f.i32(1);
    Lanes place = before + ones(apply<arith::AndIOp>(votes, earlier));
    f.onlyIf(isOurs, [&] {
      f.store(position, found, place);
      f.store(row.castTo(f.builder.getI32Type()), foundRow, place);
    });
    return total;
  }
  Lanes ones(Lanes bits) { return bits.with(f.builder.create<math::CtPopOp>(f.loc, bits.value)); }

  /// Brings the list in the order of rows. Thread r counts and places row r's entries.
  void sort(Lanes count) {
    Lanes mine = f.thread();
    f.onlyIf(less(mine, f.i32(rows)), [&] {
      Lanes sum = f.loop(f.i32(0), count, 1, {f.i32(0)}, [&](Lanes at, ArrayRef<Lanes> sum) {
        return LaneList{sum[0] + lessEqual(f.load(foundRow, at), mine).castTo(f.builder.getI32Type())};
      })[0];
      f.store(sum, ends, mine);
    });
    f.barrier();
    f.onlyIf(less(mine, f.i32(rows)), [&] {
      f.loop(f.i32(0), count, 1, {beginOf(mine)}, [&](Lanes at, ArrayRef<Lanes> place) {
        Lanes isMine = equal(f.load(foundRow, at), mine);
        f.onlyIf(isMine, [&] { f.store(f.load(found, at), sorted, place[0]); });
        return LaneList{place[0] + isMine.castTo(f.builder.getI32Type())};
      });
    });
    f.barrier();
  }
  Lanes beginOf(Lanes row) {
    return f.onlyIf(less(f.i32(0), row), {f.i32(0)}, [&] { return LaneList{f.load(ends, row - f.i32(1))}; })[0];
  }

  /// Adds the sorted list's gradients to one row: to what it holds, or to zero.
  void addRow(Lanes row, Lanes holdsSums) {
    Lanes begin = beginOf(row), end = f.load(ends, row), target = row0() + row;
    Lanes holds = equal(holdsSums, f.i32(1));
    Lanes hasWork = logicalAnd(less(target, f.i32(v)), logicalOr(less(begin, end), logicalNot(holds)));
    f.onlyIf(hasWork, [&] {
      f.loop(f.thread() * f.i32(width), f.i32(c), kThreads * width, [&](Lanes column) {
        Lanes at = f.wide(target) * f.i64(c) + f.wide(column);
        LaneList sums = f.onlyIf(holds, LaneList(size_t(width), f.f32(0)), [&] { return f.load(dTable, at, width); });
        Lanes whole = end - f.remainder(end - begin, kUnroll);
        sums = f.loop(begin, whole, kUnroll, sums,
                      [&](Lanes first, ArrayRef<Lanes> sums) { return added(sums, first, kUnroll, column); });
        sums = f.loop(whole, end, 1, sums,
                      [&](Lanes first, ArrayRef<Lanes> sums) { return added(sums, first, 1, column); });
        f.store(sums, dTable, at);
      });
    });
  }
  LaneList added(ArrayRef<Lanes> sums, Lanes first, int64_t count, Lanes column) {
    LaneList result(sums);
    SmallVector<LaneList> gradients;
    for (int64_t i = 0; i < count; ++i) {
      Lanes position = f.load(sorted, first + f.i32(i));
      gradients.push_back(f.load(dOut, f.wide(position) * f.i64(c) + f.wide(column), width));
    }
    for (const LaneList &gradient : gradients)
      for (size_t j = 0; j < gradient.size(); ++j)
        result[j] = result[j] + gradient[j];
    return result;
  }

  const int64_t n, v, c;
  const bool accumulates;
  const int64_t rows;  ///< of the table, a block's
  const int64_t width; ///< columns of one access
  GpuFunction f;
  GpuBuffer ids, dOut, dTable;
  GpuBuffer found, foundRow; ///< positions and rows of the block, in the order of positions
  GpuBuffer sorted;          ///< positions in the order of rows, then positions
  GpuBuffer ends;            ///< where each row's entries in `sorted` end
  GpuBuffer inWarp;          ///< how many ids each warp has found
  Value firstRow;
};
} // namespace

llvm::Expected<GpuKernel> emitEmbeddingGrad(const Launch &launch, StringRef symbol, MLIRContext &context) {
  return EmbeddingGradKernel(launch, symbol, context).emit();
}

} // namespace llmc
