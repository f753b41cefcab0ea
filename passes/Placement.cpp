// Pieces by union: ties, then the places outside of the arena, then operands that die where a result of their size is
// written.
#include "passes/Placement.h"

using namespace mlir;

namespace llmc {

namespace {

class Placer {
public:
  Placer(ProgramOp program, const StateLayout &state) : program(program), state(state) {}

  FailureOr<Placement> run() {
    numberLaunches();
    for (BlockArgument argument : program.getBody().getArguments()) {
      auto name = program.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "llmc.name");
      addRoot(argument, state.inputs.lookup(name.getValue()));
    }
    for (Operation &op : program.getBody().front())
      addRoots(op);
    for (Operation &op : program.getBody().front())
      if (failed(fixPlaces(op)))
        return failure();
    for (auto &[root, piece] : placement.pieceOf)
      extendOverUses(root, placement.pieces[piece]);
    for (Operation &op : program.getBody().front())
      if (auto collective = dyn_cast<CollectiveOpInterface>(op); collective && collective.isStart())
        if (failed(addMessage(op)))
          return failure();
    for (Operation &op : program.getBody().front())
      if (isLaunch(&op))
        shareInPlace(op);
    return std::move(placement);
  }

private:
  void numberLaunches() {
    unsigned number = 0;
    for (Operation &op : program.getBody().front())
      if (isLaunch(&op))
        launchOf[&op] = number++;
  }

  void addRoot(Value root, BufferAttr fixed) {
    placement.pieceOf[root] = placement.pieces.size();
    unsigned launch = launchOf.lookup(root.getDefiningOp());
    placement.pieces.push_back({fixed, bytesOf(root), root.getDefiningOp<EmptyOp>() ? ~0u : launch, launch});
  }

  void addRoots(Operation &op) {
    if (isView(&op))
      return;
    for (OpResult result : op.getResults()) {
      BufferAttr fixed;
      if (auto get = dyn_cast<GetOp>(op))
        fixed = state.variables.lookup(get.getVariable());
      else if (auto scalar = dyn_cast<ScalarOp>(op))
        fixed = state.scalars.lookup(scalar.getName());
      if (OpOperand *tied = tiedOperand(result))
        placement.pieceOf[result] = placement.pieceOf.lookup(rootOf(tied->get()));
      else
        addRoot(result, fixed);
    }
  }

  Piece &pieceOf(Value value) { return placement.pieces[placement.pieceOf.lookup(rootOf(value))]; }

  LogicalResult fix(Operation &op, Value value, BufferAttr place) {
    Piece &piece = pieceOf(value);
    if (piece.fixed && piece.fixed != place)
      return op.emitOpError() << "one value must lie in two places, " << piece.fixed << " and " << place;
    piece.fixed = place;
    // An output stays till the end.
    if (place.getSpace() == MemorySpace::arena && !launchOf.empty())
      piece.last = launchOf.size() - 1;
    return success();
  }

  LogicalResult fixPlaces(Operation &op) {
    if (auto set = dyn_cast<SetOp>(op))
      return fix(op, set.getValue(), state.variables.lookup(set.getVariable()));
    if (!isa<ReturnOp>(op))
      return success();
    for (OpOperand &operand : op.getOpOperands()) {
      auto name = program.getResultAttrOfType<StringAttr>(operand.getOperandNumber(), "llmc.name");
      if (failed(fix(op, operand.get(), state.outputs.lookup(name.getValue()))))
        return failure();
    }
    return success();
  }

  void extendOverUses(Value root, Piece &piece) {
    if (auto defined = launchOf.find(root.getDefiningOp()); defined != launchOf.end())
      piece.last = std::max(piece.last, defined->second);
    for (OpOperand *use : usesOf(root))
      if (auto launch = launchOf.find(use->getOwner()); launch != launchOf.end()) {
        piece.first = std::min(piece.first, launch->second);
        piece.last = std::max(piece.last, launch->second);
      }
  }

  /// Messages of variables lie as the variables do: verify-plannable sees whether that is right.
  LogicalResult addMessage(Operation &start) {
    SmallVector<unsigned> message;
    for (Value operand : start.getOperands()) {
      unsigned piece = placement.pieceOf.lookup(rootOf(operand));
      if (placement.pieces[piece].fixed)
        continue;
      if (!inMessage.insert(piece).second)
        return start.emitOpError() << "a value is part of two messages, or of one message twice";
      message.push_back(piece);
    }
    if (!message.empty() && message.size() != start.getNumOperands())
      return start.emitOpError() << "some of its parts lie in variables, others do not";
    if (!message.empty())
      placement.messages.push_back(std::move(message));
    return success();
  }

  /// Results of the launch take the place of operands that die here. What lies in a message is left alone: with it the
  /// whole message would live longer.
  void shareInPlace(Operation &op) {
    for (OpResult result : op.getResults()) {
      unsigned written = placement.pieceOf.lookup(result);
      if (tiedOperand(result) || placement.pieces[written].fixed || inMessage.contains(written))
        continue;
      for (Value operand : op.getOperands()) {
        Value root = rootOf(operand);
        unsigned read = placement.pieceOf.lookup(root);
        Piece &piece = placement.pieces[read];
        if (piece.fixed || inMessage.contains(read) || piece.last != launchOf.lookup(&op) ||
            piece.bytes != placement.pieces[written].bytes || !canOverwrite(&op, result, root))
          continue;
        piece.last = placement.pieces[written].last;
        for (auto &[other, index] : placement.pieceOf)
          if (index == written)
            index = read;
        placement.pieces[written].bytes = 0;
        break;
      }
    }
  }

  ProgramOp program;
  const StateLayout &state;
  llvm::DenseMap<Operation *, unsigned> launchOf;
  llvm::DenseSet<unsigned> inMessage; ///< pieces
  Placement placement;
};

} // namespace

FailureOr<Placement> placeValues(ProgramOp program, const StateLayout &state) { return Placer(program, state).run(); }

} // namespace llmc
