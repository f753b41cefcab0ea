// The CPU's loops and memory. Whole rows have known sizes: their reductions run on four accumulators, added pairwise,
// then across the lanes in halves, so that the order depends on the shape alone. Other columns are given at run time.
#include "backend/codegen/CpuKernelBuilder.h"
#include "backend/codegen/Storage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace llmc {

/// Vectors that one iteration of a reducing loop takes, each with its own accumulator: hides the latency of additions.
static constexpr int64_t kReductionUnroll = 4;

struct CpuKernelBuilder::ColumnLoop {
  ArrayRef<RowReduction> reductions;
  function_ref<SmallVector<Lanes>()> body;
};

CpuKernelBuilder::CpuKernelBuilder(ModuleOp module, StringRef name, const FusionStages &stages, const CpuIsa &target)
    : opBuilder(module.getContext()), location(opBuilder.getUnknownLoc()), stages(stages), target(target) {
  opBuilder.setInsertionPointToEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(module.getContext()), i64 = opBuilder.getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(module.getContext()), {pointer, i64, i64, i64, i64});
  auto function = opBuilder.create<LLVM::LLVMFuncOp>(location, name, type);
  Block *entry = function.addEntryBlock(opBuilder);
  opBuilder.setInsertionPointToStart(entry);
  rowBegin = entry->getArgument(1);
  rowEnd = entry->getArgument(2);
  colBegin = entry->getArgument(3);
  colEnd = entry->getArgument(4);
  unsigned numOperands = stages.op().getInputs().size() + stages.op().getOutputs().size();
  for (unsigned i = 0; i < numOperands; ++i) {
    Value slot = opBuilder.create<LLVM::GEPOp>(location, pointer, pointer, entry->getArgument(0),
                                               ArrayRef<LLVM::GEPArg>{int32_t(i)});
    pointers.push_back(opBuilder.create<LLVM::LoadOp>(location, pointer, slot));
  }
}

void CpuKernelBuilder::finish() { opBuilder.create<LLVM::ReturnOp>(location, ValueRange()); }

VectorType CpuKernelBuilder::vectorOf(Type element) { return VectorType::get({int64_t(target.lanes)}, element); }
Value CpuKernelBuilder::number(int64_t n) { return opBuilder.create<arith::ConstantIntOp>(location, n, 64); }

Lanes CpuKernelBuilder::splat(Value scalar) {
  VectorType type = vectorOf(scalar.getType());
  Value undefined = opBuilder.create<LLVM::PoisonOp>(location, type);
  Value zero = opBuilder.create<arith::ConstantIntOp>(location, 0, 32);
  Value first = opBuilder.create<LLVM::InsertElementOp>(location, type, undefined, scalar, zero);
  return lanesOf(
      opBuilder.create<LLVM::ShuffleVectorOp>(location, first, undefined, SmallVector<int32_t>(target.lanes, 0)));
}

Lanes CpuKernelBuilder::constant(Type type, double n) {
  Attribute element =
      isa<FloatType>(type) ? Attribute(FloatAttr::get(type, n)) : Attribute(IntegerAttr::get(type, int64_t(n)));
  return lanesOf(opBuilder.create<arith::ConstantOp>(location, DenseElementsAttr::get(vectorOf(type), element)));
}

//===-- Memory

Value CpuKernelBuilder::address(Buffer buffer, Value offset) {
  Type pointer = pointers[buffer.operand].getType();
  return opBuilder.create<LLVM::GEPOp>(location, pointer, memoryType(buffer.storage), pointers[buffer.operand],
                                       ValueRange{offset});
}

Lanes CpuKernelBuilder::loadLanes(Buffer buffer, Value rowOffset) {
  Type pointer = pointers[buffer.operand].getType(), memory = memoryType(buffer.storage);
  Value at = opBuilder.create<LLVM::GEPOp>(location, pointer, memory, address(buffer, rowOffset), ValueRange{column});
  unsigned bytes = storageBytes(buffer.storage);
  if (!mask)
    return fromStorage(lanesOf(opBuilder.create<LLVM::LoadOp>(location, vectorOf(memory), at, bytes)), buffer.storage);
  // Lanes that do not exist read as one, which every op can take (zero would not do as an integer's divisor).
  Value one = constant(memory, 1).value;
  Value loaded = opBuilder.create<LLVM::MaskedLoadOp>(location, vectorOf(memory), at, mask, ValueRange{one}, bytes);
  return fromStorage(lanesOf(loaded), buffer.storage);
}

void CpuKernelBuilder::storeLanes(Buffer buffer, Value rowOffset, Lanes lanes) {
  Type pointer = pointers[buffer.operand].getType(), memory = memoryType(buffer.storage);
  Value at = opBuilder.create<LLVM::GEPOp>(location, pointer, memory, address(buffer, rowOffset), ValueRange{column});
  Value stored = toStorage(lanes, buffer.storage, target.hasBf16).value;
  unsigned bytes = storageBytes(buffer.storage);
  if (mask)
    opBuilder.create<LLVM::MaskedStoreOp>(location, stored, at, mask, bytes);
  else
    opBuilder.create<LLVM::StoreOp>(location, stored, at, bytes);
}

Lanes CpuKernelBuilder::loadElement(Buffer buffer, Value offset) {
  Value loaded = opBuilder.create<LLVM::LoadOp>(location, memoryType(buffer.storage), address(buffer, offset));
  return splat(fromStorage(lanesOf(loaded), buffer.storage).value);
}

void CpuKernelBuilder::storeElement(Buffer buffer, Value offset, Lanes lanes) {
  Lanes stored = toStorage(lanes, buffer.storage, target.hasBf16);
  Value zero = opBuilder.create<arith::ConstantIntOp>(location, 0, 32);
  Value first = opBuilder.create<LLVM::ExtractElementOp>(location, stored.value, zero);
  opBuilder.create<LLVM::StoreOp>(location, first, address(buffer, offset));
}

/// The rows before have left theirs in the buffer.
void CpuKernelBuilder::combinePartial(Buffer buffer, Combine combine, Lanes lanes, bool isLanes) {
  Value block = opBuilder.create<arith::DivUIOp>(location, row, number(stages.rowBlock));
  Value offset = opBuilder.create<arith::MulIOp>(location, block, number(stages.cols));
  Lanes before = isLanes ? loadLanes(buffer, offset) : loadElement(buffer, offset);
  Lanes neutral = constant(before.elementType(), neutralNumber(combine, before.elementType()));
  before = before.with(opBuilder.create<arith::SelectOp>(location, isFirstRow, neutral.value, before.value));
  Lanes combined = combineLanes(combine, before, lanes);
  isLanes ? storeLanes(buffer, offset, combined) : storeElement(buffer, offset, combined);
}

//===-- Loops

void CpuKernelBuilder::forRows(function_ref<void(Value)> body) {
  if (stages.rows == 1) {
    row = number(0);
    isFirstRow = opBuilder.create<arith::ConstantIntOp>(location, 1, 1);
    return body(row);
  }
  auto loop = opBuilder.create<scf::ForOp>(location, rowBegin, rowEnd, number(1));
  OpBuilder::InsertionGuard guard(opBuilder);
  opBuilder.setInsertionPointToStart(loop.getBody());
  row = loop.getInductionVar();
  isFirstRow = opBuilder.create<arith::CmpIOp>(location, arith::CmpIPredicate::eq, row, rowBegin);
  body(row);
}

Lanes CpuKernelBuilder::columnIndex() {
  SmallVector<int64_t> steps = llvm::to_vector(llvm::seq<int64_t>(0, target.lanes));
  Value step = opBuilder.create<arith::ConstantOp>(
      location, DenseElementsAttr::get(vectorOf(opBuilder.getI64Type()), ArrayRef(steps)));
  return splat(column) + lanesOf(step);
}

/// One vector of columns.
void CpuKernelBuilder::runOnce(ColumnLoop &loop, Value firstColumn, MutableArrayRef<Value> accumulators) {
  column = firstColumn;
  SmallVector<Lanes> lanes = loop.body();
  for (auto [reduction, next, accumulator] : llvm::zip_equal(loop.reductions, lanes, accumulators)) {
    if (mask) {
      Value neutral = constant(reduction.type, neutralNumber(reduction.combine, reduction.type)).value;
      next = next.with(opBuilder.create<arith::SelectOp>(location, mask, next.value, neutral));
    }
    accumulator = combineLanes(reduction.combine, lanesOf(accumulator), next).value;
  }
}

/// Columns [begin, end), `unroll` vectors an iteration, vector i into the i-th set of accumulators.
void CpuKernelBuilder::runLoop(ColumnLoop &loop, int64_t begin, int64_t end, unsigned unroll,
                               Accumulators &accumulators) {
  size_t numReductions = loop.reductions.size();
  int64_t step = int64_t(unroll) * target.lanes;
  auto iteration = [&](Value firstColumn, MutableArrayRef<Value> sets) {
    for (unsigned i = 0; i < unroll; ++i) {
      Value at =
          i == 0 ? firstColumn : opBuilder.create<arith::AddIOp>(location, firstColumn, number(i * target.lanes));
      runOnce(loop, at, sets.slice(i * numReductions, numReductions));
    }
  };
  if (begin == end)
    return;
  if (begin + step == end)
    return iteration(number(begin), accumulators);
  auto columns = opBuilder.create<scf::ForOp>(location, number(begin), number(end), number(step), accumulators);
  OpBuilder::InsertionGuard guard(opBuilder);
  opBuilder.setInsertionPointToStart(columns.getBody());
  Accumulators inside(columns.getRegionIterArgs());
  iteration(columns.getInductionVar(), inside);
  if (!inside.empty())
    opBuilder.create<scf::YieldOp>(location, inside);
  accumulators.assign(columns.result_begin(), columns.result_end());
}

/// Across the lanes of one vector, by halves.
Value CpuKernelBuilder::combineAcross(Combine combine, Value lanes) {
  for (unsigned width = target.lanes / 2; width > 0; width /= 2) {
    SmallVector<int32_t> order(target.lanes);
    for (unsigned i = 0; i < target.lanes; ++i)
      order[i] = int32_t(i ^ width);
    Value swapped = opBuilder.create<LLVM::ShuffleVectorOp>(location, lanes, lanes, order);
    lanes = combineLanes(combine, lanesOf(lanes), lanesOf(swapped)).value;
  }
  return lanes;
}

SmallVector<Lanes> CpuKernelBuilder::wholeRow(ColumnLoop &loop) {
  int64_t vectors = stages.cols / target.lanes, numReductions = loop.reductions.size();
  int64_t unroll = numReductions ? std::clamp<int64_t>(vectors, 1, kReductionUnroll) : 1;
  Accumulators accumulators;
  for (int64_t i = 0; i < unroll; ++i)
    for (const RowReduction &reduction : loop.reductions)
      accumulators.push_back(constant(reduction.type, neutralNumber(reduction.combine, reduction.type)).value);
  int64_t unrolled = vectors / unroll * unroll * target.lanes, full = vectors * target.lanes;
  runLoop(loop, 0, unrolled, unroll, accumulators);
  Accumulators first(accumulators.begin(), accumulators.begin() + numReductions);
  runLoop(loop, unrolled, full, 1, first);
  if (full < stages.cols) {
    SmallVector<bool> exists(target.lanes);
    for (int64_t i = full; i < stages.cols; ++i)
      exists[i - full] = true;
    mask = opBuilder.create<arith::ConstantOp>(
        location, DenseElementsAttr::get(vectorOf(opBuilder.getI1Type()), ArrayRef(exists)));
    runOnce(loop, number(full), first);
    mask = Value();
  }
  SmallVector<Lanes> reduced;
  for (auto [r, reduction] : llvm::enumerate(loop.reductions)) {
    accumulators[r] = first[r];
    // Pairwise: (0 + 2) + (1 + 3).
    for (int64_t count = unroll; count > 1; count = (count + 1) / 2)
      for (int64_t i = (count + 1) / 2; i < count; ++i) {
        Value &to = accumulators[(i - (count + 1) / 2) * numReductions + r];
        to = combineLanes(reduction.combine, lanesOf(to), lanesOf(accumulators[i * numReductions + r])).value;
      }
    reduced.push_back(lanesOf(combineAcross(reduction.combine, accumulators[r])));
  }
  return reduced;
}

void CpuKernelBuilder::partOfRow(ColumnLoop &loop) {
  int64_t lanes = target.lanes;
  Value count = opBuilder.create<arith::SubIOp>(location, colEnd, colBegin);
  Value full = opBuilder.create<arith::AndIOp>(location, count, number(-lanes));
  Value end = opBuilder.create<arith::AddIOp>(location, colBegin, full);
  {
    auto columns = opBuilder.create<scf::ForOp>(location, colBegin, end, number(lanes));
    OpBuilder::InsertionGuard guard(opBuilder);
    opBuilder.setInsertionPointToStart(columns.getBody());
    runOnce(loop, columns.getInductionVar(), {});
  }
  if (!stages.isLinear() && stages.cols % lanes == 0 && stages.colBlock % lanes == 0)
    return;
  Value hasTail = opBuilder.create<arith::CmpIOp>(location, arith::CmpIPredicate::slt, end, colEnd);
  auto tail = opBuilder.create<scf::IfOp>(location, hasTail, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(opBuilder);
  opBuilder.setInsertionPointToStart(tail.thenBlock());
  column = end;
  mask = less(columnIndex(), splat(colEnd)).value;
  runOnce(loop, end, {});
  mask = Value();
}

SmallVector<Lanes> CpuKernelBuilder::forColumns(ArrayRef<RowReduction> reductions,
                                                function_ref<SmallVector<Lanes>()> body) {
  ColumnLoop loop{reductions, body};
  if (stages.hasWholeRows())
    return wholeRow(loop);
  assert(reductions.empty() && "a row reduction needs whole rows");
  partOfRow(loop);
  return {};
}

} // namespace llmc
