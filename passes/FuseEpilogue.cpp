// Lets contractions add: a bias that is added to each row of a product, and a gradient that is added to another. The
// sum becomes the contraction's own accumulator, so it costs no pass over memory and the summand no buffer beside it.
#include "passes/Match.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_FUSEEPILOGUE
#include "passes/Passes.h.inc"

/// The op that makes `value`, when it is an Op and the value has no other reader.
template <typename Op> static Op onlyReadHere(Value value) {
  return value.hasOneUse() ? value.getDefiningOp<Op>() : Op();
}

/// (N) behind a bias that is reshaped or broadcast to rows of N; null when it is no such thing.
static Value biasVector(OpBuilder &builder, Value bias, int64_t size) {
  while (auto broadcast = bias.getDefiningOp<BroadcastToOp>()) {
    if (cast<RankedTensorType>(broadcast.getType()).getShape().back() != size)
      return {};
    bias = broadcast.getA();
  }
  return isRowVector(bias, size) ? asRowVector(builder, bias) : Value();
}

/// The bias of add(product, bias), into the product.
static bool fuseBias(AddOp add) {
  OpBuilder builder(add);
  for (auto [sum, bias] : {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
    auto product = onlyReadHere<MatMulOp>(sum);
    if (!product || product.getBias() || product.getType() != add.getType())
      continue;
    Value vector = biasVector(builder, bias, add.getType().getShape().back());
    if (!vector)
      continue;
    auto fused = builder.create<MatMulOp>(add.getLoc(), add.getType(), product.getLhs(), product.getRhs(), vector,
                                          product.getInit(), product.getTransposeLhs(), product.getTransposeRhs());
    remarkOn(fused) << "fused the bias into the matmul";
    add.getResult().replaceAllUsesWith(fused);
    add.erase();
    product.erase();
    return true;
  }
  return false;
}

/// Whether a contraction may write its sum over `value`: nothing else reads it, and its memory is a value's own, or
/// that of a kept gradient which gets the sum anyway.
static bool mayBeOverwritten(Value value, AddOp add) {
  Operation *op = value.getDefiningOp();
  if (!value.hasOneUse() || !op || isa<ConstantOp>(op))
    return false;
  if (auto view = dyn_cast<ViewOpInterface>(op))
    return !view.isView();
  if (!isa<GetOp>(op))
    return true;
  auto set = add->hasOneUse() ? dyn_cast<SetOp>(*add->user_begin()) : SetOp();
  return set && set.getVariable() == cast<GetOp>(op).getVariable();
}

/// What an op that sums starts from; null for ops that start from zero. Nothing for other ops.
static std::optional<Value> startOf(Operation *op) {
  if (auto gradient = dyn_cast_if_present<EmbeddingGradOp>(op))
    return gradient.getInit();
  if (auto product = dyn_cast_if_present<MatMulOp>(op))
    return product.getInit();
  return std::nullopt;
}

/// The first of the contractions that `value` is the sum of, each starting from the one before; null when it is none or
/// one is read elsewhere.
static Operation *firstContraction(Value value) {
  for (;;) {
    Operation *op = value.getDefiningOp();
    std::optional<Value> start = value.hasOneUse() ? startOf(op) : std::nullopt;
    if (!start)
      return nullptr;
    if (!*start)
      return op;
    value = *start;
  }
}

/// The same op at the builder's place, starting from `start`.
static Operation *buildWithStart(OpBuilder &builder, Operation *op, Value start) {
  if (auto gradient = dyn_cast<EmbeddingGradOp>(op))
    return builder.create<EmbeddingGradOp>(op->getLoc(), gradient.getType(), gradient.getIds(), gradient.getDOut(),
                                           start);
  auto product = cast<MatMulOp>(op);
  return builder.create<MatMulOp>(op->getLoc(), product.getType(), product.getLhs(), product.getRhs(),
                                  product.getBias(), start, product.getTransposeLhs(), product.getTransposeRhs());
}

/// Has `start` defined before `op`: as it is, or by reading the variable earlier where nothing writes it in between.
static bool bringBefore(Value start, Operation *op) {
  Operation *definition = start.getDefiningOp();
  if (definition->isBeforeInBlock(op))
    return true;
  auto get = dyn_cast<GetOp>(definition);
  if (!get)
    return false;
  for (Operation *between = op; between != get; between = between->getNextNode())
    if (auto set = dyn_cast<SetOp>(between); set && set.getVariable() == get.getVariable())
      return false;
  get->moveBefore(op);
  return true;
}

/// Which operand of an add is a sum of contractions that can start from the other. Of two, an embedding's gradient (it
/// only adds the rows where ids are), then the product that comes last.
static std::optional<unsigned> summedOperand(AddOp add) {
  SmallVector<unsigned> candidates;
  for (unsigned i : {0u, 1u}) {
    Value sum = add.getOperand(i), start = add.getOperand(1 - i);
    if (sum.getType() == add.getType() && start.getType() == add.getType() && mayBeOverwritten(start, add) &&
        firstContraction(sum))
      candidates.push_back(i);
  }
  if (candidates.empty())
    return std::nullopt;
  auto isPreferred = [&](unsigned i) {
    Operation *op = add.getOperand(i).getDefiningOp(), *other = add.getOperand(1 - i).getDefiningOp();
    return isa<EmbeddingGradOp>(op) != isa<EmbeddingGradOp>(other) ? isa<EmbeddingGradOp>(op)
                                                                   : other->isBeforeInBlock(op);
  };
  return candidates.size() == 2 && !isPreferred(candidates[0]) ? candidates[1] : candidates[0];
}

/// add(start, sum): the first contraction of the sum starts from `start`. It stays where it is, so that what it reads
/// lives no longer.
static void fuseStart(AddOp add) {
  std::optional<unsigned> summed = summedOperand(add);
  if (!summed)
    return;
  Value sum = add.getOperand(*summed), start = add.getOperand(1 - *summed);
  Operation *contraction = firstContraction(sum);
  bool staysInPlace = bringBefore(start, contraction);
  if (!staysInPlace && sum != contraction->getResult(0))
    return;
  OpBuilder builder(staysInPlace ? contraction : add.getOperation());
  Operation *fused = buildWithStart(builder, contraction, start);
  remarkOn(fused) << "sums into an existing value";
  contraction->getResult(0).replaceAllUsesWith(fused->getResult(0));
  contraction->erase();
  add.getResult().replaceAllUsesWith(add.getOperand(*summed));
  add.erase();
}

namespace {
struct FuseEpilogue : impl::FuseEpilogueBase<FuseEpilogue> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      for (AddOp add : llvm::make_early_inc_range(program.getBody().front().getOps<AddOp>()))
        if (!fuseBias(add))
          fuseStart(add);
      eraseDeadOps(program);
    }
  }
};
} // namespace

} // namespace llmc
