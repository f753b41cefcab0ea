// The kernel of a fusion, described once for all targets: rows outside, stages inside, each stage a loop over the
// columns. Math comes from the ops themselves (LaneOpInterface); this file decides what is loaded, computed and stored
// where.
#include "backend/codegen/KernelBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace llmc {

double neutralNumber(Combine combine, Type type) {
  if (combine == Combine::sum)
    return 0;
  if (isa<FloatType>(type))
    return -std::numeric_limits<double>::infinity();
  return -std::ldexp(1.0, type.getIntOrFloatBitWidth() - 1);
}

Lanes combineLanes(Combine combine, Lanes a, Lanes b) { return combine == Combine::sum ? a + b : max(a, b); }

namespace {
class KernelEmitter : public LaneScope {
public:
  KernelEmitter(const FusionStages &stages, KernelBuilder &kernel) : stages(stages), kernel(kernel) {}
  void emit();

  OpBuilder &builder() override { return kernel.builder(); }
  Location loc() override { return kernel.loc(); }
  Lanes index(Operation *op, unsigned dim) override;
  Lanes linearIndex(Operation *op) override;

private:
  /// Values computed so far at each level; a lane's live for one emission of a loop's body, a row's for one row.
  using Values = DenseMap<Value, Lanes>;

  Lanes get(Value value);
  Lanes load(BlockArgument argument);
  void emitOps(ArrayRef<Operation *> ops);
  Lanes emitOp(Operation *op);
  void emitStage(const Stage &stage, bool isLast);
  void storeResults(Level level);

  Value number(int64_t n) { return builder().create<arith::ConstantIntOp>(loc(), n, 64); }
  void startRow(Value currentRow);
  Value rowPart(int64_t after, int64_t size);
  Value rowOffset(ArrayRef<int64_t> shape);
  Values &valuesOf(Level level) { return values[unsigned(level)]; }

  const FusionStages &stages;
  KernelBuilder &kernel;
  std::array<Values, 3> values;
  DenseMap<std::pair<int64_t, int64_t>, Value> rowParts; ///< of the current row
  Value row;
  Operation *rowStart = nullptr; ///< the last op that computes a part of the row's index
};
} // namespace

//===-- Where an element lies

/// row / after % size, an index (or several merged) along leading dimensions.
Value KernelEmitter::rowPart(int64_t after, int64_t size) {
  Value &part = rowParts[{after, size}];
  if (part)
    return part;
  // Before all loops of the row, wherever it is first asked for.
  OpBuilder::InsertionGuard guard(builder());
  builder().setInsertionPointAfter(rowStart);
  part = row;
  if (after > 1)
    part = builder().create<arith::DivUIOp>(loc(), part, number(after));
  if (after * size < stages.rows)
    part = builder().create<arith::RemUIOp>(loc(), part, number(size));
  if (part != row)
    rowStart = part.getDefiningOp();
  return part;
}

/// The offset of the current row in a dense tensor of `shape`, whose dimensions are full or 1: runs of full dimensions
/// are one index.
Value KernelEmitter::rowOffset(ArrayRef<int64_t> shape) {
  Value offset;
  int64_t stride = shape.back(), after = 1;
  for (int64_t d = int64_t(shape.size()) - 2; d >= 0;) {
    int64_t run = 1, next = d;
    for (; next >= 0 && shape[next] == stages.space[next]; --next)
      run *= shape[next];
    if (run > 1) {
      Value part = rowPart(after, run);
      if (stride > 1)
        part = builder().create<arith::MulIOp>(loc(), part, number(stride));
      offset = offset ? builder().create<arith::AddIOp>(loc(), offset, part).getResult() : part;
    }
    stride *= run;
    after *= run;
    if (next >= 0)
      after *= stages.space[next--];
    d = next;
  }
  return offset ? offset : number(0);
}

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

Lanes KernelEmitter::index(Operation *op, unsigned dim) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  if (shape[dim] == 1)
    return kernel.splat(number(0));
  if (dim + 1 == shape.size())
    return kernel.columnIndex();
  int64_t after = 1;
  for (size_t d = dim + 1; d + 1 < shape.size(); ++d)
    after *= stages.space[d];
  return kernel.splat(rowPart(after, shape[dim]));
}

Lanes KernelEmitter::linearIndex(Operation *op) {
  ArrayRef<int64_t> shape = shapeOf(op->getResult(0));
  Lanes first = kernel.splat(rowOffset(shape));
  return shape.back() > 1 ? first + kernel.columnIndex() : first;
}

//===-- Values

Lanes KernelEmitter::load(BlockArgument argument) {
  Buffer buffer{argument.getArgNumber(), getElementTypeOrSelf(argument.getType())};
  Value offset = rowOffset(shapeOf(argument));
  return stages.level(argument) == Level::lane ? kernel.loadLanes(buffer, offset) : kernel.loadElement(buffer, offset);
}

Lanes KernelEmitter::get(Value value) {
  Values &known = valuesOf(stages.level(value));
  if (auto found = known.find(value); found != known.end())
    return found->second;
  Lanes loaded = load(cast<BlockArgument>(value));
  known.insert({value, loaded});
  return loaded;
}

Lanes KernelEmitter::emitOp(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    ElementsAttr elements;
    matchPattern(op, m_Constant(&elements));
    Type type = computeType(elements.getElementType());
    if (isa<FloatType>(type))
      return kernel.constant(type, elements.getSplatValue<APFloat>().convertToDouble());
    APInt number = elements.getSplatValue<APInt>();
    return kernel.constant(type, double(type.isInteger(1) ? int64_t(number.getZExtValue()) : number.getSExtValue()));
  }
  SmallVector<Lanes> operands;
  for (Value operand : op->getOperands())
    operands.push_back(get(operand));
  if (reductionOf(op, stages.space.size())) // over one element: more are reduced by the loops
    return operands[0];
  Lanes result = cast<LaneOpInterface>(op).emitLanes(*this, operands);
  return result.castTo(computeType(getElementTypeOrSelf(op->getResult(0).getType())));
}

void KernelEmitter::emitOps(ArrayRef<Operation *> ops) {
  for (Operation *op : ops)
    valuesOf(stages.level(op->getResult(0))).insert({op->getResult(0), emitOp(op)});
}

//===-- Results

/// Stores the results that are lanes, or those that are one number a row.
void KernelEmitter::storeResults(Level level) {
  bool isLanes = level == Level::lane;
  // All are computed before the first is stored: a result may lie in the buffer of an operand.
  SmallVector<std::pair<const FusionResult *, Lanes>> computed;
  for (const FusionResult &result : stages.results)
    if ((stages.level(result.value) == Level::lane) == isLanes)
      computed.push_back({&result, get(result.value)});
  for (auto &[result, lanes] : computed) {
    Buffer buffer{result->operand, result->storage};
    if (result->partial)
      kernel.combinePartial(buffer, *result->partial, lanes, isLanes);
    else if (isLanes)
      kernel.storeLanes(buffer, rowOffset(shapeOf(result->value)), lanes);
    else
      kernel.storeElement(buffer, rowOffset(shapeOf(result->value)), lanes);
  }
}

//===-- Loops

void KernelEmitter::emitStage(const Stage &stage, bool isLast) {
  emitOps(stage.rowOps);
  SmallVector<RowReduction> reductions;
  for (Operation *op : stage.reductions)
    reductions.push_back({reductionOf(op, stages.space.size())->combine,
                          computeType(getElementTypeOrSelf(op->getOperand(0).getType()))});
  // What is constant along the row is computed before the loop.
  for (Operation *op : stage.laneOps)
    for (Value operand : op->getOperands())
      if (stages.level(operand) != Level::lane)
        get(operand);
  SmallVector<Lanes> reduced = kernel.forColumns(reductions, [&] {
    valuesOf(Level::lane).clear();
    emitOps(stage.laneOps);
    SmallVector<Lanes> operands;
    for (Operation *op : stage.reductions)
      operands.push_back(get(op->getOperand(0)));
    if (isLast)
      storeResults(Level::lane);
    return operands;
  });
  for (auto [op, lanes] : llvm::zip_equal(stage.reductions, reduced))
    valuesOf(Level::row).insert({op->getResult(0), lanes});
}

void KernelEmitter::startRow(Value currentRow) {
  row = currentRow;
  rowStart = number(0).getDefiningOp();
  rowParts.clear();
  valuesOf(Level::row).clear();
}

void KernelEmitter::emit() {
  for (BlockArgument argument : stages.body().getArguments())
    if (stages.level(argument) == Level::kernel && !argument.use_empty())
      get(argument);
  emitOps(stages.kernelOps);
  kernel.forRows([&](Value currentRow) {
    startRow(currentRow);
    for (const Stage &stage : stages.stages)
      emitStage(stage, &stage == &stages.stages.back());
    emitOps(stages.finalRowOps);
    storeResults(Level::row);
  });
}

void emitKernel(const FusionStages &stages, KernelBuilder &kernel) { KernelEmitter(stages, kernel).emit(); }

} // namespace llmc
