// The state first, in one order for all programs: parameters, constants, moments, inputs, hyperparameters, outputs.
// Then each program: what must lie in the state is placed there, the rest in its arena. Outputs that only the forward
// program has (logits) lie at the start of its arena, so that training needs no room for them.
#include "passes/ArenaLayout.h"
#include "passes/Passes.h"
#include "passes/Placement.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {

#define GEN_PASS_DEF_PLANMEMORY
#include "passes/Passes.h.inc"

namespace {

/// Deals out places of the state and gradient spaces.
class StatePlanner {
public:
  explicit StatePlanner(ModuleOp module) : module(module) {}

  LogicalResult run() {
    for (StringRef kind : {"parameter", "constant", "moment", "gradient"})
      for (auto variable : module.getOps<VariableOp>())
        if (variable.getKind() == kind)
          addVariable(variable);
    for (auto program : module.getOps<ProgramOp>())
      for (unsigned i = 0; i < program.getNumArguments(); ++i)
        if (failed(addNamed(
                program,
                {"argument", i, program.getArgAttrOfType<StringAttr>(i, "llmc.name"), program.getArgumentTypes()[i]},
                MemorySpace::state, layout.inputs)))
          return failure();
    for (auto program : module.getOps<ProgramOp>())
      for (auto scalar : program.getBody().front().getOps<ScalarOp>())
        if (BufferAttr &place = layout.scalars[scalar.getName()]; !place)
          place = next(layout.stateBytes, MemorySpace::state, tensorBytes(scalar.getType()));
    llvm::StringMap<unsigned> numPrograms = countPrograms();
    for (auto program : module.getOps<ProgramOp>())
      for (unsigned i = 0; i < program.getNumResults(); ++i) {
        auto name = program.getResultAttrOfType<StringAttr>(i, "llmc.name");
        auto role = program.getResultAttrOfType<StringAttr>(i, "llmc.role");
        // The loss is read after each program that runs.
        bool isForwardOnly = program.getKind() == "forward" && name && numPrograms.lookup(name.getValue()) == 1 &&
                             !(role && role.getValue() == "loss");
        if (failed(addNamed(program, {"result", i, name, program.getResultTypes()[i]},
                            isForwardOnly ? MemorySpace::arena : MemorySpace::state, layout.outputs)))
          return failure();
      }
    return success();
  }
  StateLayout layout;

private:
  /// An argument or a result of a program.
  struct Named {
    StringRef what;
    unsigned index;
    StringAttr name;
    Type type;
  };

  /// How many programs have a result of each name.
  llvm::StringMap<unsigned> countPrograms() {
    llvm::StringMap<unsigned> counts;
    for (auto program : module.getOps<ProgramOp>())
      for (unsigned i = 0; i < program.getNumResults(); ++i)
        if (auto name = program.getResultAttrOfType<StringAttr>(i, "llmc.name"))
          ++counts[name.getValue()];
    return counts;
  }

  BufferAttr next(int64_t &end, MemorySpace space, int64_t bytes) {
    auto place = BufferAttr::get(module.getContext(), space, end, bytes);
    end = alignBuffer(end + bytes);
    return place;
  }

  void addVariable(VariableOp variable) {
    bool isGradient = variable.getKind() == "gradient";
    int64_t bytes = tensorBytes(cast<RankedTensorType>(variable.getType()));
    BufferAttr place = isGradient ? next(layout.gradientBytes, MemorySpace::gradients, bytes)
                                  : next(layout.stateBytes, MemorySpace::state, bytes);
    layout.variables[variable.getSymName()] = place;
    variable->setAttr("llmc.buffer", place);
  }

  /// Inputs and outputs are shared by the programs that name them.
  LogicalResult addNamed(ProgramOp program, Named named, MemorySpace space, llvm::StringMap<BufferAttr> &places) {
    if (!named.name)
      return program.emitOpError() << named.what << " " << named.index << " has no llmc.name";
    int64_t bytes = tensorBytes(cast<RankedTensorType>(named.type));
    BufferAttr &place = places[named.name.getValue()];
    if (!place)
      place = next(space == MemorySpace::state ? layout.stateBytes : layout.forwardBytes, space, bytes);
    if (place.getBytes() != bytes)
      return program.emitOpError() << named.what << " " << named.name << " has " << bytes
                                   << " bytes, in another program " << place.getBytes();
    return success();
  }

  ModuleOp module;
};

struct PlanMemory : impl::PlanMemoryBase<PlanMemory> {
  void runOnOperation() override {
    StatePlanner state(getOperation());
    if (failed(state.run()))
      return signalPassFailure();
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(plan(program, state.layout)))
        return signalPassFailure();
    Builder builder(&getContext());
    getOperation()->setAttr("llmc.state_bytes", builder.getI64IntegerAttr(state.layout.stateBytes));
    getOperation()->setAttr("llmc.gradient_bytes", builder.getI64IntegerAttr(state.layout.gradientBytes));
  }

private:
  LogicalResult plan(ProgramOp program, const StateLayout &state) {
    FailureOr<unsigned> numCopies = insertCopies(program);
    if (failed(numCopies))
      return failure();
    FailureOr<Placement> placement = placeValues(program, state);
    if (failed(placement))
      return failure();
    SmallVector<ArenaValue> values;
    for (const Piece &piece : placement->pieces)
      if (isInArena(piece))
        values.push_back(arenaValue(piece));
    int64_t bound = arenaLowerBound(values), arenaBytes = layOut(*placement);
    setBuffers(program, *placement);
    Builder builder(&getContext());
    program->setAttr("llmc.arena_bytes", builder.getI64IntegerAttr(arenaBytes));
    program->setAttr("llmc.lower_bound_bytes", builder.getI64IntegerAttr(bound));
    remarkOn(program) << "applied: " << values.size() << " values in an arena of " << arenaBytes
                      << " bytes, the largest live sum is " << bound << ", " << *numCopies << " copies";
    return success();
  }

  static bool isInArena(const Piece &piece) {
    return (!piece.fixed || piece.fixed.getSpace() == MemorySpace::arena) && piece.bytes > 0 &&
           piece.first <= piece.last;
  }

  static ArenaValue arenaValue(const Piece &piece) {
    return {piece.bytes, piece.first, piece.last, piece.fixed ? std::optional(piece.fixed.getOffset()) : std::nullopt};
  }

  /// Gives every piece its place. A message is one value of the arena, from its first part's first launch to the last
  /// part's last. Returns the arena's bytes.
  int64_t layOut(Placement &placement) {
    struct Place {
      unsigned value;
      int64_t offset;
    };
    SmallVector<ArenaValue> values;
    llvm::DenseMap<unsigned, Place> placeOf;
    for (ArrayRef<unsigned> message : placement.messages) {
      ArenaValue whole{0, ~0u, 0};
      for (unsigned index : message) {
        const Piece &piece = placement.pieces[index];
        placeOf[index] = {unsigned(values.size()), whole.bytes};
        whole = {whole.bytes + alignBuffer(piece.bytes), std::min(whole.first, piece.first),
                 std::max(whole.last, piece.last)};
      }
      values.push_back(whole);
    }
    for (auto [i, piece] : llvm::enumerate(placement.pieces))
      if (isInArena(piece) && !placeOf.contains(i)) {
        placeOf[i] = {unsigned(values.size()), 0};
        values.push_back(arenaValue(piece));
      }
    ArenaLayout arena = layoutArena(values);
    for (auto [i, piece] : llvm::enumerate(placement.pieces))
      if (!piece.fixed) {
        auto place = placeOf.find(i);
        int64_t offset = place == placeOf.end() ? 0 : arena.offsets[place->second.value] + place->second.offset;
        piece.fixed = BufferAttr::get(&getContext(), MemorySpace::arena, offset, piece.bytes);
      }
    return arena.bytes;
  }

  static BufferAttr bufferOf(Value value, const Placement &placement) {
    int64_t offset = 0, bytes = bytesOf(value);
    for (Operation *op = value.getDefiningOp(); op && isView(op); op = value.getDefiningOp()) {
      offset += cast<ViewOpInterface>(op).getViewOffsetBytes();
      value = op->getOperand(0);
    }
    BufferAttr root = placement.pieces[placement.pieceOf.lookup(value)].fixed;
    return BufferAttr::get(value.getContext(), root.getSpace(), root.getOffset() + offset, bytes);
  }

  static void setBuffers(ProgramOp program, const Placement &placement) {
    auto buffersOf = [&](ValueRange values) {
      SmallVector<Attribute> buffers;
      for (Value value : values)
        buffers.push_back(bufferOf(value, placement));
      return ArrayAttr::get(program.getContext(), buffers);
    };
    program->setAttr("llmc.buffers", buffersOf(program.getBody().getArguments()));
    for (Operation &op : program.getBody().front())
      if (op.getNumResults() > 0)
        op.setAttr("llmc.buffers", buffersOf(op.getResults()));
  }
};

} // namespace

} // namespace llmc
