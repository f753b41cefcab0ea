// Where a copy is needed: an operand that a launch overwrites while somebody still reads it; a new value of a variable
// that cannot be computed in the variable's memory; a result that is no value of its own.
#include "passes/Placement.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {

/// A copy of `value` in new memory, made before `before`.
static Value insertCopy(Value value, Operation *before, const Twine &reason) {
  OpBuilder builder(before);
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), steps(type.getRank(), 1);
  Value empty = builder.create<EmptyOp>(before->getLoc(), type);
  auto copy = builder.create<PlaceIntoOp>(before->getLoc(), type, value, empty, builder.getDenseI64ArrayAttr(starts),
                                          builder.getDenseI64ArrayAttr(steps));
  remarkOn(copy) << "info: " << bytesOf(value) << " bytes are copied: " << reason;
  return copy;
}

/// The first version of a root's memory, behind ties.
static Value firstVersion(Value root) {
  while (auto result = dyn_cast<OpResult>(root)) {
    OpOperand *tied = tiedOperand(result);
    if (!tied)
      break;
    root = rootOf(tied->get());
  }
  return root;
}

/// Whether the memory of a root is part of a collective's message: its neighbours decide where it lies.
static bool isInMessage(Value root) {
  while (auto result = dyn_cast<OpResult>(root)) {
    if (isa<CollectiveOpInterface>(result.getOwner()))
      return true;
    OpOperand *tied = tiedOperand(result);
    if (!tied)
      break;
    root = rootOf(tied->get());
  }
  return false;
}

/// The launch that first writes a root's memory.
static Operation *firstWriter(Value root) {
  Operation *writer = root.getDefiningOp();
  while (auto result = dyn_cast<OpResult>(root)) {
    OpOperand *tied = tiedOperand(result);
    if (!tied)
      break;
    writer = result.getOwner();
    root = rootOf(tied->get());
  }
  return writer;
}

/// Whether nobody but `user` touches the root from `user` on.
static bool diesAt(Value root, Operation *user) {
  return llvm::all_of(
      usesOf(root), [&](OpOperand *use) { return use->getOwner() == user || use->getOwner()->isBeforeInBlock(user); });
}

/// Whether old readers of a variable allow its memory to be written by `writer`, as `result`.
static bool mayWriteVariable(const VariableUses &uses, Operation *writer, OpResult result) {
  return llvm::all_of(uses.gets, [&](GetOp get) {
    return llvm::all_of(usesOf(get), [&](OpOperand *use) {
      if (use->getOwner() == writer)
        return canOverwrite(writer, result, get);
      return use->getOwner()->isBeforeInBlock(writer);
    });
  });
}

namespace {

class Copies {
public:
  Copies(ProgramOp program, llvm::MapVector<StringAttr, VariableUses> variables)
      : program(program), variables(std::move(variables)) {}

  LogicalResult run() {
    // Ties first, from the last to the first: where a chain of ties ends decides what its start may overwrite.
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
      for (OpResult result : op.getResults())
        if (OpOperand *tied = isLaunch(&op) ? tiedOperand(result) : nullptr)
          prepareTied(*tied, result);
    for (auto &[name, uses] : variables)
      if (uses.set && failed(prepareSet(name, uses)))
        return failure();
    prepareReturn();
    return success();
  }
  unsigned numCopies = 0;

private:
  void prepareTied(OpOperand &tied, OpResult result) {
    Operation *launch = result.getOwner();
    Value root = rootOf(tied.get());
    Operation *producer = root.getDefiningOp();
    bool isOwn = producer && (isLaunch(producer) || isa<EmptyOp>(producer));
    if (auto get = dyn_cast_or_null<GetOp>(producer)) {
      const VariableUses &uses = variables[get.getVariableAttr().getAttr()];
      isOwn = uses.set && endsIn(result, uses.set) && mayWriteVariable(uses, launch, result);
    }
    if (isOwn && isWhole(tied.get()) && diesAt(root, launch) && canOverwrite(launch, result, root))
      return;
    tied.set(insertCopy(tied.get(), launch, "the launch overwrites it and it is needed later"));
    ++numCopies;
  }

  /// Whether the memory of `root` is what `set` gives its variable, perhaps after further ties.
  static bool endsIn(Value root, SetOp set) {
    return llvm::any_of(usesOf(root), [&](OpOperand *use) {
      if (use->getOwner() == set)
        return isWhole(use->get());
      return isLaunch(use->getOwner()) && llvm::any_of(use->getOwner()->getResults(), [&](OpResult next) {
               return tiedOperand(next) == use && isWhole(use->get()) && endsIn(next, set);
             });
    });
  }

  /// After this the value is defined by a launch that may write the variable's memory.
  LogicalResult prepareSet(StringAttr name, const VariableUses &uses) {
    SetOp set = uses.set;
    Value root = rootOf(set.getValue()), first = firstVersion(root);
    Operation *writer = firstWriter(root);
    auto get = first.getDefiningOp<GetOp>();
    bool isOwn = writer && isLaunch(writer) && isWhole(set.getValue()) && !claimed.contains(first) &&
                 (get ? get.getVariableAttr().getAttr() == name : !isInMessage(root));
    if (isOwn && mayWriteVariable(uses, writer, resultWrittenBy(root, writer))) {
      claimed.insert(first);
      return success();
    }
    for (GetOp old : uses.gets)
      for (OpOperand *use : usesOf(old))
        if (!use->getOwner()->isBeforeInBlock(set) && use->getOwner() != set)
          return use->getOwner()->emitOpError()
                 << "reads the old value of " << set.getVariableAttr() << " after its new value was set";
    set.getValueMutable().assign(
        insertCopy(set.getValue(), set, "the new value of " + name.getValue() + " cannot be computed in its place"));
    claimed.insert(firstVersion(set.getValue()));
    ++numCopies;
    return success();
  }

  /// The result of `writer` that is the first version of a root's memory.
  static OpResult resultWrittenBy(Value root, Operation *writer) {
    while (root.getDefiningOp() != writer)
      root = rootOf(tiedOperand(cast<OpResult>(root))->get());
    return cast<OpResult>(root);
  }

  void prepareReturn() {
    auto exit = cast<ReturnOp>(program.getBody().front().getTerminator());
    for (OpOperand &operand : exit->getOpOperands()) {
      Value root = rootOf(operand.get()), first = firstVersion(root);
      bool isOwn = root.getDefiningOp() && isLaunch(root.getDefiningOp()) && isWhole(operand.get()) &&
                   !first.getDefiningOp<GetOp>() && !isa<BlockArgument>(first) && !isInMessage(root);
      if (isOwn && claimed.insert(first).second)
        continue;
      operand.set(
          insertCopy(operand.get(), exit, "result " + Twine(operand.getOperandNumber()) + " is no value of its own"));
      claimed.insert(firstVersion(operand.get()));
      ++numCopies;
    }
  }

  ProgramOp program;
  llvm::MapVector<StringAttr, VariableUses> variables;
  DenseSet<Value> claimed; ///< first versions of memory that ends as a variable's new value or a result
};

} // namespace

FailureOr<unsigned> insertCopies(ProgramOp program) {
  splitEmpties(program);
  FailureOr<llvm::MapVector<StringAttr, VariableUses>> variables = variableUses(program);
  if (failed(variables))
    return failure();
  Copies copies(program, std::move(*variables));
  if (failed(copies.run()))
    return failure();
  return copies.numCopies;
}

} // namespace llmc
