// Constants outside of fusions become variables: kernels read memory. Equal constants become one variable.
#include "passes/Passes.h"
#include "passes/Remark.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace llmc {

#define GEN_PASS_DEF_MATERIALIZECONSTANTS
#include "passes/Passes.h.inc"

namespace {

struct MaterializeConstants : impl::MaterializeConstantsBase<MaterializeConstants> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::MapVector<ElementsAttr, VariableOp> variables;
    SmallVector<ConstantOp> constants;
    for (auto program : getOperation().getOps<ProgramOp>())
      llvm::append_range(constants, program.getBody().front().getOps<ConstantOp>());
    for (ConstantOp constant : constants) {
      if (!constant->use_empty())
        replace(constant, variableOf(constant, symbols, variables));
      constant.erase();
    }
  }

private:
  /// The variable that holds the constant's value, made on first use after the last variable.
  static VariableOp variableOf(ConstantOp constant, SymbolTable &symbols,
                               llvm::MapVector<ElementsAttr, VariableOp> &variables) {
    VariableOp &variable = variables[constant.getValue()];
    if (variable)
      return variable;
    auto module = cast<ModuleOp>(symbols.getOp());
    OpBuilder builder(module.getContext());
    builder.setInsertionPointToStart(module.getBody());
    for (auto other : module.getOps<VariableOp>())
      builder.setInsertionPointAfter(other);
    std::string name;
    for (size_t number = variables.size() - 1; name.empty() || symbols.lookup(name); ++number)
      name = "constant." + std::to_string(number);
    variable = builder.create<VariableOp>(constant.getLoc(), name, "constant", constant.getType(), constant.getValue(),
                                          /*decays=*/false,
                                          /*source=*/StringAttr());
    symbols.insert(variable);
    remarkOn(variable) << "info: a kernel reads this constant, so it lies in memory as " << variable.getSymNameAttr();
    return variable;
  }

  static void replace(ConstantOp constant, VariableOp variable) {
    OpBuilder builder(constant);
    Value value =
        builder.create<GetOp>(constant.getLoc(), constant.getType(), FlatSymbolRefAttr::get(variable.getSymNameAttr()));
    constant.getResult().replaceAllUsesWith(value);
  }
};

} // namespace

} // namespace llmc
