// The programs of a plan. All are built from @graph and @gradients: what differs is what happens to a gradient
// (design.md, "Programs of a plan").
#include "passes/Passes.h"
#include "passes/ProgramResults.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_BUILDPROGRAMS
#include "passes/Passes.h.inc"

/// A parameter and its gradient in one program.
struct ParameterGradient {
  VariableOp parameter;
  Value gradient;
};

static void addResult(ProgramOp program, Value value, StringRef name) {
  Builder builder(program.getContext());
  ProgramResults results = ProgramResults::of(program);
  results.add(value, builder.getDictionaryAttr({builder.getNamedAttr("llmc.name", builder.getStringAttr(name)),
                                                builder.getNamedAttr("llmc.role", builder.getStringAttr(name))}));
  results.setOn(program);
}

namespace {
struct BuildPrograms : impl::BuildProgramsBase<BuildPrograms> {
  using BuildProgramsBase::BuildProgramsBase;

  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    auto graph = symbols.lookup<ProgramOp>("graph");
    auto gradients = symbols.lookup<ProgramOp>("gradients");
    if (!graph || !gradients || (optimizer != "adamw" && optimizer != "sgd")) {
      getOperation().emitError("needs programs @graph and @gradients, and the optimizer adamw or sgd");
      return signalPassFailure();
    }
    buildForward(graph);
    if (failed(addState(gradients, symbols)))
      return signalPassFailure();
    buildStep(gradients, symbols, "step-fused", /*clips=*/false);
    buildStep(gradients, symbols, "step", /*clips=*/true);
    buildAccumulate(gradients, symbols);
    buildUpdate(gradients, symbols);
    graph.erase();
    gradients.erase();
  }

private:
  ProgramOp cloneAs(ProgramOp program, StringRef kind) {
    auto clone = cast<ProgramOp>(program->clone());
    clone.setSymName(kind);
    clone.setKind(kind);
    getOperation().getBody()->push_back(clone);
    return clone;
  }

  /// The variable names of a parameter's state.
  std::string stateName(VariableOp parameter, StringRef what) { return (parameter.getSymName() + "/" + what).str(); }

  /// State is found by its name, in the plan too: a name that is taken must not be changed in silence.
  LogicalResult addState(ProgramOp gradients, SymbolTable &symbols) {
    SmallVector<VariableOp> parameters;
    for (auto variable : getOperation().getOps<VariableOp>())
      if (variable.getKind() == "parameter")
        parameters.push_back(variable);
    auto add = [&](VariableOp parameter, StringRef what, StringRef kind) -> LogicalResult {
      OpBuilder builder(gradients);
      auto type = cast<RankedTensorType>(parameter.getType());
      std::string name = stateName(parameter, what);
      auto state =
          builder.create<VariableOp>(parameter.getLoc(), builder.getStringAttr(name), builder.getStringAttr(kind),
                                     TypeAttr::get(type), ElementsAttr(), UnitAttr(), StringAttr());
      if (symbols.insert(state) != builder.getStringAttr(name))
        return parameter.emitError() << "its state needs the name '" << name
                                     << "', which another variable or program has";
      return success();
    };
    for (VariableOp parameter : parameters) {
      if (optimizer == "adamw" && (failed(add(parameter, "m", "moment")) || failed(add(parameter, "v", "moment"))))
        return failure();
      if (failed(add(parameter, "gradient", "gradient")))
        return failure();
    }
    return success();
  }

  /// Evaluation: every output, dropout off.
  void buildForward(ProgramOp graph) {
    ProgramOp program = cloneAs(graph, "forward");
    program.walk([](DropoutOp dropout) {
      dropout.replaceAllUsesWith(dropout.getA());
      dropout.erase();
    });
  }

  /// Takes the gradients out of a clone's results; only the loss stays.
  SmallVector<ParameterGradient> takeGradients(ProgramOp program, SymbolTable &symbols) {
    SmallVector<ParameterGradient> gradients;
    ProgramResults all = ProgramResults::of(program), kept;
    std::optional<unsigned> loss = lossResult(program);
    for (auto [i, value] : llvm::enumerate(all.values)) {
      if (auto of = program.getResultAttrOfType<FlatSymbolRefAttr>(i, "llmc.gradient_of"))
        gradients.push_back({symbols.lookup<VariableOp>(of.getValue()), value});
      else if (i == loss)
        kept.add(value, cast<DictionaryAttr>(all.attributes[i]));
    }
    kept.setOn(program);
    return gradients;
  }

  Value buildNorm(OpBuilder &builder, ArrayRef<ParameterGradient> gradients, Location loc) {
    SmallVector<Value> values;
    for (const ParameterGradient &g : gradients)
      values.push_back(g.gradient);
    return builder.create<GlobalNormOp>(loc, RankedTensorType::get({}, builder.getF32Type()), values);
  }

  /// min(1, clip / (norm + 1e-6)), as torch.nn.utils.clip_grad_norm_; 1 when clip is 0.
  Value buildClipFactor(OpBuilder &builder, Value norm) {
    ExprScope scope{builder, norm.getLoc()};
    Expr clip = scope(builder.create<ScalarOp>(norm.getLoc(), norm.getType(), "clip"));
    Expr one = clip.constant(1.0);
    return select(less(clip.constant(0.0), clip), min(one, clip / (scope(norm) + 1e-6)), one);
  }

  void buildUpdate(OpBuilder &builder, const ParameterGradient &g, Value clipFactor) {
    VariableOp parameter = g.parameter;
    Location loc = parameter.getLoc();
    auto type = cast<RankedTensorType>(parameter.getType());
    auto get = [&](StringRef name) { return builder.create<GetOp>(loc, type, name).getResult(); };
    auto set = [&](StringRef name, Value value) { builder.create<SetOp>(loc, name, value); };
    if (optimizer == "sgd") {
      auto update = builder.create<SgdOp>(loc, type, get(parameter.getSymName()), g.gradient, clipFactor,
                                          parameter.getDecaysAttr());
      return set(parameter.getSymName(), update.getNewParameter());
    }
    std::string m = stateName(parameter, "m"), v = stateName(parameter, "v");
    auto update = builder.create<AdamWOp>(loc, TypeRange{type, type, type}, get(parameter.getSymName()), g.gradient,
                                          get(m), get(v), clipFactor, parameter.getDecaysAttr());
    set(parameter.getSymName(), update.getNewParameter());
    set(m, update.getNewM());
    set(v, update.getNewV());
  }

  /// One rank, no accumulation. Without clipping each update can follow its gradient at once.
  void buildStep(ProgramOp gradientsProgram, SymbolTable &symbols, StringRef kind, bool clips) {
    ProgramOp program = cloneAs(gradientsProgram, kind);
    SmallVector<ParameterGradient> gradients = takeGradients(program, symbols);
    OpBuilder builder(program.getBody().front().getTerminator());
    Value norm = buildNorm(builder, gradients, program.getLoc());
    Value clipFactor = clips ? buildClipFactor(builder, norm) : Value();
    for (const ParameterGradient &g : gradients)
      buildUpdate(builder, g, clipFactor);
    addResult(program, norm, "grad_norm");
  }

  /// One micro-batch: its gradients are added to those kept.
  void buildAccumulate(ProgramOp gradientsProgram, SymbolTable &symbols) {
    ProgramOp program = cloneAs(gradientsProgram, "accumulate");
    SmallVector<ParameterGradient> gradients = takeGradients(program, symbols);
    OpBuilder builder(program.getBody().front().getTerminator());
    for (ParameterGradient &g : gradients) {
      std::string name = stateName(g.parameter, "gradient");
      ExprScope scope{builder, g.parameter.getLoc()};
      Expr kept = scope(builder.create<GetOp>(scope.loc, g.parameter.getType(), name));
      builder.create<SetOp>(scope.loc, name, kept + scope(g.gradient));
    }
  }

  /// After the last micro-batch: norm, clip, update from the kept gradients.
  void buildUpdate(ProgramOp gradientsProgram, SymbolTable &symbols) {
    SmallVector<ParameterGradient> gradients;
    for (unsigned i = 0; i < gradientsProgram.getNumResults(); ++i)
      if (auto of = gradientsProgram.getResultAttrOfType<FlatSymbolRefAttr>(i, "llmc.gradient_of"))
        gradients.push_back({symbols.lookup<VariableOp>(of.getValue()), Value()});
    OpBuilder builder(getOperation().getBody(), getOperation().getBody()->end());
    auto program =
        builder.create<ProgramOp>(gradientsProgram.getLoc(), "update", "update", builder.getFunctionType({}, {}));
    Block *body = program.getBody().empty() ? &program.getBody().emplaceBlock() : &program.getBody().front();
    builder.setInsertionPointToStart(body);
    for (ParameterGradient &g : gradients)
      g.gradient =
          builder.create<GetOp>(g.parameter.getLoc(), g.parameter.getType(), stateName(g.parameter, "gradient"));
    Value norm = buildNorm(builder, gradients, program.getLoc());
    Value clipFactor = buildClipFactor(builder, norm);
    for (const ParameterGradient &g : gradients)
      buildUpdate(builder, g, clipFactor);
    builder.create<ReturnOp>(program.getLoc(), ValueRange());
    addResult(program, norm, "grad_norm");
  }
};
} // namespace
} // namespace llmc
