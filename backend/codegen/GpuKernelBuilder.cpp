// A GPU thread's loops and memory. What follows from the thread's place is computed first, once. Every order of a sum
// depends on the shape alone: lanes pairwise, then threads by halves, then warps by halves.
#include "backend/codegen/GpuKernelBuilder.h"
#include "backend/codegen/Storage.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace llmc {

static constexpr int64_t kWarp = 32;
static constexpr unsigned kGlobal = 1, kShared = 3; ///< address spaces
/// Accesses to a row that are written out: they stay in registers from one stage to the next.
static constexpr int64_t kMostChunks = 8;
/// Accesses that an iteration of a longer loop makes.
static constexpr int64_t kUnroll = 4;
/// Addresses of so many operands take 32 registers or more. To fit one more block beside the others ptxas then spills
/// a few bytes, unless the kernel says that one block is enough. With fewer operands its own choice of registers is
/// the better one.
static constexpr unsigned kManyOperands = 16;

GpuKernelBuilder::GpuKernelBuilder(ModuleOp module, StringRef name, const FusionStages &stages,
                                   const GpuGeometry &geometry)
    : opBuilder(module.getContext()), module(module), name(name.str()), location(opBuilder.getUnknownLoc()),
      stages(stages), geometry(geometry) {
  MLIRContext *context = module.getContext();
  opBuilder.setInsertionPointToEnd(module.getBody());
  unsigned numOperands = stages.op().getInputs().size() + stages.op().getOutputs().size();
  SmallVector<Type> parameters(numOperands, LLVM::LLVMPointerType::get(context, kGlobal));
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(context), parameters);
  auto function = opBuilder.create<LLVM::LLVMFuncOp>(location, name, type);
  function->setAttr(NVVM::NVVMDialect::getKernelFuncAttrName(), opBuilder.getUnitAttr());
  function->setAttr(NVVM::NVVMDialect::getReqntidAttrName(),
                    opBuilder.getDenseI32ArrayAttr({int32_t(geometry.threads())}));
  if (numOperands >= kManyOperands)
    function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), opBuilder.getI32IntegerAttr(1));
  Block *entry = function.addEntryBlock(opBuilder);
  opBuilder.setInsertionPointToStart(entry);
  llvm::append_range(pointers, entry->getArguments());

  Type i32 = opBuilder.getI32Type(), i64 = opBuilder.getI64Type();
  auto wide = [&](Value value) { return opBuilder.create<arith::ExtUIOp>(location, i64, value); };
  Value thread = opBuilder.create<NVVM::ThreadIdXOp>(location, i32);
  Value block = opBuilder.create<NVVM::BlockIdXOp>(location, i32);
  group = wide(apply<arith::DivUIOp>(thread, number32(geometry.rowThreads)));
  member = wide(apply<arith::RemUIOp>(thread, number32(geometry.rowThreads)));
  int64_t colBlocks = llvm::divideCeil(stages.cols, stages.colBlock);
  rowBegin = apply<arith::MulIOp>(wide(apply<arith::DivUIOp>(block, number32(colBlocks))), number(stages.rowBlock));
  colBegin = apply<arith::MulIOp>(wide(apply<arith::RemUIOp>(block, number32(colBlocks))), number(stages.colBlock));
  colEnd = apply<arith::MinUIOp>(apply<arith::AddIOp>(colBegin, number(stages.colBlock)), number(stages.cols));
  // Groups of one warp may come to different numbers of rows: each names its own threads then.
  members = number32(-1);
  bool isEven = stages.rows % stages.rowBlock == 0 && stages.rowBlock % geometry.rowsAtOnce == 0;
  if (geometry.rowThreads < kWarp && !isEven) {
    Value first = apply<arith::AndIOp>(thread, number32((kWarp - 1) & -geometry.rowThreads));
    members = apply<arith::ShLIOp>(number32((int64_t(1) << geometry.rowThreads) - 1), first);
  }
  startPartials();
}

void GpuKernelBuilder::finish() {
  finishPartials();
  opBuilder.create<LLVM::ReturnOp>(location, ValueRange());
}

//===-- Numbers

Type GpuKernelBuilder::lanesType(Type element) {
  return geometry.width == 1 ? element : VectorType::get({geometry.width}, element);
}
Value GpuKernelBuilder::number(int64_t n) { return opBuilder.create<arith::ConstantIntOp>(location, n, 64); }
Value GpuKernelBuilder::number32(int64_t n) {
  return opBuilder.create<arith::ConstantIntOp>(location, int64_t(int32_t(n)), 32);
}
Value GpuKernelBuilder::less(Value a, Value b) {
  return opBuilder.create<arith::CmpIOp>(location, arith::CmpIPredicate::ult, a, b);
}

Lanes GpuKernelBuilder::splat(Value scalar) {
  if (geometry.width == 1)
    return lanesOf(scalar);
  Type type = lanesType(scalar.getType());
  Value undefined = opBuilder.create<LLVM::PoisonOp>(location, type);
  Value first = opBuilder.create<LLVM::InsertElementOp>(location, type, undefined, scalar, number32(0));
  return lanesOf(
      opBuilder.create<LLVM::ShuffleVectorOp>(location, first, undefined, SmallVector<int32_t>(geometry.width, 0)));
}

Lanes GpuKernelBuilder::constant(Type type, double n) {
  TypedAttr element =
      isa<FloatType>(type) ? TypedAttr(FloatAttr::get(type, n)) : TypedAttr(IntegerAttr::get(type, int64_t(n)));
  if (geometry.width > 1)
    element = DenseElementsAttr::get(cast<VectorType>(lanesType(type)), Attribute(element));
  return lanesOf(opBuilder.create<arith::ConstantOp>(location, element));
}

Value GpuKernelBuilder::elementOf(Value lanes, int64_t i) {
  return geometry.width == 1 ? lanes : opBuilder.create<LLVM::ExtractElementOp>(location, lanes, number32(i));
}

Lanes GpuKernelBuilder::columnIndex() {
  if (geometry.width == 1)
    return lanesOf(column);
  SmallVector<int64_t> steps = llvm::to_vector(llvm::seq<int64_t>(0, geometry.width));
  Value step = opBuilder.create<arith::ConstantOp>(
      location, DenseElementsAttr::get(cast<VectorType>(lanesType(opBuilder.getI64Type())), ArrayRef(steps)));
  return splat(column) + lanesOf(step);
}

//===-- Memory

Value GpuKernelBuilder::at(Value pointer, Type element, Value offset) {
  return opBuilder.create<LLVM::GEPOp>(location, pointer.getType(), element, pointer, ValueRange{offset});
}
Value GpuKernelBuilder::address(Buffer buffer, Value offset) {
  return at(pointers[buffer.operand], memoryType(buffer.storage), offset);
}

/// Rows begin at a multiple of `width`, and so does a thread's column.
Lanes GpuKernelBuilder::loadLanes(Buffer buffer, Value rowOffset) {
  Type memory = memoryType(buffer.storage);
  Value loaded = opBuilder.create<LLVM::LoadOp>(location, lanesType(memory),
                                                address(buffer, apply<arith::AddIOp>(rowOffset, column)),
                                                unsigned(geometry.width) * storageBytes(buffer.storage));
  return fromStorage(lanesOf(loaded), buffer.storage);
}

void GpuKernelBuilder::storeLanes(Buffer buffer, Value rowOffset, Lanes lanes) {
  opBuilder.create<LLVM::StoreOp>(location, toStorage(lanes, buffer.storage, /*hasBf16=*/true).value,
                                  address(buffer, apply<arith::AddIOp>(rowOffset, column)),
                                  unsigned(geometry.width) * storageBytes(buffer.storage));
}

Lanes GpuKernelBuilder::loadElement(Buffer buffer, Value offset) {
  Value loaded = opBuilder.create<LLVM::LoadOp>(location, memoryType(buffer.storage), address(buffer, offset));
  return splat(fromStorage(lanesOf(loaded), buffer.storage).value);
}

/// By one thread of the group.
void GpuKernelBuilder::storeElement(Buffer buffer, Value offset, Lanes lanes) {
  Lanes first = lanesOf(elementOf(lanes.value, 0));
  guarded(less(member, number(1)), [&] {
    opBuilder.create<LLVM::StoreOp>(location, toStorage(first, buffer.storage, /*hasBf16=*/true).value,
                                    address(buffer, offset));
  });
}

Value GpuKernelBuilder::sharedVariable(const Twine &suffix, Type element, int64_t size) {
  LLVM::GlobalOp variable;
  {
    OpBuilder::InsertionGuard guard(opBuilder);
    opBuilder.setInsertionPointToStart(module.getBody());
    variable = opBuilder.create<LLVM::GlobalOp>(location, LLVM::LLVMArrayType::get(element, unsigned(size)),
                                                /*isConstant=*/false, LLVM::Linkage::Internal, (name + suffix).str(),
                                                Attribute(), /*alignment=*/16, kShared);
  }
  return opBuilder.create<LLVM::AddressOfOp>(location, variable);
}

void GpuKernelBuilder::guarded(Value condition, function_ref<void()> body) {
  auto branch = opBuilder.create<scf::IfOp>(location, condition, /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(opBuilder);
  opBuilder.setInsertionPointToStart(branch.thenBlock());
  body();
}

void GpuKernelBuilder::barrier() { opBuilder.create<NVVM::Barrier0Op>(location); }

//===-- Loops

void GpuKernelBuilder::forRows(function_ref<void(Value)> body) {
  Value first = apply<arith::AddIOp>(rowBegin, group);
  auto run = [&](Value at) {
    row = at;
    body(at);
  };
  int64_t rowBlock = std::min(stages.rowBlock, stages.rows);
  if (rowBlock == geometry.rowsAtOnce && stages.rows % rowBlock == 0)
    return run(first);
  Value end = apply<arith::MinUIOp>(apply<arith::AddIOp>(rowBegin, number(rowBlock)), number(stages.rows));
  if (rowBlock <= geometry.rowsAtOnce)
    return guarded(less(first, end), [&] { run(first); });
  auto loop = [&](Value begin, Value end, int64_t unroll) {
    auto rows = opBuilder.create<scf::ForOp>(location, begin, end, number(unroll * geometry.rowsAtOnce));
    OpBuilder::InsertionGuard guard(opBuilder);
    opBuilder.setInsertionPointToStart(rows.getBody());
    for (int64_t i = 0; i < unroll; ++i)
      run(apply<arith::AddIOp>(rows.getInductionVar(), number(i * geometry.rowsAtOnce)));
  };
  bool isColumnSum = geometry.hasSharedPartials && stages.stages.size() == 1 && stages.stages[0].reductions.empty();
  if (isColumnSum && rowBlock >= kUnroll * geometry.rowsAtOnce) { // several rows' loads under way at once
    Value rows = apply<arith::SubIOp>(apply<arith::MaxUIOp>(end, first), first);
    Value steps = apply<arith::DivUIOp>(rows, number(kUnroll * geometry.rowsAtOnce));
    Value middle = apply<arith::AddIOp>(first, apply<arith::MulIOp>(steps, number(kUnroll * geometry.rowsAtOnce)));
    loop(first, middle, kUnroll);
    first = middle;
  }
  loop(first, end, 1);
}

/// One access of each thread, from its column on.
void GpuKernelBuilder::runOnce(ColumnLoop &loop, Value firstColumn, Values &accumulators) {
  column = firstColumn;
  SmallVector<Lanes> lanes = loop.body();
  for (auto [reduction, next, accumulator] : llvm::zip_equal(loop.reductions, lanes, accumulators))
    accumulator = combineLanes(reduction.combine, lanesOf(accumulator), next).value;
}

/// The access number `chunk` of each thread; of those that have it when not all do.
void GpuKernelBuilder::runChunk(ColumnLoop &loop, int64_t chunk, bool isWhole, Values &accumulators) {
  Value first = apply<arith::AddIOp>(threadColumn(), number(chunk * geometry.stride()));
  if (isWhole)
    return runOnce(loop, first, accumulators);
  auto branch = opBuilder.create<scf::IfOp>(location, ValueRange(accumulators).getTypes(), less(first, colEnd),
                                            /*withElseRegion=*/!accumulators.empty());
  OpBuilder::InsertionGuard guard(opBuilder);
  Values inside = accumulators;
  opBuilder.setInsertionPointToStart(branch.thenBlock());
  runOnce(loop, first, inside);
  if (accumulators.empty())
    return;
  opBuilder.create<scf::YieldOp>(location, inside);
  opBuilder.setInsertionPointToStart(branch.elseBlock());
  opBuilder.create<scf::YieldOp>(location, accumulators);
  accumulators.assign(branch.result_begin(), branch.result_end());
}

/// A thread's columns from `begin` on that lie before `end`, `unroll` accesses an iteration.
void GpuKernelBuilder::runLoop(ColumnLoop &loop, Value begin, Value end, int64_t unroll, Values &accumulators) {
  auto columns = opBuilder.create<scf::ForOp>(location, begin, end, number(unroll * geometry.stride()), accumulators);
  OpBuilder::InsertionGuard guard(opBuilder);
  opBuilder.setInsertionPointToStart(columns.getBody());
  Values inside(columns.getRegionIterArgs());
  for (int64_t i = 0; i < unroll; ++i)
    runOnce(loop, apply<arith::AddIOp>(columns.getInductionVar(), number(i * geometry.stride())), inside);
  if (!inside.empty())
    opBuilder.create<scf::YieldOp>(location, inside);
  accumulators.assign(columns.result_begin(), columns.result_end());
}

/// The thread's first column.
Value GpuKernelBuilder::threadColumn() {
  return apply<arith::AddIOp>(colBegin, apply<arith::MulIOp>(member, number(geometry.width)));
}

SmallVector<Lanes> GpuKernelBuilder::forColumns(ArrayRef<RowReduction> reductions,
                                                function_ref<SmallVector<Lanes>()> body) {
  ColumnLoop loop{reductions, body};
  Values accumulators;
  for (const RowReduction &reduction : reductions)
    accumulators.push_back(constant(reduction.type, neutralNumber(reduction.combine, reduction.type)).value);
  int64_t stride = geometry.stride(), most = taskColumns();
  int64_t least = stages.cols % stages.colBlock == 0 || most == stages.cols ? most : stages.cols % stages.colBlock;
  int64_t chunks = llvm::divideCeil(most, stride), whole = least / stride;
  if (chunks <= kMostChunks) {
    for (int64_t chunk = 0; chunk < chunks; ++chunk)
      runChunk(loop, chunk, chunk < whole, accumulators);
  } else {
    int64_t unrolled = whole / kUnroll * kUnroll * stride;
    Value first = threadColumn(), rest = apply<arith::AddIOp>(first, number(unrolled));
    runLoop(loop, first, rest, kUnroll, accumulators);
    runLoop(loop, rest, colEnd, 1, accumulators);
  }
  column = Value();
  return combineAcross(reductions, accumulators);
}

} // namespace llmc
