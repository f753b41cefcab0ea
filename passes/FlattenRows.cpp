// Brings row-wise ops on (…, C) to (rows, C) where a contraction is at one side: their operands become rows, and the
// result a reshape of rows, so that reshapes meet and fold. Reshapes are views; what is gained is that elementwise ops
// on both sides of one see each other.
#include "passes/Match.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_FLATTENROWS
#include "passes/Passes.h.inc"

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// (rows, last dimension) of a shape of three dimensions or more.
static RankedTensorType rowsType(RankedTensorType type) {
  int64_t last = type.getShape().back();
  return RankedTensorType::get({ShapedType::getNumElements(type.getShape().drop_back()), last}, type.getElementType());
}

/// Each result row is a function of the operands' rows at the same place and of row vectors. (Of iota, which has none,
/// it is a function of the place.)
static bool isRowWise(Operation *op) {
  return op->getNumResults() == 1 && op->getNumOperands() > 0 &&
         isa<LaneOpInterface, LayerNormOp, RmsNormOp, SoftmaxOp, LogSoftmaxOp>(op);
}

/// How an operand of a row-wise op looks beside its result.
enum class OperandForm { rows, vector, other };
static OperandForm formOf(Value operand, RankedTensorType result) {
  RankedTensorType type = typeOf(operand);
  ArrayRef<int64_t> shape = type.getShape();
  if (type.getRank() == result.getRank() && shape.drop_back() == result.getShape().drop_back())
    return OperandForm::rows;
  bool isVector = type.getRank() == 0 || llvm::all_of(shape.drop_back(), [](int64_t size) { return size == 1; });
  return isVector ? OperandForm::vector : OperandForm::other;
}

/// (R, C) behind a value of shape (…, C) that is a reshape of it; null otherwise.
static Value rowsBehind(Value value) {
  auto reshape = value.getDefiningOp<ReshapeOp>();
  return reshape && typeOf(value).getRank() > 2 && reshape.getA().getType() == rowsType(typeOf(value)) ? reshape.getA()
                                                                                                       : Value();
}

static bool isReadAsRows(Value value) {
  RankedTensorType rows = rowsType(typeOf(value));
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    auto reshape = dyn_cast<ReshapeOp>(user);
    return reshape && reshape.getType() == rows;
  });
}

/// Whether flattening could meet a reshape: an operand is a reshape of rows, or the result is read as rows.
static bool isNextToRows(Operation *op) {
  if (!isRowWise(op) || op->use_empty() || typeOf(op->getResult(0)).getRank() < 3)
    return false;
  RankedTensorType type = typeOf(op->getResult(0));
  return isReadAsRows(op->getResult(0)) || llvm::any_of(op->getOperands(), [&](Value operand) {
           return formOf(operand, type) == OperandForm::rows && rowsBehind(operand);
         });
}

static bool hasRowsAndVectors(Operation *op) {
  return llvm::none_of(op->getOperands(),
                       [&](Value operand) { return formOf(operand, typeOf(op->getResult(0))) == OperandForm::other; });
}

namespace {
struct FlattenRows : impl::FlattenRowsBase<FlattenRows> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    // Down with the reshapes after contractions, up with those before them, until neither moves. Each op is flattened
    // once at most.
    Block &body = program.getBody().front();
    for (bool isChanged = true; isChanged;) {
      isChanged = false;
      for (Operation &op : llvm::make_early_inc_range(body))
        isChanged |= tryFlatten(&op);
      for (Operation &op : llvm::make_early_inc_range(llvm::reverse(body)))
        isChanged |= tryFlatten(&op);
    }
    foldReshapes(body);
    eraseDeadOps(program);
    for (Operation &op : body)
      if (isNextToRows(&op))
        remarkOn(&op) << "declined: an operand differs between rows by more than its last dimension";
  }

  static bool tryFlatten(Operation *op) {
    if (!isNextToRows(op) || !hasRowsAndVectors(op))
      return false;
    flatten(op, typeOf(op->getResult(0)));
    return true;
  }

  static void flatten(Operation *op, RankedTensorType type) {
    OpBuilder builder(op);
    SmallVector<Value> operands;
    for (Value operand : op->getOperands())
      operands.push_back(formOf(operand, type) == OperandForm::rows ? asRows(operand) : asVector(builder, operand));
    OperationState state(op->getLoc(), op->getName(), operands, {rowsType(type)}, op->getAttrs());
    Operation *flat = builder.create(state);
    remarkOn(flat) << "flattened " << op->getName().stripDialect() << " to " << rowsType(type);
    Value result = builder.create<ReshapeOp>(op->getLoc(), type, flat->getResult(0));
    op->getResult(0).replaceAllUsesWith(result);
    op->erase();
  }

  /// As (rows, last dimension), one reshape for all who read it so.
  static Value asRows(Value value) {
    if (Value rows = rowsBehind(value))
      return rows;
    RankedTensorType type = rowsType(typeOf(value));
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    if (builder.getInsertionPoint() != builder.getInsertionBlock()->end())
      if (auto next = dyn_cast<ReshapeOp>(*builder.getInsertionPoint());
          next && next.getA() == value && next.getType() == type)
        return next;
    return builder.create<ReshapeOp>(value.getLoc(), type, value);
  }

  /// Without the leading dimensions of size one.
  static Value asVector(OpBuilder &builder, Value value) {
    RankedTensorType type = typeOf(value);
    if (type.getRank() <= 1)
      return value;
    return builder.create<ReshapeOp>(value.getLoc(), type.clone(type.getShape().take_back()), value);
  }

  /// What the canonicalizer would do to reshapes of reshapes; done here because the point of the pass is that they
  /// meet.
  static void foldReshapes(Block &body) {
    for (auto reshape : llvm::make_early_inc_range(body.getOps<ReshapeOp>())) {
      SmallVector<Value, 1> results;
      if (succeeded(OpBuilder(reshape).tryFold(reshape, results)) && !results.empty()) {
        reshape.getResult().replaceAllUsesWith(results[0]);
        reshape.erase();
      }
    }
  }
};
} // namespace

} // namespace llmc
