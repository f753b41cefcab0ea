// The walk: weights become variables, nodes become ops in the file's order (which the checker has found topological),
// then the ends of the graph are tied up and it is decided what trains.
#include "frontend/OnnxImporter.h"

#include "frontend/GraphInputs.h"
#include "frontend/GraphOutputs.h"
#include "frontend/OnnxError.h"
#include "frontend/OnnxOps.h"
#include "frontend/StrippedModel.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;

namespace llmc {

namespace {
class Importer {
public:
  Importer(MLIRContext &context, const ImportOptions &options, ModelFile file)
      : context(context), options(options), file(std::move(file)), builder(&context),
        state{this->file, builder, TensorReader(&context, this->file), options.keepDropout, {}, {}, {}, 0, {}} {}

  FailureOr<ImportedModel> run() {
    FailureOr<GraphInputs> inputs = bindInputs(&context, file, options);
    if (failed(inputs))
      return failure();
    createProgram(*inputs);
    if (failed(importInitializers()) || failed(importNodes()) || failed(finishProgram(*inputs)) ||
        failed(decideWeights()) || failed(verify(*result.module)))
      return failure();
    strip();
    result.externalFiles = state.reader.externalPaths();
    return std::move(result);
  }

private:
  void createProgram(const GraphInputs &inputs) {
    result.module = ModuleOp::create(builder.getUnknownLoc());
    builder.setInsertionPointToEnd(result.module->getBody());
    SmallVector<Type> types(inputs.types.begin(), inputs.types.end());
    program = builder.create<ProgramOp>(builder.getUnknownLoc(), "graph", "graph", builder.getFunctionType(types, {}));
    Block *block = &program.getBody().emplaceBlock();
    for (auto [i, name] : llvm::enumerate(inputs.names)) {
      state.values[name] = block->addArgument(types[i], NameLoc::get(builder.getStringAttr(name)));
      inputNames.push_back(name);
    }
    state.builder.setInsertionPointToEnd(block);
    builder.setInsertionPoint(program);
  }

  /// Names that programs take, of the plan or on the way to it.
  static bool isReserved(StringRef name) {
    constexpr StringLiteral names[] = {"graph",      "gradients", "forward",          "step-fused", "step",
                                       "accumulate", "update",    "step-fused-ranks", "step-ranks", "update-ranks"};
    return llvm::is_contained(names, name);
  }

  static constexpr StringLiteral kStateSuffixes[] = {"/m", "/v", "/gradient"};

  /// Whether a name is that of another weight's state.
  bool isStateName(StringRef name) const {
    return llvm::any_of(kStateSuffixes, [&](StringRef suffix) {
      StringRef weight = name;
      return weight.consume_back(suffix) && symbols.contains(weight);
    });
  }

  /// Whether a new name, or that of its state, is a weight's.
  bool isTaken(StringRef name) const {
    return symbols.contains(name) ||
           llvm::any_of(kStateSuffixes, [&](StringRef suffix) { return symbols.contains((name + suffix).str()); });
  }

  /// The initializer's name, or one like it where a program or another weight's state needs that.
  std::string symbolOf(StringRef name) {
    std::string symbol = name.str();
    while (isReserved(symbol) || isStateName(symbol) || (symbol != name && isTaken(symbol)))
      symbol += ".weight";
    symbols.insert(symbol);
    return symbol;
  }

  /// A float weight: a variable, and the op that reads it.
  void importWeight(const onnx::TensorProto &tensor, const TensorBytes &bytes) {
    auto loc = NameLoc::get(builder.getStringAttr(tensor.name()));
    DenseResourceElementsAttr value = state.reader.weight(tensor, bytes);
    std::string symbol = symbolOf(tensor.name());
    StringAttr source = symbol == tensor.name() ? StringAttr() : builder.getStringAttr(tensor.name());
    auto variable = builder.create<VariableOp>(loc, builder.getStringAttr(symbol), builder.getStringAttr("parameter"),
                                               TypeAttr::get(value.getType()), value, /*decays=*/UnitAttr(), source);
    auto get = state.builder.create<GetOp>(loc, value.getType(), FlatSymbolRefAttr::get(&context, symbol));
    weights.push_back({variable, get, result.ledger.entries.size()});
    state.values[tensor.name()] = get;
  }

  LogicalResult importInitializers() {
    for (const onnx::TensorProto &tensor : file.model.graph().initializer())
      symbols.insert(tensor.name());
    for (int i = 0; i < file.model.graph().initializer_size(); ++i) {
      const onnx::TensorProto &tensor = file.model.graph().initializer(i);
      std::string reason;
      FailureOr<TensorBytes> bytes = state.reader.initializerBytes(i, reason);
      if (failed(bytes))
        return fileError(&context, file.path) << "initializer " << inQuotes(tensor.name()) << ": " << reason;
      payloads.push_back(bytes->bytes);
      bool isFloatTensor = isa<FloatType>(graphElementType(&context, tensor.data_type()));
      SmallVector<int64_t> shape(tensor.dims().begin(), tensor.dims().end());
      if (isFloatTensor && productOf(shape) >= 2) {
        importWeight(tensor, *bytes);
      } else {
        FailureOr<HostTensor> value = state.reader.constant(tensor, *bytes);
        state.values[tensor.name()] = state.builder.create<ConstantOp>(
            NameLoc::get(builder.getStringAttr(tensor.name())), value->type, value->toAttribute());
      }
      if (isFloatTensor)
        result.ledger.entries.push_back({tensor.name(),
                                         onnxTypeName(tensor.data_type()),
                                         {shape.begin(), shape.end()},
                                         {},
                                         false,
                                         false,
                                         productOf(shape) < 2 ? "one number" : ""});
    }
    return success();
  }

  Location locationOf(const onnx::NodeProto &node) {
    std::string name = node.name();
    if (name.empty())
      name = node.op_type() + (node.output_size() > 0 ? ":" + node.output(0) : "");
    return NameLoc::get(builder.getStringAttr(name));
  }

  LogicalResult importNode(const onnx::NodeProto &proto, const llvm::StringMap<SmallVector<OnnxOp>> &table) {
    OnnxNode node(state, proto, locationOf(proto), file.opset);
    if (!proto.domain().empty() && proto.domain() != "ai.onnx")
      return node.error("operators of the domain " + inQuotes(proto.domain()) + " are not supported");
    for (const onnx::AttributeProto &attribute : proto.attribute())
      if (attribute.has_g() || attribute.graphs_size() > 0)
        return node.error("operators with subgraphs are not supported");
    auto rows = table.find(proto.op_type());
    if (rows == table.end())
      return node.error("this operator is not supported");
    for (const OnnxOp &row : rows->second)
      if (row.firstOpset <= file.opset && file.opset <= row.lastOpset)
        return row.import(node);
    return node.error("this operator is not supported in opset " + Twine(file.opset));
  }

  LogicalResult importNodes() {
    llvm::StringMap<SmallVector<OnnxOp>> table;
    for (const OnnxOp &row : allOnnxOps())
      table[row.name].push_back(row);
    for (const onnx::NodeProto &node : file.model.graph().node())
      if (failed(importNode(node, table)))
        return failure();
    return success();
  }

  /// Erases ops that nothing uses: folded shape arithmetic, weights that only it read.
  void eraseDead() {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(program.getBody().front())))
      if (isOpTriviallyDead(&op)) {
        for (Weight &weight : weights)
          if (weight.get == &op)
            weight.get = {};
        op.erase();
      }
  }

  LogicalResult finishProgram(const GraphInputs &inputs) {
    FailureOr<SmallVector<GraphOutput>> outputs = findOutputs(state, inputs, options, program);
    if (failed(outputs))
      return failure();
    if (program.getBody().getNumArguments() > inputNames.size())
      inputNames.push_back("targets");
    SmallVector<Value> values;
    SmallVector<Type> types;
    for (const GraphOutput &output : *outputs) {
      values.push_back(output.value);
      types.push_back(output.value.getType());
    }
    loss = values.front();
    state.builder.create<ReturnOp>(builder.getUnknownLoc(), values);
    program.setFunctionType(builder.getFunctionType(program.getBody().getArgumentTypes(), types));
    for (auto [i, name] : llvm::enumerate(inputNames)) {
      program.setArgAttr(i, "llmc.name", builder.getStringAttr(name));
      program.setArgAttr(i, "llmc.role", builder.getStringAttr(""));
    }
    for (auto [i, output] : llvm::enumerate(*outputs)) {
      program.setResultAttr(i, "llmc.name", builder.getStringAttr(output.name));
      program.setResultAttr(i, "llmc.role", builder.getStringAttr(output.role));
    }
    eraseDead();
    if (failed(setInputRoles(file, options, program)))
      return failure();
    for (auto [i, name] : llvm::enumerate(inputNames))
      result.ledger.inputs.push_back({name, program.getArgAttrOfType<StringAttr>(i, "llmc.role").getValue().str()});
    return success();
  }

  /// The ONNX nodes that read a weight, in their order.
  void noteUses() {
    for (Weight weight : weights) {
      if (!weight.get)
        continue;
      std::vector<std::string> &uses = result.ledger.entries[weight.entry].uses;
      for (Operation *user : weight.get->getUsers())
        if (auto loc = dyn_cast<NameLoc>(user->getLoc()); loc && !llvm::is_contained(uses, loc.getName().getValue()))
          uses.push_back(loc.getName().str());
      std::reverse(uses.begin(), uses.end()); // users are listed last first
    }
  }

  LogicalResult decideWeights() {
    Ledger &ledger = result.ledger;
    noteUses();
    decideTraining(weights, loss, ledger);
    if (std::optional<std::string> reason = decideDecay(options.decayRule, ledger))
      return fileError(&context, file.path) << *reason;
    if (llvm::none_of(ledger.entries, [](const LedgerEntry &entry) { return entry.trains; }))
      return fileError(&context, file.path) << "the loss depends on no weight: there is nothing to train";
    if (std::optional<std::string> damage = options.asExported ? std::nullopt : describeDamage(weights, ledger))
      return fileError(&context, file.path) << "the exporter has damaged this model for training: " << *damage
                                            << ". --as-exported trains the file as it stands";
    for (Weight weight : weights) {
      const LedgerEntry &entry = ledger.entries[weight.entry];
      VariableOp variable = weight.variable;
      if (!weight.get)
        variable.erase();
      else if (!entry.trains)
        variable.setKind("constant");
      else
        variable.setDecays(entry.decays);
    }
    return success();
  }

  void strip() {
    SmallVector<bool> strips;
    size_t entry = 0;
    for (const onnx::TensorProto &tensor : file.model.graph().initializer()) {
      bool isFloatTensor = isa<FloatType>(graphElementType(&context, tensor.data_type()));
      strips.push_back(isFloatTensor && result.ledger.entries[entry].trains);
      entry += isFloatTensor;
    }
    StrippedModel stripped = stripModel(file, strips, [&](int i) { return payloads[i]; });
    auto weight = weights.begin();
    for (auto [i, tensor] : llvm::enumerate(file.model.graph().initializer())) {
      if (!strips[i])
        continue;
      while (result.ledger.entries[weight->entry].name != tensor.name())
        ++weight;
      VariableOp variable = weight->variable;
      result.splice.push_back({variable.getSymName().str(), storedElementType(&context, tensor.data_type()), "",
                               stripped.ends[i], payloads[i].size()});
    }
    result.strippedModel = std::move(stripped.bytes);
  }

  MLIRContext &context;
  const ImportOptions &options;
  ModelFile file;
  OpBuilder builder; ///< before the program, in the module
  GraphState state;
  ImportedModel result;
  ProgramOp program;
  Value loss;
  std::vector<std::string> inputNames;
  llvm::StringSet<> symbols;       ///< names of initializers, and those given instead
  std::vector<StringRef> payloads; ///< of each initializer
  std::vector<Weight> weights;
};
} // namespace

FailureOr<ImportedModel> importOnnx(MLIRContext &context, const ImportOptions &options) {
  context.loadDialect<LlmcDialect>();
  FailureOr<ModelFile> file = openModel(&context, options.path);
  if (failed(file))
    return failure();
  return Importer(context, options, std::move(*file)).run();
}

} // namespace llmc
