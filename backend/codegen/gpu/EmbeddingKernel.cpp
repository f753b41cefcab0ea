// dst (n, c) = table (v, c)[ids (n)]. A thread moves one vector of a row. A bad id gives a row of zeros and its
// position in the status word; where several are bad, one of them.
#include "backend/codegen/LaneOps.h"
#include "backend/codegen/gpu/Emitters.h"
#include "backend/codegen/gpu/GpuFunction.h"
#include "runtime/KernelArguments.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace llmc {

static constexpr uint32_t kThreads = 256;

llvm::Expected<GpuKernel> emitEmbedding(const Launch &launch, StringRef symbol, MLIRContext &context) {
  const int64_t n = integerArgument(launch, "n"), v = integerArgument(launch, "v"), c = integerArgument(launch, "c");
  GpuFunction f(launch, symbol, context, kThreads);
  GpuBuffer table = f.operand("table", typeArgument(launch, "tableType"));
  GpuBuffer dst = f.operand("dst", typeArgument(launch, "dstType"));
  GpuBuffer ids = f.operand("ids", ElementType::i64);
  const int64_t width = accessWidth(4, {c}), perRow = c / width;

  Lanes at = f.wide(f.block()) * f.i64(kThreads) + f.wide(f.thread()); ///< counts vectors
  f.onlyIf(less(at, f.i64(n * perRow)), [&] {
    Lanes row = f.quotient(at, perRow), column = f.remainder(at, perRow) * f.i64(width);
    Lanes id = f.load(ids, row);
    Lanes isGood = id.with(
        f.builder.create<arith::CmpIOp>(f.loc, arith::CmpIPredicate::ult, id.value, f.i64(v).value).getResult());
    LaneList numbers = f.onlyIf(isGood, LaneList(size_t(width), f.f32(0)),
                                [&] { return f.load(table, id * f.i64(c) + column, width); });
    f.store(numbers, dst, row * f.i64(c) + column);
    f.onlyIf(logicalNot(isGood), [&] { f.store(row + f.i64(1), f.status(), f.i64(0)); });
  });
  return f.finish((n * perRow + kThreads - 1) / kThreads);
}

} // namespace llmc
