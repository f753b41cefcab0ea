// Facts about memory that follow from the ops alone.
#include "passes/Memory.h"

using namespace mlir;

namespace llmc {

bool isWhole(Value value) {
  int64_t bytes = bytesOf(value);
  while (isView(value.getDefiningOp())) {
    value = value.getDefiningOp()->getOperand(0);
    if (bytesOf(value) != bytes)
      return false;
  }
  return true;
}

SmallVector<OpOperand *> usesOf(Value root) {
  SmallVector<OpOperand *> uses;
  SmallVector<Value> aliases = {root};
  while (!aliases.empty())
    for (OpOperand &use : aliases.pop_back_val().getUses()) {
      if (isView(use.getOwner()))
        aliases.push_back(use.getOwner()->getResult(0));
      else
        uses.push_back(&use);
    }
  return uses;
}

OpOperand *tiedOperand(OpResult result) {
  auto kernel = dyn_cast<KernelOpInterface>(result.getOwner());
  int operand = kernel ? kernel.getTiedOperand(result.getResultNumber()) : -1;
  return operand < 0 ? nullptr : &result.getOwner()->getOpOperand(operand);
}

bool mayOverwrite(OpOperand &operand, OpResult result) {
  auto kernel = dyn_cast<KernelOpInterface>(result.getOwner());
  return kernel && bytesOf(result) == bytesOf(operand.get()) && isWhole(operand.get()) &&
         (&operand == tiedOperand(result) ||
          kernel.canShareBuffer(operand.getOperandNumber(), result.getResultNumber()));
}

bool canOverwrite(Operation *op, OpResult result, Value root) {
  bool reads = false;
  for (OpOperand &operand : op->getOpOperands()) {
    if (rootOf(operand.get()) != root)
      continue;
    reads = true;
    if (!mayOverwrite(operand, result))
      return false;
  }
  return reads;
}

void splitEmpties(ProgramOp program) {
  for (auto empty : llvm::make_early_inc_range(program.getBody().front().getOps<EmptyOp>())) {
    for (OpOperand &use : llvm::make_early_inc_range(empty.getResult().getUses()))
      use.set(OpBuilder(use.getOwner()).create<EmptyOp>(empty.getLoc(), empty.getType()));
    empty.erase();
  }
}

int64_t bytesOf(Value value) { return tensorBytes(cast<RankedTensorType>(value.getType())); }

FailureOr<llvm::MapVector<StringAttr, VariableUses>> variableUses(ProgramOp program) {
  llvm::MapVector<StringAttr, VariableUses> variables;
  for (Operation &op : program.getBody().front()) {
    if (auto get = dyn_cast<GetOp>(op)) {
      VariableUses &uses = variables[get.getVariableAttr().getAttr()];
      (uses.set ? uses.getsAfter : uses.gets).push_back(get);
    } else if (auto set = dyn_cast<SetOp>(op)) {
      VariableUses &uses = variables[set.getVariableAttr().getAttr()];
      if (uses.set)
        return set.emitOpError() << "variable " << set.getVariableAttr() << " has been set in this program before";
      uses.set = set;
    }
  }
  return variables;
}

} // namespace llmc
