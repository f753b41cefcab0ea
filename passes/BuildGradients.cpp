// Reverse-mode differentiation of the graph: walks it backwards and asks each op for its own vector-Jacobian product.
#include "passes/Passes.h"
#include "passes/ProgramResults.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_BUILDGRADIENTS
#include "passes/Passes.h.inc"

/// Values that depend on a trained parameter through floats: only they carry gradients.
static DenseSet<Value> activeValues(Block &body, SymbolTable &symbols) {
  DenseSet<Value> active;
  for (Operation &op : body) {
    bool isActive = llvm::any_of(op.getOperands(), [&](Value operand) { return active.contains(operand); });
    if (auto get = dyn_cast<GetOp>(op))
      isActive = symbols.lookup<VariableOp>(get.getVariable()).getKind() == "parameter";
    for (Value result : op.getResults())
      if (isActive && isa<FloatType>(getElementTypeOrSelf(result.getType())))
        active.insert(result);
  }
  return active;
}

namespace {
/// The gradients of one program's values, being built at the end of its body.
class Adjoint {
public:
  Adjoint(OpBuilder &builder, const DenseSet<Value> &active) : builder(builder), active(active) {}

  void add(Value value, Value gradient) {
    Value &sum = gradients[value];
    sum = sum ? ExprScope{builder, value.getLoc()}(sum) + ExprScope{builder, value.getLoc()}(gradient)
              : Expr{&builder, value.getLoc(), gradient};
  }

  Value of(Value value) const { return gradients.lookup(value); }

  /// Sends the gradients of an op's results on to its operands.
  LogicalResult propagate(Operation *op) {
    SmallVector<Value> results;
    for (Value result : op->getResults())
      results.push_back(gradients.lookup(result));
    if (llvm::none_of(results, [](Value gradient) { return bool(gradient); }) ||
        llvm::none_of(op->getOperands(), [&](Value operand) { return active.contains(operand); }))
      return success();
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("has no gradient, but a parameter reaches the loss through it");
    for (auto [operand, gradient] : llvm::zip_equal(op->getOperands(), differentiable.buildGradient(builder, results)))
      if (gradient && active.contains(operand))
        add(operand, gradient);
    return success();
  }

private:
  OpBuilder &builder;
  const DenseSet<Value> &active;
  DenseMap<Value, Value> gradients;
};

struct BuildGradients : impl::BuildGradientsBase<BuildGradients> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto graph = symbols.lookup<ProgramOp>("graph");
    if (!graph) {
      getOperation().emitError("no program @graph");
      return signalPassFailure();
    }
    auto program = cast<ProgramOp>(graph->clone());
    program.setKind("gradients");
    program.setSymName("gradients");
    OpBuilder(graph).insert(program);
    program->moveAfter(graph);
    if (failed(differentiate(program, symbols)))
      signalPassFailure();
  }

  LogicalResult differentiate(ProgramOp program, SymbolTable &symbols) {
    Block &body = program.getBody().front();
    auto terminator = cast<ReturnOp>(body.getTerminator());
    OpBuilder builder(terminator);
    DenseSet<Value> active = activeValues(body, symbols);
    Adjoint adjoint(builder, active);
    std::optional<unsigned> lossIndex = lossResult(program);
    if (!lossIndex || !active.contains(terminator.getOperand(*lossIndex)))
      return program.emitError("the loss depends on no parameter: nothing to train");
    Value loss = terminator.getOperand(*lossIndex);
    auto lossType = cast<RankedTensorType>(loss.getType());
    adjoint.add(loss, builder.create<ConstantOp>(loss.getLoc(), lossType,
                                                 cast<ElementsAttr>(DenseElementsAttr::get(lossType, 1.0f))));

    SmallVector<Operation *> ops;
    for (Operation &op : body.without_terminator())
      ops.push_back(&op);
    for (Operation *op : llvm::reverse(ops))
      if (failed(adjoint.propagate(op)))
        return failure();
    return returnGradients(program, ops, adjoint, builder, symbols);
  }

  /// Appends each parameter's gradient to the program's results, in the order of the variables.
  LogicalResult returnGradients(ProgramOp program, ArrayRef<Operation *> ops, const Adjoint &adjoint,
                                OpBuilder &builder, SymbolTable &symbols) {
    DenseMap<StringRef, Value> sums;
    for (Operation *op : ops) {
      auto get = dyn_cast<GetOp>(op);
      if (!get || !adjoint.of(get))
        continue;
      Value &sum = sums[get.getVariable()];
      ExprScope scope{builder, get.getLoc()};
      sum = sum ? scope(sum) + scope(adjoint.of(get)) : scope(adjoint.of(get));
    }
    ProgramResults results = ProgramResults::of(program);
    for (auto variable : getOperation().getOps<VariableOp>()) {
      if (variable.getKind() != "parameter")
        continue;
      Value gradient = sums.lookup(variable.getSymName());
      if (!gradient) {
        variable.emitWarning("no gradient reaches parameter ") << variable.getSymName() << ": it keeps its value";
        variable.setKind("constant");
        continue;
      }
      results.add(gradient, builder.getDictionaryAttr(builder.getNamedAttr(
                                "llmc.gradient_of", FlatSymbolRefAttr::get(variable.getSymNameAttr()))));
    }
    results.setOn(program);
    return success();
  }
};
} // namespace
} // namespace llmc
