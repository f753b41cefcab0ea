// Free are constants of one number, iotas, bf16 read as f32, and math on single elements that only kernels read; in the
// block's order, so that an op's producers are known before it.
#include "passes/FusibleOps.h"

using namespace mlir;

namespace llmc {

bool isRowReduction(Operation *op) {
  if (auto sum = dyn_cast<ReduceSumOp>(op))
    return sum.isOverLastAxis();
  auto maximum = dyn_cast<ReduceMaxOp>(op);
  return maximum && maximum.isOverLastAxis();
}

bool isColumnReduction(Operation *op) { return isa<ReduceSumOp>(op) && !isRowReduction(op); }

ArrayRef<int64_t> iterationShape(Operation *op) {
  Value shaped = isa<ReduceSumOp, ReduceMaxOp>(op) ? op->getOperand(0) : op->getResult(0);
  return cast<RankedTensorType>(shaped.getType()).getShape();
}

static int64_t numElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

/// Whether only generated kernels read the result: another op needs it in memory, made by a kernel of its own.
static bool isReadInKernelsOnly(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    if (isa<ReshapeOp>(user))
      return numElements(user->getResult(0)) == 1 && isReadInKernelsOnly(user);
    return isa<LaneOpInterface>(user) || isRowReduction(user) || isColumnReduction(user);
  });
}

/// Reading bf16 as f32 is part of a load.
static bool isWidening(Operation *op) {
  return isa<CastOp>(op) && getElementTypeOrSelf(op->getOperand(0).getType()).isBF16() &&
         getElementTypeOrSelf(op->getResult(0).getType()).isF32();
}

/// Whether each kernel may have its own copy of the op, whoever reads it.
static bool isCheap(Operation *op, const FusibleOps &ops) {
  if (isa<IotaOp>(op) || isWidening(op))
    return true;
  if (isa<BroadcastToOp>(op) && op->getOperand(0).getDefiningOp())
    return ops.isFree(op->getOperand(0).getDefiningOp());
  return numElements(op->getResult(0)) == 1 &&
         llvm::all_of(op->getOperands(), [](Value operand) { return numElements(operand) == 1; });
}

FusibleOps::FusibleOps(Block &block) {
  for (Operation &op : block) {
    bool isConstant = op.hasTrait<OpTrait::ConstantLike>();
    if (isConstant ? constantSplat(op.getResult(0)).has_value()
                   : isa<LaneOpInterface, ReshapeOp>(op) && isCheap(&op, *this) && isReadInKernelsOnly(&op))
      free.insert(&op);
  }
}

bool FusibleOps::isFusible(Operation *op) const {
  if (isFree(op))
    return false;
  if (isa<ReduceSumOp, ReduceMaxOp>(op))
    return isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  return isa<LaneOpInterface>(op);
}

} // namespace llmc
