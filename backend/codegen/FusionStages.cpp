// The stages of a fusion. A value's level follows from its form (last dimension full: a lane value) and from its
// operands; its depth counts the row reductions between it and the inputs. Loop k computes the reductions of depth k;
// the last loop computes and stores the results.
#include "backend/codegen/FusionStages.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace llmc {

std::optional<Reduction> reductionOf(Operation *op, int64_t rank) {
  if (!op || !isa<ReduceSumOp, ReduceMaxOp>(op))
    return std::nullopt;
  ArrayRef<int64_t> axes = op->getAttrOfType<DenseI64ArrayAttr>("axes").asArrayRef();
  return Reduction{isa<ReduceSumOp>(op) ? Combine::sum : Combine::max, axes != ArrayRef<int64_t>(rank - 1)};
}

Type computeType(Type storage) {
  return isa<FloatType>(storage) ? Type(Float32Type::get(storage.getContext())) : storage;
}

static bool isStorable(Type type) {
  return type.isF32() || type.isBF16() || type.isInteger(64) || type.isInteger(32) || type.isInteger(1);
}

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The level of a value's form alone.
static Level levelOfShape(ArrayRef<int64_t> shape) {
  if (!shape.empty() && shape.back() > 1)
    return Level::lane;
  return llvm::any_of(shape, [](int64_t size) { return size > 1; }) ? Level::row : Level::kernel;
}

LogicalResult FusionStages::classify(Operation *op) {
  Value value = op->getResult(0);
  if (!isStorable(typeOf(value).getElementType()))
    return op->emitOpError() << "kernels compute in f32, bf16, i64, i32 and i1, found " << value.getType();
  std::optional<Reduction> reduction = reductionOf(op, space.size());
  if (op->hasTrait<OpTrait::ConstantLike>()) {
    ElementsAttr elements;
    if (!matchPattern(op, m_Constant(&elements)) || !elements.isSplat())
      return op->emitOpError() << "a constant in a kernel must be one number, found " << value.getType();
    levels[value] = Level::kernel;
    return success();
  }
  if (!reduction && !isa<LaneOpInterface>(op))
    return op->emitOpError() << "kernels hold elementwise ops and reductions only";
  if (reduction && typeOf(value).getElementType().isInteger(1))
    return op->emitOpError() << "booleans are not reduced";
  Level level = levelOfShape(typeOf(value).getShape());
  unsigned depth = 0;
  for (Value operand : op->getOperands()) {
    depth = std::max(depth, depths.lookup(operand));
    if (!reduction)
      level = std::max(level, levels.lookup(operand));
  }
  if (reduction && !reduction->isColumn && levels.lookup(op->getOperand(0)) == Level::lane) {
    level = Level::row;
    ++depth;
  } else if (reduction) { // of one element a row, or a column reduction, whose result stands for its operand
    level = levels.lookup(op->getOperand(0));
  }
  levels[value] = level;
  depths[value] = depth;
  return success();
}

LogicalResult FusionStages::collectResults() {
  for (auto [i, value] : llvm::enumerate(fusion.getBody().front().getTerminator()->getOperands())) {
    FusionResult result{value, unsigned(fusion.getInputs().size() + i), typeOf(value).getElementType(), std::nullopt};
    Operation *op = value.getDefiningOp();
    if (std::optional<Reduction> reduction = reductionOf(op, space.size()); reduction && reduction->isColumn) {
      result.partial = reduction->combine;
      result.value = op->getOperand(0);
    }
    results.push_back(result);
  }
  return success();
}

/// Adds the ops that `value` is computed from, itself included.
static void collectNeeded(Value value, DenseSet<Operation *> &needed, function_ref<bool(Value)> follow) {
  SmallVector<Value> pending{value};
  while (!pending.empty()) {
    Value next = pending.pop_back_val();
    Operation *op = next.getDefiningOp();
    if (op && follow(next) && needed.insert(op).second)
      llvm::append_range(pending, op->getOperands());
  }
}

void FusionStages::placeOps() {
  Block &body = fusion.getBody().front();
  DenseSet<Operation *> needed;
  for (const FusionResult &result : results)
    collectNeeded(result.value, needed, [](Value) { return true; });

  // The loops: one for each depth at which lanes are reduced, and the one that stores lanes, which comes last.
  auto isLaneReduction = [&](Operation &op) {
    std::optional<Reduction> reduction = reductionOf(&op, space.size());
    return reduction && !reduction->isColumn && level(op.getOperand(0)) == Level::lane;
  };
  unsigned numLoops = 0;
  for (Operation &op : body.without_terminator())
    if (needed.contains(&op) && isLaneReduction(op))
      numLoops = std::max(numLoops, depths.lookup(op.getResult(0)));
  for (const FusionResult &result : results)
    if (level(result.value) == Level::lane)
      numLoops = std::max(numLoops, depths.lookup(result.value) + 1);
  stages.resize(numLoops);

  SmallVector<DenseSet<Operation *>> loopNeeds(numLoops);
  auto isLane = [&](Value value) { return level(value) == Level::lane; };
  for (const FusionResult &result : results)
    if (isLane(result.value))
      collectNeeded(result.value, loopNeeds.back(), isLane);
  for (Operation &op : body.without_terminator()) {
    if (!needed.contains(&op) || !isLaneReduction(op))
      continue;
    unsigned loop = depths.lookup(op.getResult(0)) - 1;
    stages[loop].reductions.push_back(&op);
    collectNeeded(op.getOperand(0), loopNeeds[loop], isLane);
  }
  for (Operation &op : body.without_terminator()) {
    if (!needed.contains(&op) || isLaneReduction(op))
      continue;
    unsigned depth = depths.lookup(op.getResult(0));
    if (level(op.getResult(0)) == Level::kernel)
      kernelOps.push_back(&op);
    else if (level(op.getResult(0)) == Level::row)
      (depth < numLoops ? stages[depth].rowOps : finalRowOps).push_back(&op);
    else
      for (auto [loop, needs] : llvm::enumerate(loopNeeds))
        if (needs.contains(&op))
          stages[loop].laneOps.push_back(&op);
  }
}

FailureOr<FusionStages> FusionStages::analyze(FusionOp fusion) {
  FusionStages analysis;
  analysis.fusion = fusion;
  analysis.space.assign(fusion.getSpace().begin(), fusion.getSpace().end());
  analysis.rows = fusion.getRows();
  analysis.cols = fusion.getCols();
  analysis.rowBlock = fusion.getRowBlock();
  analysis.colBlock = fusion.getColBlock();
  for (BlockArgument argument : fusion.getBody().getArguments()) {
    if (!isStorable(typeOf(argument).getElementType()))
      return fusion.emitOpError() << "kernels read f32, bf16, i64, i32 and booleans, found " << argument.getType();
    analysis.levels[argument] = levelOfShape(typeOf(argument).getShape());
  }
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (failed(analysis.classify(&op)))
      return failure();
  if (failed(analysis.collectResults()))
    return failure();
  analysis.placeOps();
  return analysis;
}

} // namespace llmc
