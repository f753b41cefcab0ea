// Clusters by contraction of a graph that is kept topologically ordered: only the stretch between two nodes has to be
// looked at to know whether they may merge, and of it only what depends on the first (after Pearce and Kelly, "A
// dynamic topological sort algorithm", 2007). The order is a list with numbers that leave room, so that moving a node
// costs nothing for the others.
#include "passes/FusionClusters.h"

#include <queue>

using namespace mlir;

namespace llmc {

/// More buffers than this make a kernel's pointers spill.
static constexpr size_t kMaxBuffers = 28;
/// Between two neighbours when all are numbered anew.
static constexpr uint64_t kOrderStep = uint64_t(1) << 32;

FusionClusters::FusionClusters(Block &block, const FusibleOps &fusible) : fusible(fusible) {
  for (Operation &op : block.without_terminator()) {
    if (fusible.isFree(&op))
      continue;
    FusionNode &node = order.emplace_back();
    node.place = std::prev(order.end());
    node.ops = {&op};
    node.isFusible = fusible.isFusible(&op);
    if (node.isFusible)
      node.space = SmallVector<int64_t>(iterationShape(&op));
    byOp[&op] = &node;
    addUsers(&op, usersOf[&op]);
  }
  number();
}

void FusionClusters::number() {
  for (auto [i, node] : llvm::enumerate(order))
    node.order = i * kOrderStep;
}

void FusionClusters::addUsers(Operation *op, Users &users) const {
  for (Operation *user : op->getUsers()) {
    if (fusible.isFree(user))
      addUsers(user, users);
    else if (!user->hasTrait<OpTrait::IsTerminator>())
      users.push_back(user);
  }
}

std::optional<SmallVector<FusionNode *>> FusionClusters::dependentsBetween(FusionNode &from, FusionNode &to) const {
  // The last node first: where `to` depends on `from` by a long way round (forward and backward pass), values that skip
  // most of it lead there in few steps.
  auto isEarlier = [](FusionNode *a, FusionNode *b) { return a->order < b->order; };
  std::priority_queue<FusionNode *, std::vector<FusionNode *>, decltype(isEarlier)> open(isEarlier);
  DenseSet<FusionNode *> found;
  open.push(&from);
  while (!open.empty()) {
    FusionNode *node = open.top();
    open.pop();
    for (Operation *op : node->ops)
      for (Operation *user : usersOf.at(op)) {
        FusionNode *next = byOp.at(user);
        if (next == &to && node != &from)
          return std::nullopt;
        if (next != node && next->order < to.order && found.insert(next).second)
          open.push(next);
      }
  }
  SmallVector<FusionNode *> nodes(found.begin(), found.end());
  llvm::sort(nodes, isEarlier);
  return nodes;
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

size_t FusionClusters::countBuffers(const FusionNode &a, const FusionNode &b) const {
  DenseSet<Value> buffers;
  auto isInside = [&](Operation *op) {
    const FusionNode *node = byOp.lookup(op);
    return node == &a || node == &b;
  };
  for (const FusionNode *node : {&a, &b}) {
    for (Operation *op : node->ops) {
      for (Value operand : op->getOperands())
        if (Operation *producer = operand.getDefiningOp();
            !producer || (!fusible.isFree(producer) && !isInside(producer)))
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
    return fusible.isFree(producer) ? readsColumnSums(producer, other)
                                    : isColumnReduction(producer) && byOp.lookup(producer) == &other;
  });
}

static std::string spaceText(ArrayRef<int64_t> space) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::interleave(space, stream, " x ");
  return text;
}

std::string FusionClusters::whyNot(FusionNode &a, FusionNode &b) const {
  if (!a.isFusible || !b.isFusible)
    return "one is no elementwise op or reduction";
  if (jointSpace(a.space, b.space).empty())
    return "they run over different spaces, (" + spaceText(a.space) + ") and (" + spaceText(b.space) + ")";
  // What a column reduction makes is complete only after the kernel.
  auto readsColumnSumsOf = [&](FusionNode &other) { return [&](Operation *op) { return readsColumnSums(op, other); }; };
  if (llvm::any_of(a.ops, readsColumnSumsOf(b)) || llvm::any_of(b.ops, readsColumnSumsOf(a)))
    return "one reads the other's column sums, which are complete only after its kernel";
  if (size_t numBuffers = countBuffers(a, b); numBuffers > kMaxBuffers)
    return "one kernel would read and write " + std::to_string(numBuffers) + " buffers, at most " +
           std::to_string(kMaxBuffers) + " are allowed";
  return "";
}

void FusionClusters::moveBehind(FusionNode &node, ArrayRef<FusionNode *> moved) {
  auto behind = std::next(node.place);
  uint64_t room = behind == order.end() ? kOrderStep * (moved.size() + 1) : behind->order - node.order;
  uint64_t step = room / (moved.size() + 1), at = node.order;
  for (FusionNode *other : moved) {
    order.splice(behind, order, other->place);
    other->order = at += step;
  }
  if (step == 0)
    number();
}

std::string FusionClusters::tryMerge(Operation *a, Operation *b) {
  FusionNode *first = byOp.lookup(a), *second = byOp.lookup(b);
  if (first == second)
    return "";
  if (std::string reason = whyNot(*first, *second); !reason.empty())
    return reason;
  if (first->order > second->order)
    std::swap(first, second);
  std::optional<SmallVector<FusionNode *>> dependents = dependentsBetween(*first, *second);
  if (!dependents)
    return "a kernel between them reads what one makes and makes what the other reads";

  // The first joins the second; what depends on it and stood before the second goes behind.
  moveBehind(*second, *dependents);
  second->space = SmallVector<int64_t>(jointSpace(first->space, second->space));
  second->ops.append(first->ops.begin(), first->ops.end());
  llvm::sort(second->ops, [](Operation *x, Operation *y) { return x->isBeforeInBlock(y); });
  for (Operation *op : first->ops)
    byOp[op] = second;
  order.erase(first->place);
  return "";
}

} // namespace llmc
