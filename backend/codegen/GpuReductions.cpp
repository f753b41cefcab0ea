// Numbers of one row, and of one column, combined over threads. Each group of threads keeps its own partial results in
// shared memory until all rows are done, so nobody waits for anybody before.
#include "backend/codegen/GpuKernelBuilder.h"
#include "backend/codegen/Storage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace llmc {

static constexpr int64_t kWarp = 32;

//===-- Row reductions

/// The lanes of one thread, pairwise.
Value GpuKernelBuilder::combineWithin(Combine combine, Value lanes) {
  SmallVector<Lanes> parts;
  for (int64_t i = 0; i < geometry.width; ++i)
    parts.push_back(lanesOf(elementOf(lanes, i)));
  for (size_t half = parts.size() / 2; half > 0; half /= 2)
    for (size_t i = 0; i < half; ++i)
      parts[i] = combineLanes(combine, parts[i], parts[i + half]);
  return parts[0].value;
}

/// The value of the thread `distance` away (as an exclusive or).
Value GpuKernelBuilder::exchange(Value value, int64_t distance) {
  Type type = value.getType(), i32 = opBuilder.getI32Type(), i64 = opBuilder.getI64Type();
  if (type.isInteger(64)) {
    Value low = opBuilder.create<arith::TruncIOp>(location, i32, value);
    Value high = opBuilder.create<arith::TruncIOp>(location, i32, apply<arith::ShRUIOp>(value, number(32)));
    low = opBuilder.create<arith::ExtUIOp>(location, i64, exchange(low, distance));
    high = opBuilder.create<arith::ExtUIOp>(location, i64, exchange(high, distance));
    return apply<arith::OrIOp>(low, apply<arith::ShLIOp>(high, number(32)));
  }
  return opBuilder.create<NVVM::ShflOp>(location, type, members, value, number32(distance), number32(kWarp - 1),
                                        NVVM::ShflKind::bfly, UnitAttr());
}

/// Over `size` neighbouring threads, by halves.
Value GpuKernelBuilder::combineGroup(Combine combine, Value value, int64_t size) {
  for (int64_t distance = size / 2; distance > 0; distance /= 2)
    value = combineLanes(combine, lanesOf(value), lanesOf(exchange(value, distance))).value;
  return value;
}

/// Each number of a thread's lanes combined over all threads of its row: in every lane of them all.
SmallVector<Lanes> GpuKernelBuilder::combineAcross(ArrayRef<RowReduction> reductions, const Values &values) {
  SmallVector<Lanes> reduced;
  if (reductions.empty())
    return reduced;
  int64_t warps = geometry.rowThreads / kWarp;
  Values shared;
  Value slot, isFirst;
  if (warps > 1) {
    Value lane = apply<arith::RemUIOp>(member, number(kWarp));
    slot = apply<arith::RemUIOp>(lane, number(warps));
    isFirst = less(lane, number(1));
    if (stages.rowBlock > 1) // the threads may still read what the last row left
      barrier();
  }
  for (auto [reduction, lanes] : llvm::zip_equal(reductions, values)) {
    Value value = combineWithin(reduction.combine, lanes);
    value = combineGroup(reduction.combine, value, std::min(kWarp, geometry.rowThreads));
    if (warps > 1) {
      shared.push_back(sharedVariable("_exchange" + Twine(numExchanges++), reduction.type, warps));
      Value warp = apply<arith::DivUIOp>(member, number(kWarp));
      guarded(isFirst,
              [&] { opBuilder.create<LLVM::StoreOp>(location, value, at(shared.back(), reduction.type, warp)); });
    } else {
      reduced.push_back(splat(value));
    }
  }
  if (warps <= 1)
    return reduced;
  barrier();
  for (auto [reduction, variable] : llvm::zip_equal(reductions, shared)) {
    Value value = opBuilder.create<LLVM::LoadOp>(location, reduction.type, at(variable, reduction.type, slot));
    reduced.push_back(splat(combineGroup(reduction.combine, value, warps)));
  }
  return reduced;
}

//===-- Column reductions

int64_t GpuKernelBuilder::taskColumns() const { return std::min(stages.colBlock, stages.cols); }

/// Each group's numbers start neutral; its threads keep to their own columns, so nobody waits for anybody.
void GpuKernelBuilder::startPartials() {
  if (!geometry.hasSharedPartials)
    return;
  for (const FusionResult &result : stages.results)
    if (result.partial) {
      Type type = computeType(result.storage);
      Value shared = sharedVariable("_partial" + Twine(partials.size()), type, geometry.rowsAtOnce * taskColumns());
      partials.push_back({{result.operand, result.storage}, *result.partial, shared});
    }
  forColumns({}, [&] {
    for (const Partial &partial : partials) {
      Type type = computeType(partial.buffer.storage);
      storeShared(partial, partialSlot(column), constant(type, neutralNumber(partial.combine, type)));
    }
    return SmallVector<Lanes>();
  });
}

/// Where the group has its number of a column.
Value GpuKernelBuilder::partialSlot(Value ofColumn) {
  Value first = apply<arith::MulIOp>(group, number(taskColumns()));
  return apply<arith::AddIOp>(first, apply<arith::SubIOp>(ofColumn, colBegin));
}

Lanes GpuKernelBuilder::loadShared(const Partial &partial, Value slot) {
  Type type = computeType(partial.buffer.storage);
  return lanesOf(opBuilder.create<LLVM::LoadOp>(location, lanesType(type), at(partial.shared, type, slot),
                                                unsigned(geometry.width) * storageBytes(type)));
}

void GpuKernelBuilder::storeShared(const Partial &partial, Value slot, Lanes lanes) {
  Type type = computeType(partial.buffer.storage);
  opBuilder.create<LLVM::StoreOp>(location, lanes.value, at(partial.shared, type, slot),
                                  unsigned(geometry.width) * storageBytes(type));
}

/// Where the task's partial results begin.
Value GpuKernelBuilder::partialOffset() {
  return apply<arith::MulIOp>(apply<arith::DivUIOp>(rowBegin, number(stages.rowBlock)), number(stages.cols));
}

void GpuKernelBuilder::combinePartial(Buffer buffer, Combine combine, Lanes lanes, bool isLanes) {
  OpBuilder::InsertionGuard guard(opBuilder);
  if (!isLanes) // a single column: a group is one thread
    column = colBegin;
  if (geometry.hasSharedPartials) {
    const Partial &partial = *llvm::find_if(partials, [&](auto &p) { return p.buffer.operand == buffer.operand; });
    Value slot = partialSlot(column);
    storeShared(partial, slot, combineLanes(combine, loadShared(partial, slot), lanes));
    return;
  }
  Value isFirst = opBuilder.create<arith::CmpIOp>(location, arith::CmpIPredicate::eq, row, rowBegin);
  Lanes before = loadLanes(buffer, partialOffset());
  Lanes neutral = constant(before.elementType(), neutralNumber(combine, before.elementType()));
  before = before.with(opBuilder.create<arith::SelectOp>(location, isFirst, neutral.value, before.value));
  storeLanes(buffer, partialOffset(), combineLanes(combine, before, lanes));
}

/// Adds up the groups, in order.
void GpuKernelBuilder::finishPartials() {
  if (partials.empty())
    return;
  if (geometry.rowsAtOnce > 1)
    barrier();
  Value thread = apply<arith::AddIOp>(apply<arith::MulIOp>(group, number(geometry.rowThreads)), member);
  int64_t stride = geometry.threads() * geometry.width;
  for (int64_t chunk = 0; chunk * stride < taskColumns(); ++chunk) {
    Value place = apply<arith::AddIOp>(apply<arith::MulIOp>(thread, number(geometry.width)), number(chunk * stride));
    column = apply<arith::AddIOp>(colBegin, place);
    guarded(less(column, colEnd), [&] {
      for (const Partial &partial : partials) {
        Lanes sum = loadShared(partial, place);
        for (int64_t i = 1; i < geometry.rowsAtOnce; ++i) {
          Value slot = apply<arith::AddIOp>(place, number(i * taskColumns()));
          sum = combineLanes(partial.combine, sum, loadShared(partial, slot));
        }
        storeLanes(partial.buffer, partialOffset(), sum);
      }
    });
  }
}

} // namespace llmc
