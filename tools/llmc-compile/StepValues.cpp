// Passes keep locations: an op that replaces others has the location of the last of them, and so has what it is
// decomposed into. Within one node only the last value is the node's own result.
#include "tools/llmc-compile/StepValues.h"

#include "backend/PlanEmitter.h"
#include "ir/Views.h"

using namespace mlir;

namespace llmc {

using Names = llvm::SetVector<StringRef>;

static Names namesOf(Operation *op) {
  Names names;
  collectNames(op->getLoc(), names);
  return names;
}

static bool haveCommon(const Names &a, const Names &b) {
  return llvm::any_of(a, [&](StringRef name) { return b.contains(name); });
}

ProgramOp stepProgram(ModuleOp module) {
  for (auto program : module.getOps<ProgramOp>())
    if (program.getKind() == programKindName(ProgramKind::step))
      return program;
  return {};
}

SmallVector<Operation *> readersOf(Value value) {
  SmallVector<Operation *> readers;
  for (Operation *user : value.getUsers()) {
    if (isLaunch(user))
      readers.push_back(user);
    else if (isView(user))
      llvm::append_range(readers, readersOf(user->getResult(0)));
  }
  return readers;
}

/// The op of a fusion's body that computes a result; any other launch computes it itself.
static Operation *makerOf(OpResult result) {
  auto fusion = dyn_cast<FusionOp>(result.getOwner());
  if (!fusion)
    return result.getOwner();
  Operation *maker = fusion.getBody().front().getTerminator()->getOperand(result.getResultNumber()).getDefiningOp();
  return maker ? maker : result.getOwner();
}

/// Whether an op of the same fusion goes on from it to compute the same node's result.
static bool goesOnInBody(Operation *maker, const Names &names) {
  SmallVector<Operation *> open(maker->user_begin(), maker->user_end());
  DenseSet<Operation *> seen;
  while (!open.empty()) {
    Operation *user = open.pop_back_val();
    if (isa<YieldOp>(user) || !seen.insert(user).second)
      continue;
    if (haveCommon(namesOf(user), names))
      return true;
    llvm::append_range(open, user->getUsers());
  }
  return false;
}

/// What the loss is computed from: values, because a launch may compute something for the backward pass beside them.
static DenseSet<Value> forwardValues(ProgramOp program) {
  DenseSet<Value> forward;
  SmallVector<Value> open;
  for (auto [i, value] : llvm::enumerate(program.getBody().front().getTerminator()->getOperands()))
    if (auto role = program.getResultAttrOfType<StringAttr>(i, "llmc.role"); role && role.getValue() == "loss")
      open.push_back(value);
  while (!open.empty()) {
    Value value = open.pop_back_val();
    if (Operation *producer = value.getDefiningOp(); producer && forward.insert(value).second)
      llvm::append_range(open, producer->getOperands());
  }
  return forward;
}

static void addViewNames(Value value, Names &names) {
  for (Operation *user : value.getUsers())
    if (isView(user)) {
      collectNames(user->getLoc(), names);
      addViewNames(user->getResult(0), names);
    }
}

/// Floats in row-major order: what two programs can have in common.
static bool isComparable(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && (type.getElementType().isF32() || type.getElementType().isBF16()) && !type.getEncoding();
}

StepValues collectStepValues(ProgramOp program, bool viewNames) {
  StepValues step;
  DenseSet<Value> forward = forwardValues(program);
  size_t launch = 0;
  for (Operation &op : program.getBody().front()) {
    if (auto set = dyn_cast<SetOp>(op); set && isComparable(set.getValue()))
      step.variables[set.getVariable().str()] = set.getValue();
    if (!isLaunch(&op))
      continue;
    for (OpResult result : op.getResults()) {
      if (!isComparable(result))
        continue;
      Operation *maker = makerOf(result);
      Names names = namesOf(maker);
      bool goesOn = (maker != &op && goesOnInBody(maker, names)) || llvm::any_of(readersOf(result), [&](auto *reader) {
                      bool isForward = llvm::any_of(reader->getResults(), [&](Value v) { return forward.contains(v); });
                      return isForward && haveCommon(namesOf(reader), names);
                    });
      if (viewNames)
        addViewNames(result, names);
      step.values.push_back(
          {result, SmallVector<StringRef>(names.begin(), names.end()), launch, forward.contains(result), !goesOn});
    }
    ++launch;
  }
  for (auto [i, value] : llvm::enumerate(program.getBody().front().getTerminator()->getOperands()))
    if (auto name = program.getResultAttrOfType<StringAttr>(i, "llmc.name"); name && isComparable(value))
      step.outputs[name.str()] = value;
  return step;
}

} // namespace llmc
