// Lets contractions add: a bias that is added to each row of a product, and a gradient that is added to another. The
// sum becomes the contraction's own accumulator, so it costs no pass over memory and the summand no buffer beside it.
#include "passes/Match.h"
#include "passes/Passes.h"

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
    fused.emitRemark("fused the bias into the matmul");
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

/// The contraction that can take the other summand as its start, if any: an embedding's gradient first (it only adds
/// rows where ids are), then the product that comes last.
static Operation *contractionFor(AddOp add) {
  SmallVector<Operation *> candidates;
  for (auto [sum, start] : {std::pair(add.getA(), add.getB()), std::pair(add.getB(), add.getA())}) {
    if (sum.getType() != add.getType() || start.getType() != add.getType() || !mayBeOverwritten(start, add))
      continue;
    if (auto gradient = onlyReadHere<EmbeddingGradOp>(sum); gradient && !gradient.getInit())
      return gradient;
    if (auto product = onlyReadHere<MatMulOp>(sum); product && !product.getInit())
      candidates.push_back(product);
  }
  if (candidates.empty())
    return nullptr;
  return candidates.size() == 2 && candidates[0]->isBeforeInBlock(candidates[1]) ? candidates[1] : candidates[0];
}

static bool fuseInit(AddOp add) {
  Operation *contraction = contractionFor(add);
  if (!contraction)
    return false;
  Value start = add.getA() == contraction->getResult(0) ? add.getB() : add.getA();
  OpBuilder builder(add);
  Operation *fused;
  if (auto gradient = dyn_cast<EmbeddingGradOp>(contraction)) {
    fused = builder.create<EmbeddingGradOp>(add.getLoc(), add.getType(), gradient.getIds(), gradient.getDOut(), start);
  } else {
    auto product = cast<MatMulOp>(contraction);
    fused = builder.create<MatMulOp>(add.getLoc(), add.getType(), product.getLhs(), product.getRhs(), product.getBias(),
                                     start, product.getTransposeLhs(), product.getTransposeRhs());
  }
  fused->emitRemark("sums into an existing value");
  add.getResult().replaceAllUsesWith(fused->getResult(0));
  add.erase();
  contraction->erase();
  return true;
}

namespace {
struct FuseEpilogue : impl::FuseEpilogueBase<FuseEpilogue> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      for (AddOp add : llvm::make_early_inc_range(program.getBody().front().getOps<AddOp>()))
        if (!fuseBias(add))
          fuseInit(add);
      eraseDeadOps(program);
    }
  }
};
} // namespace

} // namespace llmc
