// Clusters by contraction of a graph that is kept topologically ordered: only the stretch between two nodes has to be
// looked at to know whether they may merge, and only it is reordered when they do (after Pearce and Kelly, "A dynamic
// topological sort algorithm", 2007).
#include "passes/FusionClusters.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace llmc {

/// More buffers than this make a kernel's pointers spill.
static constexpr size_t kMaxBuffers = 28;

static int64_t numElements(Value value) { return cast<RankedTensorType>(value.getType()).getNumElements(); }

bool isRowReduction(Operation *op) {
  if (auto sum = dyn_cast<ReduceSumOp>(op))
    return sum.isOverLastAxis();
  auto maximum = dyn_cast<ReduceMaxOp>(op);
  return maximum && maximum.isOverLastAxis();
}

bool isColumnReduction(Operation *op) { return isa<ReduceSumOp>(op) && !isRowReduction(op); }

bool isFusible(Operation *op) {
  if (isFree(op))
    return false;
  if (isa<ReduceSumOp, ReduceMaxOp>(op))
    return isa<FloatType>(getElementTypeOrSelf(op->getResult(0).getType()));
  return isa<LaneOpInterface>(op);
}

/// Whether only generated kernels read the result: another op needs it in memory, made by a kernel of its own.
static bool isReadInKernelsOnly(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    if (isa<ReshapeOp>(user))
      return numElements(user->getResult(0)) == 1 && isReadInKernelsOnly(user);
    return isa<LaneOpInterface>(user) || isRowReduction(user) || isColumnReduction(user);
  });
}

bool isFree(Operation *op) {
  if (op->hasTrait<OpTrait::ConstantLike>())
    return constantSplat(op->getResult(0)).has_value();
  if (!isa<LaneOpInterface, ReshapeOp>(op) || !isReadInKernelsOnly(op))
    return false;
  if (isa<IotaOp>(op))
    return true;
  if (isa<BroadcastToOp>(op) && op->getOperand(0).getDefiningOp())
    return isFree(op->getOperand(0).getDefiningOp());
  return numElements(op->getResult(0)) == 1 &&
         llvm::all_of(op->getOperands(), [](Value operand) { return numElements(operand) == 1; });
}

ArrayRef<int64_t> iterationShape(Operation *op) {
  Value shaped = isa<ReduceSumOp, ReduceMaxOp>(op) ? op->getOperand(0) : op->getResult(0);
  return cast<RankedTensorType>(shaped.getType()).getShape();
}

FusionClusters::FusionClusters(Block &block) {
  for (Operation &op : block.without_terminator()) {
    if (isFree(&op))
      continue;
    auto node = std::make_unique<FusionNode>();
    node->ops = {&op};
    node->isFusible = isFusible(&op);
    if (node->isFusible)
      node->space = SmallVector<int64_t>(iterationShape(&op));
    node->order = order.size();
    order.push_back(node.get());
    byOp[&op] = node.get();
    owned.push_back(std::move(node));
  }
}

/// Calls `visit` for each op that uses a result of `op`, seeing through free ops.
static void forEachUser(Operation *op, llvm::function_ref<void(Operation *)> visit) {
  for (Operation *user : op->getUsers()) {
    if (isFree(user))
      forEachUser(user, visit);
    else
      visit(user);
  }
}

bool FusionClusters::reaches(FusionNode &from, FusionNode &to, DenseSet<FusionNode *> &between) const {
  bool found = false;
  SmallVector<FusionNode *> worklist{&from};
  while (!worklist.empty()) {
    FusionNode *node = worklist.pop_back_val();
    for (Operation *op : node->ops) {
      forEachUser(op, [&](Operation *user) {
        FusionNode *next = byOp.lookup(user);
        if (!next || next == node)
          return;
        if (next == &to) {
          found |= node != &from;
          return;
        }
        if (next->order < to.order && between.insert(next).second)
          worklist.push_back(next);
      });
    }
  }
  return found;
}

/// The space of two clusters together: equal, or one holds one element per row of the other. Empty when they do not
/// fit.
static ArrayRef<int64_t> jointSpace(ArrayRef<int64_t> a, ArrayRef<int64_t> b) {
  if (a == b)
    return a;
  if (a.size() != b.size() || a.empty() || a.drop_back() != b.drop_back())
    return {};
  return a.back() == 1 ? b : b.back() == 1 ? a : ArrayRef<int64_t>();
}

static size_t countBuffers(const FusionNode &a, const FusionNode &b) {
  DenseSet<Value> buffers;
  auto isInside = [&](Operation *op) { return llvm::is_contained(a.ops, op) || llvm::is_contained(b.ops, op); };
  for (const FusionNode *node : {&a, &b}) {
    for (Operation *op : node->ops) {
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp(); !producer || (!isFree(producer) && !isInside(producer)))
          buffers.insert(operand);
      for (Value result : op->getResults())
        if (llvm::any_of(result.getUsers(), [&](Operation *user) { return !isInside(user); }))
          buffers.insert(result);
    }
  }
  return buffers.size();
}

bool FusionClusters::readsColumnSums(Operation *op, const FusionNode &other) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    if (!producer)
      return false;
    // A free op is copied into the reader's kernel and reads there.
    return isFree(producer) ? readsColumnSums(producer, other)
                            : isColumnReduction(producer) && byOp.lookup(producer) == &other;
  });
}

std::string FusionClusters::whyNot(FusionNode &a, FusionNode &b) const {
  if (!a.isFusible || !b.isFusible)
    return "one is no elementwise op or reduction";
  if (jointSpace(a.space, b.space).empty())
    return "their iteration spaces differ";
  // What a column reduction makes is complete only after the kernel.
  auto readsColumnSumsOf = [&](FusionNode &other) { return [&](Operation *op) { return readsColumnSums(op, other); }; };
  if (llvm::any_of(a.ops, readsColumnSumsOf(b)) || llvm::any_of(b.ops, readsColumnSumsOf(a)))
    return "one reads the other's column sums";
  if (countBuffers(a, b) > kMaxBuffers)
    return "together they have too many buffers";
  return "";
}

std::string FusionClusters::tryMerge(Operation *a, Operation *b) {
  FusionNode *first = byOp.lookup(a), *second = byOp.lookup(b);
  if (first == second)
    return "";
  if (std::string reason = whyNot(*first, *second); !reason.empty())
    return reason;
  if (first->order > second->order)
    std::swap(first, second);
  DenseSet<FusionNode *> after;
  if (reaches(*first, *second, after))
    return "a value leaves one and comes back to the other";

  // In the stretch between: what depends on the first goes behind the merged node, the rest before it.
  std::vector<FusionNode *> before, behind;
  for (size_t i = first->order; i <= second->order; ++i) {
    FusionNode *node = order[i];
    if (node != first && node != second)
      (after.contains(node) ? behind : before).push_back(node);
  }
  size_t at = first->order;
  second->space = SmallVector<int64_t>(jointSpace(first->space, second->space));
  second->ops.append(first->ops.begin(), first->ops.end());
  llvm::sort(second->ops, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  for (Operation *op : first->ops)
    byOp[op] = second;
  before.push_back(second);
  before.insert(before.end(), behind.begin(), behind.end());
  for (FusionNode *node : before) {
    order[at] = node;
    node->order = at++;
  }
  order.erase(order.begin() + at);
  for (size_t i = at; i < order.size(); ++i)
    order[i]->order = i;
  return "";
}

} // namespace llmc
