// Decides what a bf16 plan stores in bf16. Ops say by PrecisionOpInterface how they read and write; results are decided
// first, so that a product which flows into the next contraction is never cast. Casts to f32 cost nothing where a
// generated kernel reads (fuse copies them into each reader), casts to bf16 become the store of the kernel that made
// the value.
#include "passes/Match.h"
#include "passes/Memory.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_ASSIGNPRECISION
#include "passes/Passes.h.inc"

static bool isF32(Value value) { return getElementTypeOrSelf(value.getType()).isF32(); }

static RankedTensorType inF32(Value value) {
  return cast<RankedTensorType>(value.getType()).clone(FloatType::getF32(value.getContext()));
}
static RankedTensorType inBf16(Value value) {
  return cast<RankedTensorType>(value.getType()).clone(FloatType::getBF16(value.getContext()));
}

/// How a use reads its value when that is f32.
static PrecisionPolicy policyOf(OpOperand &use) {
  auto op = dyn_cast<PrecisionOpInterface>(use.getOwner());
  return op ? op.getOperandPrecision(use.getOperandNumber()) : PrecisionPolicy::keepF32;
}

/// Whether the op only moves its one operand's elements, so that it can do so in any type.
static bool movesElements(Operation *op) { return isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp>(op); }

/// Why some reader of `value` needs it in f32; "" when none does.
static std::string whyF32(Value value) {
  for (OpOperand &use : value.getUses()) {
    Operation *user = use.getOwner();
    std::string reason = movesElements(user) ? whyF32(user->getResult(0))
                         : policyOf(use) == PrecisionPolicy::keepF32
                             ? (user->getName().stripDialect() + " reads it in f32").str()
                             : "";
    if (!reason.empty())
      return reason;
  }
  return "";
}

namespace {
struct AssignPrecision : impl::AssignPrecisionBase<AssignPrecision> {
  using AssignPrecisionBase::AssignPrecisionBase;
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Block &body = program.getBody().front();
      SmallVector<PrecisionOpInterface> ops(body.getOps<PrecisionOpInterface>());
      for (PrecisionOpInterface op : ops)
        for (OpResult result : op->getResults())
          decideResult(op, result);
      narrowed.clear();
      for (PrecisionOpInterface op : ops)
        for (OpOperand &operand : op->getOpOperands())
          if (isF32(operand.get()) && policyOf(operand) == PrecisionPolicy::bf16)
            operand.set(narrow(operand.get(), op));
      eraseDeadOps(program);
    }
  }

private:
  void decideResult(PrecisionOpInterface op, OpResult result) {
    PrecisionPolicy policy = op.getResultPrecision(result.getResultNumber());
    if (!isF32(result) || policy == PrecisionPolicy::keepF32)
      return;
    std::string reason = policy == PrecisionPolicy::follow ? whyF32(result) : "";
    if (!reason.empty()) {
      remarkOn(op) << "keeps result " << result.getResultNumber() << " in f32: " << reason;
      return;
    }
    remarkOn(op) << "applied: stores result " << result.getResultNumber() << " in bf16";
    storeAsBf16(result);
  }

  /// Retypes a value and what only moves it; other readers get it cast back.
  void storeAsBf16(Value value) {
    value.setType(inBf16(value));
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    Value wide;
    for (OpOperand &use : llvm::make_early_inc_range(value.getUses())) {
      if (movesElements(use.getOwner())) {
        storeAsBf16(use.getOwner()->getResult(0));
      } else if (policyOf(use) != PrecisionPolicy::bf16) {
        if (!wide)
          wide = builder.create<CastOp>(value.getLoc(), inF32(value), value);
        use.set(wide);
      }
    }
  }

  /// `value` in bf16 for `reader`. A parameter is cast where it is read, so that its copy does not live from forward to
  /// backward pass, unless copies are to be kept.
  Value narrow(Value value, Operation *reader) {
    Operation *producer = value.getDefiningOp();
    bool isParameter = isa_and_nonnull<GetOp>(rootOf(value).getDefiningOp());
    if (Value known = narrowed.lookup(value); known && (keepCopies || !isParameter))
      return known;
    if (auto cast = dyn_cast_or_null<CastOp>(producer); cast && getElementTypeOrSelf(cast.getA().getType()).isBF16())
      return cast.getA();
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    Value result;
    if (movesElements(producer) && !isParameter) {
      Operation *moved = builder.clone(*producer);
      moved->setOperand(0, narrow(producer->getOperand(0), producer));
      result = moved->getResult(0);
      result.setType(inBf16(value));
    } else {
      if (isParameter)
        builder.setInsertionPoint(reader);
      result = builder.create<CastOp>(value.getLoc(), inBf16(value), value);
    }
    return narrowed[value] = result;
  }

  DenseMap<Value, Value> narrowed; ///< by value: its bf16 form
};
} // namespace
} // namespace llmc
