// A walk up from what is yielded, which stops at whatever is at hand.
#include "passes/FusionSlice.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace llmc {

namespace {

class Slicer {
public:
  Slicer(FusionOp fusion, unsigned result, llvm::function_ref<bool(Value)> isAtHand)
      : fusion(fusion), result(result), isAtHand(isAtHand),
        yields(fusion.getBody().front().getTerminator()->getOperands()) {}

  std::optional<FusionSlice> run() {
    if (!visit(yields[result]))
      return std::nullopt;
    return std::move(slice);
  }

private:
  /// Another result of the fusion that holds a body value whole.
  Value otherResult(Value value) {
    for (auto [i, yielded] : llvm::enumerate(yields))
      if (i != result && yielded == value && isAtHand(fusion.getOutputs()[i]))
        return fusion.getOutputs()[i];
    return {};
  }

  bool visit(Value value) {
    if (slice.inputs.contains(value) || (value.getDefiningOp() && slice.ops.contains(value.getDefiningOp())))
      return true;
    Value outside = otherResult(value);
    if (auto argument = dyn_cast<BlockArgument>(value); argument && !outside) {
      outside = fusion.getInputs()[argument.getArgNumber()];
      if (!isAtHand(outside))
        return false;
    }
    Operation *op = value.getDefiningOp();
    if (fusion.isColumnReduction(op))
      return false; // what it yields are partial sums, not its value
    if (outside) {
      slice.inputs[value] = outside;
      return true;
    }
    for (Value operand : op->getOperands())
      if (!visit(operand))
        return false;
    slice.ops.insert(op);
    return true;
  }

  FusionOp fusion;
  unsigned result;
  llvm::function_ref<bool(Value)> isAtHand;
  ValueRange yields;
  FusionSlice slice;
};

} // namespace

std::optional<FusionSlice> sliceFusion(FusionOp fusion, unsigned result, llvm::function_ref<bool(Value)> isAtHand) {
  return Slicer(fusion, result, isAtHand).run();
}

FusionOp buildSlice(OpBuilder &builder, FusionOp fusion, unsigned result, const FusionSlice &slice) {
  SmallVector<Value> inputs;
  for (auto [inside, outside] : slice.inputs)
    inputs.push_back(outside);
  Value yielded = fusion.getBody().front().getTerminator()->getOperand(result);
  auto clone = builder.create<FusionOp>(fusion.getLoc(), TypeRange{fusion.getOutputs()[result].getType()}, inputs,
                                        fusion.getSpaceAttr(), fusion.getRowBlockAttr(), fusion.getColBlockAttr());
  Block &body = clone.getBody().emplaceBlock();
  IRMapping mapping;
  for (auto [inside, outside] : slice.inputs)
    mapping.map(inside, body.addArgument(inside.getType(), inside.getLoc()));
  OpBuilder inner = OpBuilder::atBlockEnd(&body);
  for (Operation *op : slice.ops)
    inner.clone(*op, mapping);
  inner.create<YieldOp>(fusion.getLoc(), mapping.lookup(yielded));
  return clone;
}

} // namespace llmc
