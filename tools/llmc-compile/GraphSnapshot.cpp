// The way turns back at the first op that is no part of the forward pass: what the loss and the model's outputs are
// computed from.
#include "tools/llmc-compile/GraphSnapshot.h"

#include "backend/PlanEmitter.h"
#include "ir/Views.h"

#include "mlir/Pass/Pass.h"
#include "llvm/Support/Format.h"

using namespace mlir;

namespace llmc {

/// Ops that only name a value or a place.
static bool isPlace(Operation &op) {
  return isa<GetOp, SetOp, ScalarOp, ConstantOp, EmptyOp>(op) || op.hasTrait<OpTrait::IsTerminator>();
}

static DenseSet<Operation *> forwardOf(ProgramOp program) {
  DenseSet<Operation *> forward;
  SmallVector<Value> open;
  for (auto [i, value] : llvm::enumerate(program.getBody().front().getTerminator()->getOperands()))
    if (auto role = program.getResultAttrOfType<StringAttr>(i, "llmc.role"); !role || role.getValue() != "grad_norm")
      open.push_back(value);
  while (!open.empty()) {
    Operation *producer = open.pop_back_val().getDefiningOp();
    if (producer && forward.insert(producer).second)
      llvm::append_range(open, producer->getOperands());
  }
  return forward;
}

static std::string kindOf(Operation &op) {
  StringRef name = op.getName().stripDialect();
  if (isa<FusionOp>(op))
    return "fusion";
  if (name.contains("matmul"))
    return "contraction";
  return name.contains("attention") ? "attention" : "other";
}

static std::string text(Type type) {
  auto tensor = cast<RankedTensorType>(type);
  std::string result;
  llvm::raw_string_ostream stream(result);
  llvm::interleave(tensor.getShape(), stream, " x ");
  stream << (tensor.getRank() > 0 ? " " : "") << tensor.getElementType();
  return result;
}

/// What a value is called: the place it comes from, else its type alone.
static std::string valueText(Value value) {
  std::string name;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto program = cast<ProgramOp>(argument.getOwner()->getParentOp());
    if (auto given = program.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "llmc.name"))
      name = given.str();
  } else if (auto get = value.getDefiningOp<GetOp>()) {
    name = get.getVariable().str();
  } else if (auto scalar = value.getDefiningOp<ScalarOp>()) {
    name = scalar.getName().str();
  }
  return name.empty() ? text(value.getType()) : name + ": " + text(value.getType());
}

/// Ops of a fusion in order, a number of equal ones once: "add, mul x3".
static std::string fusedOps(FusionOp fusion) {
  std::string result;
  auto ops = fusion.getBody().front().without_terminator();
  for (auto at = ops.begin(); at != ops.end();) {
    StringRef name = at->getName().stripDialect();
    unsigned count = 0;
    for (; at != ops.end() && at->getName().stripDialect() == name; ++at)
      ++count;
    if (name == "constant")
      continue;
    result += (result.empty() ? "" : ", ") + name.str() + (count > 1 ? " x" + std::to_string(count) : "");
  }
  return result;
}

static std::string detailOf(Operation &op) {
  std::string detail;
  llvm::raw_string_ostream stream(detail);
  if (auto fusion = dyn_cast<FusionOp>(op))
    stream << "fuses " << fusedOps(fusion) << "\n";
  for (Value operand : op.getOperands())
    stream << "reads " << valueText(operand) << "\n";
  for (Value result : op.getResults()) {
    stream << "gives " << text(result.getType());
    for (Operation *user : result.getUsers())
      if (auto set = dyn_cast<SetOp>(user))
        stream << ", the new " << set.getVariable();
    stream << "\n";
  }
  for (NamedAttribute attribute : op.getAttrs())
    if (!attribute.getName().getValue().starts_with("llmc.") && !isa<ElementsAttr>(attribute.getValue()))
      stream << attribute.getName().getValue() << " = " << attribute.getValue() << "\n";
  if (auto cost = dyn_cast<CostOpInterface>(op); cost && cost.getFlops() > 0)
    stream << llvm::format("%.4g FLOP\n", cost.getFlops());
  return detail;
}

static std::string labelOf(Operation &op) {
  auto fusion = dyn_cast<FusionOp>(op);
  if (!fusion)
    return op.getName().stripDialect().str();
  std::string ops = fusedOps(fusion);
  return StringRef(ops).contains(",") ? "fusion: " + ops : ops;
}

Graph graphOf(ProgramOp program, bool isKernels) {
  Graph graph;
  DenseSet<Operation *> forward = forwardOf(program);
  SmallVector<Operation *> order;
  for (bool wantsForward : {true, false}) {
    if (!wantsForward)
      graph.turn = order.size();
    for (Operation &op : program.getBody().front())
      if (!isPlace(op) && !(isKernels && isView(&op)) && forward.contains(&op) == wantsForward)
        order.push_back(&op);
  }
  DenseMap<Operation *, size_t> numbers;
  for (auto [i, op] : llvm::enumerate(order))
    numbers[op] = i;
  for (Operation *op : order) {
    GraphNode node = {labelOf(*op), nodeNames(op->getLoc()), detailOf(*op), kindOf(*op), {}};
    for (Value operand : op->getOperands()) {
      Operation *producer = operand.getDefiningOp();
      while (producer && isKernels && isView(producer))
        producer = producer->getOperand(0).getDefiningOp();
      if (auto found = numbers.find(producer);
          found != numbers.end() && !llvm::is_contained(node.inputs, found->second))
        node.inputs.push_back(found->second);
    }
    graph.nodes.push_back(std::move(node));
  }
  return graph;
}

void addGraph(std::vector<PageGraph> &graphs, ModuleOp module, StringRef kind, bool isKernels, const std::string &title,
              const std::string &note) {
  for (auto program : module.getOps<ProgramOp>())
    if (program.getKind() == kind)
      graphs.push_back({title, note, graphOf(program, isKernels)});
}

void GraphWatch::runBeforePass(Pass *pass, Operation *op) {
  StringRef name = pass->getArgument();
  if (isTaken || (name != "llmc-fuse-epilogue" && name != "llmc-decompose"))
    return;
  isTaken = true;
  addGraph(graphs, cast<ModuleOp>(op), "step-fused", /*isKernels=*/false, "step before fusion",
           "The training step of one rank as the passes found it: forward down on the left, backward up on the right, "
           "each parameter's update where its gradient is ready.");
}

} // namespace llmc
