// Orders the launches of each program. Several simple orders are tried in a simulation of the live bytes; a later one
// must be better by half a percent to replace an earlier one: updates at once come first, because they read what was
// just written and are better still after recompute, which takes the peak elsewhere. Gets, views and the like go to
// their first user.
#include "passes/LaunchGraph.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

#include <set>
#include <tuple>
#include <vector>

using namespace mlir;

namespace llmc {

#define GEN_PASS_DEF_SCHEDULE
#include "passes/Passes.h.inc"

namespace {

using Order = SmallVector<unsigned>;

/// Which of the launches that may run next does: the smallest key, then the first in the graph's order.
enum class Policy {
  graph,     ///< sets, then the graph's order; deferred waits when nothing else can run
  updates,   ///< sets, updates, then the graph's order
  shrinking, ///< sets, updates, what frees at least as much as it takes, then the graph's order
  greedy,    ///< sets, updates, then what grows the live bytes least
};
constexpr std::pair<Policy, StringLiteral> kPolicies[] = {{Policy::updates, "updates at once"},
                                                          {Policy::graph, "the graph's order"},
                                                          {Policy::shrinking, "what frees memory first"},
                                                          {Policy::greedy, "least growth first"}};

struct Candidate {
  Order order;
  int64_t peak = 0;
};

} // namespace

/// Smaller runs earlier. The network gets its message as soon as that is complete; what waits for it is as urgent as
/// the updates that it lets run.
static std::pair<int, int64_t> priority(const LaunchGraph::Node &node, int64_t growth, Policy policy) {
  if (isa<SetOp>(node.op) || node.isUrgent)
    return {0, 0};
  if (node.isDeferredWait && policy == Policy::graph)
    return {3, 0};
  if ((node.isUpdate || node.isDeferredWait) && policy != Policy::graph)
    return {1, 0};
  if (policy == Policy::shrinking)
    return {growth <= 0 ? 2 : 3, 0};
  return {2, policy == Policy::greedy ? growth : 0};
}

static Candidate simulate(const LaunchGraph &graph, Policy policy) {
  ArrayRef<LaunchGraph::Node> nodes = graph.getNodes();
  LiveBytes liveBytes(graph);
  using Key = std::pair<std::pair<int, int64_t>, unsigned>;
  std::set<Key> ready;
  SmallVector<std::optional<Key>> keys(nodes.size()); // of those in `ready`
  auto offer = [&](unsigned node) {
    if (keys[node])
      ready.erase(*keys[node]);
    keys[node] = {priority(nodes[node], liveBytes.growth(node), policy), node};
    ready.insert(*keys[node]);
  };
  SmallVector<size_t> numWaiting;
  for (auto [i, node] : llvm::enumerate(nodes)) {
    numWaiting.push_back(node.before.size());
    if (node.before.empty())
      offer(i);
  }
  Candidate result;
  while (!ready.empty()) {
    unsigned next = ready.extract(ready.begin()).value().second;
    keys[next].reset();
    liveBytes.run(next);
    result.order.push_back(next);
    for (unsigned value : nodes[next].touches)
      for (unsigned user : graph.getValues()[value].users)
        if (keys[user]) // what it adds and frees may be another amount now
          offer(user);
    for (unsigned after : nodes[next].after)
      if (--numWaiting[after] == 0)
        offer(after);
  }
  result.peak = liveBytes.getPeak();
  return result;
}

/// Whether a launch reads nothing that the program computes, so that it could run at any time before its user: packing
/// weights.
static bool readsOnlyState(Operation *op) {
  return isLaunch(op) && llvm::all_of(op->getOperands(), [](Value operand) {
           return isa_and_nonnull<GetOp, ScalarOp>(rootOf(operand).getDefiningOp());
         });
}

/// Moves gets, scalars, views and constants before their first user, and with `launches` also those that read only
/// state. From the block's end to its begin, so that users stand where they stay; the moves come last, because a block
/// asked for its order after each of them counts all its ops again.
static void sinkToUsers(Block &block, bool launches) {
  SmallVector<Operation *> ops = llvm::map_to_vector(block, [](Operation &op) { return &op; });
  std::vector<SmallVector<Operation *, 2>> sunk(ops.size()); // what goes before ops[i], in this order
  DenseMap<Operation *, size_t> anchors;                     // the i before which an op goes; its own where it stays
  auto placeOf = [&](Operation *op) {
    size_t anchor = anchors.at(op);
    return std::pair(anchor, llvm::find(sunk[anchor], op) - sunk[anchor].begin());
  };
  for (size_t i = ops.size(); i-- > 0;) {
    Operation *op = ops[i];
    bool isFixed = isLaunch(op) && !(launches && readsOnlyState(op));
    if (isFixed || isa<SetOp, ReturnOp>(op) || op->use_empty()) {
      anchors[op] = i;
      continue;
    }
    auto [anchor, index] = placeOf(*op->user_begin());
    for (Operation *user : op->getUsers())
      if (auto place = placeOf(user); place < std::pair(anchor, index))
        std::tie(anchor, index) = place;
    sunk[anchor].insert(sunk[anchor].begin() + index, op);
    anchors[op] = anchor;
  }
  for (auto [anchor, before] : llvm::zip_equal(ops, sunk))
    for (Operation *op : before)
      op->moveBefore(anchor);
}

namespace {

struct Schedule : impl::ScheduleBase<Schedule> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(schedule(program)))
        return signalPassFailure();
  }

private:
  static LogicalResult schedule(ProgramOp program) {
    splitEmpties(program);
    // Before the orders are compared: all keep the order of what is given.
    sinkToUsers(program.getBody().front(), /*launches=*/true);
    FailureOr<LaunchGraph> graph = LaunchGraph::build(program);
    if (failed(graph))
      return failure();
    Candidate best, first;
    StringRef bestName;
    for (auto [policy, name] : kPolicies) {
      Candidate candidate = simulate(*graph, policy);
      if (candidate.order.size() != graph->getNodes().size())
        return program.emitOpError()
               << "reads an old value of a variable to compute what is read before it: no order is right";
      if (policy == Policy::graph)
        first = candidate;
      if (best.order.empty() || double(candidate.peak) < 0.995 * double(best.peak)) {
        best = std::move(candidate);
        bestName = name;
      }
    }
    Block &block = program.getBody().front();
    for (unsigned index : best.order)
      graph->getNodes()[index].op->moveBefore(&block, block.end());
    sinkToUsers(block, /*launches=*/false);
    remarkOn(program) << "applied: " << bestName << ": at most " << best.peak << " live bytes, " << first.peak
                      << " in the graph's order";
    return success();
  }
};

} // namespace

} // namespace llmc
