// One entry for each variable, input, hyperparameter and output, in the order of the modules' ops. Weights keep the
// model's own order and bytes; those that the module holds shortened (one number for all elements, bits for booleans)
// are written out.
#include "backend/StateEmitter.h"

#include "ir/Piece.h"

#include "mlir/IR/DialectResourceBlobManager.h"

using namespace mlir;

namespace llmc {

static constexpr uint64_t kWeightsAlignment = 64;

BufferRef bufferRef(BufferAttr buffer) {
  return {static_cast<Space>(buffer.getSpace()), uint64_t(buffer.getOffset()), uint64_t(buffer.getBytes())};
}

BufferRef bufferOf(Value value) {
  ArrayAttr buffers;
  unsigned index;
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    buffers = argument.getOwner()->getParentOp()->getAttrOfType<ArrayAttr>("llmc.buffers");
    index = argument.getArgNumber();
  } else {
    buffers = value.getDefiningOp()->getAttrOfType<ArrayAttr>("llmc.buffers");
    index = cast<OpResult>(value).getResultNumber();
  }
  return bufferRef(cast<BufferAttr>(buffers[index]));
}

static StateEntry makeEntry(StringRef name, StateKind kind, Type type, BufferRef buffer) {
  auto tensor = cast<RankedTensorType>(type);
  StateEntry entry;
  entry.name = name.str();
  entry.kind = kind;
  entry.type = static_cast<ElementType>(elementTypeNumber(tensor.getElementType()));
  entry.shape.assign(tensor.getShape().begin(), tensor.getShape().end());
  entry.buffer = buffer;
  return entry;
}

namespace {

class StateEmitter {
public:
  StateEmitter(ModuleOp module, EmittedPlan &emitted) : module(module), emitted(emitted), symbols(module) {}

  LogicalResult run() {
    auto bytesOf = [&](StringRef name) { return uint64_t(module->getAttrOfType<IntegerAttr>(name).getInt()); };
    emitted.plan.stateBytes = bytesOf("llmc.state_bytes");
    emitted.plan.gradientBytes = bytesOf("llmc.gradient_bytes");
    for (auto variable : module.getOps<VariableOp>())
      if (std::optional<Piece> piece = pieceOf(variable))
        wholes.insert(piece->whole.getAttr());
    for (auto variable : module.getOps<VariableOp>())
      if (failed(addVariable(variable)))
        return failure();
    for (auto program : module.getOps<ProgramOp>()) {
      for (BlockArgument argument : program.getBody().getArguments())
        addInput(program, argument);
      for (auto scalar : program.getBody().front().getOps<ScalarOp>())
        addScalar(scalar);
      for (auto [i, value] : llvm::enumerate(program.getBody().front().getTerminator()->getOperands()))
        addOutput(program, i, value);
    }
    llvm::append_range(emitted.plan.state, inputs);
    llvm::append_range(emitted.plan.state, scalars);
    llvm::append_range(emitted.plan.state, outputs);
    describeTokens();
    return success();
  }

private:
  LogicalResult addVariable(VariableOp variable) {
    StringRef kind = variable.getKind();
    if (kind == "gradient" || isWhole(variable))
      return success(); // a whole is known by its parts
    StateKind stateKind = kind == "constant" ? StateKind::constant
                          : kind == "moment" ? StateKind::moment
                                             : StateKind::parameter;
    std::optional<Piece> piece = pieceOf(variable);
    VariableOp whole = piece ? symbols.lookup<VariableOp>(piece->whole.getAttr()) : variable;
    StateEntry entry = makeEntry(variable.getSymName(), stateKind, variable.getType(), placeOf(whole));
    entry.decays = variable.getDecays();
    if (VariableOp gradient = stateOf(whole, "gradient"))
      entry.gradient = placeOf(gradient);
    if (piece)
      cutOut(entry, whole, *piece);
    if (stateKind != StateKind::moment) {
      FailureOr<std::span<const std::byte>> bytes = valueBytes(variable);
      if (failed(bytes))
        return failure();
      entry.fileOffset = weightsEnd;
      emitted.payload.weights.push_back({weightsEnd, *bytes});
      weightsEnd = (weightsEnd + bytes->size() + kWeightsAlignment - 1) / kWeightsAlignment * kWeightsAlignment;
    }
    emitted.plan.state.push_back(std::move(entry));
    for (StringRef moment : {"m", "v"})
      if (VariableOp ofWhole = piece ? stateOf(whole, moment) : VariableOp())
        addMoment((variable.getSymName() + "/" + moment).str(), variable.getType(), ofWhole, *piece);
    return success();
  }

  /// A part has moments of its own in the plan, however the step keeps them.
  void addMoment(const std::string &name, Type type, VariableOp ofWhole, const Piece &piece) {
    StateEntry entry = makeEntry(name, StateKind::moment, type, placeOf(ofWhole));
    cutOut(entry, ofWhole, piece);
    emitted.plan.state.push_back(std::move(entry));
  }

  VariableOp stateOf(VariableOp parameter, StringRef what) const {
    return symbols.lookup<VariableOp>((parameter.getSymName() + "/" + what).str());
  }

  /// Whether its parts, or the parameter's whose moment it is, stand for it.
  bool isWhole(VariableOp variable) {
    StringRef name = variable.getSymName();
    if (variable.getKind() == "moment")
      name = name.rsplit('/').first;
    return wholes.contains(StringAttr::get(module.getContext(), name));
  }

  /// From the place of a whole to that of its piece: rows, as many as the dimensions before the axis have indices.
  static void cutOut(StateEntry &entry, VariableOp whole, const Piece &piece) {
    auto wholeType = cast<RankedTensorType>(whole.getType());
    auto elementsFrom = [&](ArrayRef<int64_t> shape) {
      return uint64_t(ShapedType::getNumElements(shape.drop_front(piece.axis)));
    };
    uint64_t inner = uint64_t(ShapedType::getNumElements(wholeType.getShape().drop_front(piece.axis + 1)));
    entry.rows = {elementsFrom(entry.shape), elementsFrom(wholeType.getShape())};
    uint64_t first = uint64_t(piece.start) * inner, elements = uint64_t(ShapedType::getNumElements(entry.shape));
    auto cut = [&](BufferRef &buffer, uint64_t elementSize) {
      buffer.offset += first * elementSize;
      buffer.bytes = elements * elementSize;
    };
    cut(entry.buffer, elementBytes(entry.type));
    if (entry.gradient.space != Space::none)
      cut(entry.gradient, sizeof(float));
  }

  static BufferRef placeOf(VariableOp variable) {
    return bufferRef(variable->getAttrOfType<BufferAttr>("llmc.buffer"));
  }

  /// The initial value, dense; from the module's own memory where it lies there so.
  FailureOr<std::span<const std::byte>> valueBytes(VariableOp variable) {
    auto type = cast<RankedTensorType>(variable.getType());
    size_t numBytes = tensorBytes(type);
    ArrayRef<char> data;
    bool isDense = true;
    if (auto resource = dyn_cast_or_null<DenseResourceElementsAttr>(variable.getValueAttr())) {
      if (AsmResourceBlob *blob = resource.getRawHandle().getBlob())
        data = blob->getData();
    } else if (auto elements = dyn_cast_or_null<DenseElementsAttr>(variable.getValueAttr())) {
      data = elements.getRawData();
      isDense = !elements.isSplat() && !type.getElementType().isInteger(1);
      if (!isDense)
        return expand(elements, numBytes);
    }
    if (data.size() != numBytes)
      return variable.emitOpError() << "needs an initial value of " << numBytes << " bytes, has " << data.size();
    return std::as_bytes(std::span(data.data(), data.size()));
  }

  std::span<const std::byte> expand(DenseElementsAttr elements, size_t numBytes) {
    std::vector<std::byte> &bytes = emitted.expanded.emplace_back(numBytes);
    if (elements.getElementType().isInteger(1)) {
      for (auto [i, value] : llvm::enumerate(elements.getValues<bool>()))
        bytes[i] = std::byte(value);
    } else {
      ArrayRef<char> one = elements.getRawData();
      for (size_t i = 0; i < numBytes; ++i)
        bytes[i] = std::byte(one[i % one.size()]);
    }
    return bytes;
  }

  void addInput(ProgramOp program, BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    auto text = [&](StringRef name) {
      auto attribute = program.getArgAttrOfType<StringAttr>(index, name);
      return attribute ? attribute.getValue() : "";
    };
    StateEntry *entry = find(inputs, text("llmc.name"));
    if (!entry) {
      inputs.push_back(makeEntry(text("llmc.name"), StateKind::input, argument.getType(), bufferOf(argument)));
      entry = &inputs.back();
    }
    entry->role = text("llmc.role").str();
    if (auto ignored = program.getArgAttrOfType<IntegerAttr>(index, "llmc.ignore_index"))
      entry->ignoreIndex = ignored.getInt();
    if (auto vocabulary = program.getArgAttrOfType<IntegerAttr>(index, "llmc.vocabulary"))
      entry->vocabulary = vocabulary.getInt();
    else if (int64_t rows = smallestTable(argument); rows > 0)
      entry->vocabulary = rows;
  }

  /// Rows of the smallest table that the ids pick from; 0 when they pick from none.
  static int64_t smallestTable(Value ids) {
    int64_t rows = 0;
    for (Operation *user : ids.getUsers()) {
      if (auto embedding = dyn_cast<EmbeddingOp>(user); embedding && embedding.getIds() == ids) {
        int64_t tableRows = embedding.getTable().getType().getDimSize(0);
        rows = rows == 0 ? tableRows : std::min(rows, tableRows);
      } else if (isa<ViewOpInterface>(user)) {
        int64_t viewRows = smallestTable(user->getResult(0));
        rows = rows == 0 || viewRows == 0 ? std::max(rows, viewRows) : std::min(rows, viewRows);
      }
    }
    return rows;
  }

  void addScalar(ScalarOp scalar) {
    if (find(scalars, scalar.getName()))
      return;
    scalars.push_back(makeEntry(scalar.getName(), StateKind::scalar, scalar.getType(), bufferOf(scalar)));
    scalars.back().type = ElementType::f32; // seeds and the step number are raw bits in it
  }

  void addOutput(ProgramOp program, unsigned index, Value value) {
    auto name = program.getResultAttrOfType<StringAttr>(index, "llmc.name");
    if (find(outputs, name.getValue()))
      return;
    outputs.push_back(makeEntry(name.getValue(), StateKind::output, value.getType(), bufferOf(value)));
    if (auto role = program.getResultAttrOfType<StringAttr>(index, "llmc.role"))
      outputs.back().role = role.str();
  }

  static StateEntry *find(std::vector<StateEntry> &entries, StringRef name) {
    auto found = llvm::find_if(entries, [&](const StateEntry &entry) { return entry.name == name; });
    return found == entries.end() ? nullptr : &*found;
  }

  /// Batch, sequence and vocabulary are those of the tokens.
  void describeTokens() {
    for (const StateEntry &entry : emitted.plan.state)
      if (entry.kind == StateKind::input && entry.role == "tokens" && entry.shape.size() == 2) {
        emitted.plan.batch = entry.shape[0];
        emitted.plan.sequence = entry.shape[1];
        emitted.plan.vocabulary = entry.vocabulary;
      }
  }

  ModuleOp module;
  EmittedPlan &emitted;
  SymbolTable symbols;
  uint64_t weightsEnd = 0;
  DenseSet<StringAttr> wholes; ///< parameters that others are pieces of
  std::vector<StateEntry> inputs, scalars, outputs;
};

} // namespace

LogicalResult emitState(ModuleOp module, EmittedPlan &emitted) { return StateEmitter(module, emitted).run(); }

} // namespace llmc
