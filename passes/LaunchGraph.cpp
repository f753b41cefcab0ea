// Edges in three layers: what an op needs, what a set must wait for, and what an update should wait for so that it can
// work in place. The last are wishes: an edge that would close a circle is left out, and plan-memory then copies.
// Collectives keep their order besides.
#include "passes/LaunchGraph.h"

#include "llvm/ADT/MapVector.h"

#include <map>

using namespace mlir;

namespace llmc {

static bool isNode(Operation *op) { return isLaunch(op) || isa<SetOp, ReturnOp>(op); }

void LaunchGraph::addEdge(unsigned before, unsigned after) {
  if (before == after || llvm::is_contained(nodes[before].after, after))
    return;
  nodes[before].after.push_back(after);
  nodes[after].before.push_back(before);
}

bool LaunchGraph::reaches(unsigned from, unsigned to) const {
  llvm::BitVector seen(nodes.size());
  SmallVector<unsigned> open = {from};
  while (!open.empty()) {
    unsigned node = open.pop_back_val();
    if (node == to)
      return true;
    if (seen.test(node))
      continue;
    seen.set(node);
    llvm::append_range(open, nodes[node].after);
  }
  return false;
}

void LaunchGraph::addNodes(ProgramOp program) {
  for (Operation &op : program.getBody().front())
    if (isNode(&op)) {
      nodeOf[&op] = nodes.size();
      nodes.emplace_back().op = &op;
    }
  for (auto [i, node] : llvm::enumerate(nodes))
    for (mlir::Value operand : node.op->getOperands())
      if (Operation *producer = rootOf(operand).getDefiningOp(); producer && nodeOf.contains(producer))
        addEdge(nodeOf[producer], i);
  for (unsigned i = 0; i + 1 < nodes.size(); ++i)
    addEdge(i, nodes.size() - 1);
}

/// The result, or what it is written over, behind all ties.
static mlir::Value memoryOf(mlir::Value root) {
  while (auto result = dyn_cast<OpResult>(root)) {
    OpOperand *tied = tiedOperand(result);
    if (!tied || !isWhole(tied->get()))
      break;
    root = rootOf(tied->get());
  }
  return root;
}

static bool isVariableValue(mlir::Value root) {
  return llvm::any_of(usesOf(root), [](OpOperand *use) { return isa<SetOp>(use->getOwner()); });
}

/// Whether an op makes new values of variables and, beside them, little (a gradient norm's part).
static bool makesVariableValues(Operation *op) {
  int64_t variables = 0, others = 0;
  for (OpResult result : op->getResults())
    (isVariableValue(result) ? variables : others) += bytesOf(result);
  return variables > 0 && others <= variables / 256;
}

void LaunchGraph::addValues() {
  // Memory whose last version is a variable's or the program's result takes no room in the arena.
  DenseSet<mlir::Value> outside;
  for (Node &node : nodes)
    if (isa<SetOp, ReturnOp>(node.op))
      for (mlir::Value operand : node.op->getOperands())
        outside.insert(memoryOf(rootOf(operand)));
  auto indexOfMemory = [&](mlir::Value value) -> std::optional<unsigned> {
    mlir::Value memory = memoryOf(rootOf(value));
    Operation *producer = memory.getDefiningOp();
    if (!producer || isa<GetOp, ScalarOp>(producer))
      return std::nullopt;
    auto [found, isNew] = indexOf.try_emplace(memory, values.size());
    if (isNew)
      values.push_back({outside.contains(memory) ? 0 : bytesOf(memory), {}});
    return found->second;
  };
  for (auto [i, node] : llvm::enumerate(nodes)) {
    node.isUpdate = isLaunch(node.op) && makesVariableValues(node.op);
    SmallVector<mlir::Value> touched(node.op->getOperands());
    llvm::append_range(touched, node.op->getResults());
    for (mlir::Value value : touched)
      if (std::optional<unsigned> index = indexOfMemory(value); index && !llvm::is_contained(node.touches, *index)) {
        node.touches.push_back(*index);
        values[*index].users.push_back(i);
      }
    addSharable(node);
  }
}

std::optional<unsigned> LaunchGraph::valueOf(mlir::Value root) const {
  auto found = indexOf.find(memoryOf(root));
  return found == indexOf.end() ? std::nullopt : std::optional(found->second);
}

/// Each result takes the place of at most one operand, and each operand's place is taken once.
void LaunchGraph::addSharable(Node &node) {
  llvm::SmallDenseSet<mlir::Value> taken;
  for (OpResult result : node.op->getResults())
    for (OpOperand &operand : node.op->getOpOperands()) {
      if (!mayOverwrite(operand, result)) // first: a message has hundreds of operands and results
        continue;
      mlir::Value root = rootOf(operand.get());
      auto read = indexOf.find(memoryOf(root)), written = indexOf.find(memoryOf(result));
      if (read == indexOf.end() || written == indexOf.end() || read == written || !canOverwrite(node.op, result, root))
        continue;
      if (!taken.insert(root).second)
        continue;
      node.sharable.push_back({read->second, written->second});
      break;
    }
}

/// All readers of a root before `writer`, where that closes no circle.
void LaunchGraph::addReadersFirst(mlir::Value root, unsigned writer) {
  for (OpOperand *use : usesOf(root))
    if (unsigned reader = nodeOf.at(use->getOwner());
        reader != writer && reader + 1 != nodes.size() && !reaches(writer, reader))
      addEdge(reader, writer);
}

void LaunchGraph::addHazards(llvm::MapVector<StringAttr, VariableUses> &variables) {
  for (auto &[name, uses] : variables) {
    if (!uses.set)
      continue;
    unsigned set = nodeOf.at(uses.set);
    for (GetOp get : uses.gets)
      for (OpOperand *use : usesOf(get))
        addEdge(nodeOf.at(use->getOwner()), set);
    for (GetOp get : uses.getsAfter)
      for (OpOperand *use : usesOf(get))
        addEdge(set, nodeOf.at(use->getOwner()));
  }
  for (auto &[name, uses] : variables)
    if (uses.set)
      if (auto writer = nodeOf.find(rootOf(uses.set.getValue()).getDefiningOp()); writer != nodeOf.end())
        for (GetOp get : uses.gets)
          addReadersFirst(get, writer->second);
  for (auto [i, node] : llvm::enumerate(nodes))
    for (OpResult result : node.op->getResults())
      if (OpOperand *tied = tiedOperand(result))
        if (mlir::Value root = rootOf(tied->get()); !root.getDefiningOp<EmptyOp>())
          addReadersFirst(root, i);
}

/// Starts in the order of their positions, and waits too. A deferred wait comes after the next start, where that closes
/// no circle: then the network has had the time between two starts, and always one message to work on.
void LaunchGraph::addCollectives() {
  std::map<int64_t, unsigned> starts, waits;
  for (auto [i, node] : llvm::enumerate(nodes))
    if (auto collective = dyn_cast<CollectiveOpInterface>(node.op)) {
      node.isDeferredWait = !collective.isStart() && collective->hasAttr("llmc.deferred");
      node.isUrgent = !node.isDeferredWait;
      (collective.isStart() ? starts : waits)[collective.getPosition()] = i;
    }
  for (const auto &order : {starts, waits})
    for (auto at = order.begin(); at != order.end() && std::next(at) != order.end(); ++at)
      addEdge(at->second, std::next(at)->second);
  for (auto [position, wait] : waits)
    if (auto next = starts.upper_bound(position);
        next != starts.end() && nodes[wait].isDeferredWait && !reaches(wait, next->second))
      addEdge(next->second, wait);
}

FailureOr<LaunchGraph> LaunchGraph::build(ProgramOp program) {
  FailureOr<llvm::MapVector<StringAttr, VariableUses>> variables = variableUses(program);
  if (failed(variables))
    return failure();
  LaunchGraph graph;
  graph.addNodes(program);
  graph.addValues();
  graph.addHazards(*variables);
  graph.addCollectives();
  return graph;
}

LiveBytes::LiveBytes(const LaunchGraph &graph) : graph(graph), isAlive(graph.getValues().size()) {
  for (const LaunchGraph::Value &value : graph.getValues())
    numLeft.push_back(value.users.size());
}

int64_t LiveBytes::growth(unsigned index) const {
  const LaunchGraph::Node &node = graph.getNodes()[index];
  int64_t bytes = 0;
  for (unsigned value : node.touches)
    bytes += (isAlive.test(value) ? 0 : graph.getValues()[value].bytes) -
             (numLeft[value] == 1 ? graph.getValues()[value].bytes : 0);
  return bytes;
}

void LiveBytes::run(unsigned index) {
  const LaunchGraph::Node &node = graph.getNodes()[index];
  int64_t shared = 0;
  for (auto [read, written] : node.sharable)
    if (numLeft[read] == 1 && isAlive.test(read) && !isAlive.test(written))
      shared += graph.getValues()[written].bytes;
  int64_t after = live + growth(index);
  for (unsigned value : node.touches) {
    if (!isAlive.test(value))
      live += graph.getValues()[value].bytes;
    isAlive.set(value);
    --numLeft[value];
  }
  peak = std::max(peak, live - shared);
  live = after;
}

} // namespace llmc
