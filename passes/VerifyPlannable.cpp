// Walks each program as the device will run it and keeps account of what every byte holds. What a launch reads must
// still be there, what it writes may touch an operand only where its kernel allows that, and at the end every variable
// and result must be in its place. Collectives come in one order, and nothing touches a message in flight.
#include "ir/Piece.h"
#include "passes/Memory.h"
#include "passes/MemoryContents.h"
#include "passes/Passes.h"

using namespace mlir;

namespace llmc {

#define GEN_PASS_DEF_VERIFYPLANNABLE
#include "passes/Passes.h.inc"

static constexpr int64_t kAlignment = 64;

namespace {

class ProgramVerifier {
public:
  ProgramVerifier(ProgramOp program, ModuleOp module) : program(program), module(module) {}

  LogicalResult run() {
    if (failed(readBuffers()) || failed(enter()))
      return failure();
    for (Operation &op : program.getBody().front())
      if (failed(step(op)))
        return failure();
    return leave();
  }

private:
  //===-- Every value has a place, of its size, inside its space

  LogicalResult checkBuffer(Operation *where, Value value, BufferAttr place) {
    if (elementTypeNumber(cast<RankedTensorType>(value.getType()).getElementType()) < 0)
      return where->emitOpError() << "plans do not store elements of " << value.getType();
    if (place.getBytes() != bytesOf(value))
      return where->emitOpError() << "needs " << bytesOf(value) << " bytes, has " << place;
    if (place.getOffset() < 0 || place.getOffset() % kAlignment != 0 || place.getEnd() > spaceBytes(place.getSpace()))
      return where->emitOpError() << "lies at " << place << ", which is not aligned or beyond the space's "
                                  << spaceBytes(place.getSpace()) << " bytes";
    buffers[value] = place;
    return success();
  }

  LogicalResult checkBuffers(Operation *where, ValueRange values) {
    auto places = where->getAttrOfType<ArrayAttr>("llmc.buffers");
    if (!values.empty() && (!places || places.size() != values.size()))
      return where->emitOpError() << "has no buffer for each of its " << values.size() << " values";
    for (auto [i, value] : llvm::enumerate(values)) {
      auto place = dyn_cast<BufferAttr>(places[i]);
      if (!place)
        return where->emitOpError() << "has no buffer for value " << i;
      if (failed(checkBuffer(where, value, place)))
        return failure();
    }
    return success();
  }

  int64_t spaceBytes(MemorySpace space) {
    auto bytes = space == MemorySpace::arena   ? program->getAttrOfType<IntegerAttr>("llmc.arena_bytes")
                 : space == MemorySpace::state ? module->getAttrOfType<IntegerAttr>("llmc.state_bytes")
                                               : module->getAttrOfType<IntegerAttr>("llmc.gradient_bytes");
    return bytes ? bytes.getInt() : 0;
  }

  LogicalResult readBuffers() {
    if (failed(checkBuffers(program, program.getBody().getArguments())))
      return failure();
    for (Operation &op : program.getBody().front()) {
      if (!isLaunch(&op) && !isView(&op) && !isa<GetOp, SetOp, ScalarOp, EmptyOp, ReturnOp>(op))
        return op.emitOpError() << "has no kernel";
      if (failed(checkBuffers(&op, op.getResults())))
        return failure();
    }
    return success();
  }

  //===-- What memory holds

  /// Variables and inputs hold their values when the program starts.
  LogicalResult enter() {
    for (auto variable : module.getOps<VariableOp>()) {
      if (pieceOf(variable))
        continue; // it lies in another variable
      auto place = variable->getAttrOfType<BufferAttr>("llmc.buffer");
      if (!place)
        return variable.emitOpError() << "has no buffer";
      variablePlaces[variable.getSymNameAttr()] = place;
      current[variable.getSymNameAttr()] = variable.getAsOpaquePointer();
      contents.write(place, variable.getAsOpaquePointer());
    }
    for (BlockArgument argument : program.getBody().getArguments())
      writeValue(argument);
    for (auto scalar : program.getBody().front().getOps<ScalarOp>()) {
      MemoryContents::Owner &owner = scalars[scalar.getNameAttr()];
      owner = owner ? owner : scalar.getAsOpaquePointer();
      owners[scalar] = owner;
      contents.write(buffers[scalar], owner);
    }
    return success();
  }

  void writeValue(Value value) {
    owners[value] = value.getAsOpaquePointer();
    contents.write(buffers[value], value.getAsOpaquePointer());
  }

  LogicalResult checkHolds(Operation *where, Value value, const Twine &what) {
    Value root = rootOf(value);
    if (contents.holds(buffers[value], owners.lookup(root)))
      return success();
    InFlightDiagnostic diagnostic = where->emitOpError() << what << " at " << buffers[value] << " has been overwritten";
    diagnostic.attachNote(value.getLoc()) << "computed here";
    return diagnostic;
  }

  LogicalResult step(Operation &op) {
    if (isView(&op))
      return checkView(op);
    if (auto get = dyn_cast<GetOp>(op)) {
      owners[get] = current[get.getVariableAttr().getAttr()];
      return checkInVariable(op, get, get.getVariableAttr().getAttr());
    }
    if (auto set = dyn_cast<SetOp>(op)) {
      if (failed(checkHolds(&op, set.getValue(), "the new value")) ||
          failed(checkInVariable(op, set.getValue(), set.getVariableAttr().getAttr())))
        return failure();
      current[set.getVariableAttr().getAttr()] = owners.lookup(rootOf(set.getValue()));
    }
    if (auto collective = dyn_cast<CollectiveOpInterface>(op); collective && failed(checkCollective(collective)))
      return failure();
    return isLaunch(&op) ? launch(op) : success();
  }

  //===-- Collectives

  /// Starts and waits come in the order of their positions, each start has the wait that takes its results, and a
  /// message lies in one piece. That nothing touches it meanwhile follows from what its memory holds.
  LogicalResult checkCollective(CollectiveOpInterface op) {
    int64_t &next = op.isStart() ? numStarted : numDone;
    if (op.getPosition() != next)
      return op.emitOpError() << "has position " << op.getPosition() << " where " << next << " is next";
    ++next;
    return op.isStart() ? checkMessage(op) : checkWait(op);
  }

  LogicalResult checkMessage(Operation *start) {
    for (unsigned i = 1; i < start->getNumOperands(); ++i) {
      BufferAttr previous = buffers[start->getOperand(i - 1)], part = buffers[start->getOperand(i)];
      int64_t expected = (previous.getEnd() + kAlignment - 1) / kAlignment * kAlignment;
      if (part.getSpace() != previous.getSpace() || part.getOffset() != expected)
        return start->emitOpError() << "part " << i << " lies at " << part << ", not behind " << previous;
    }
    for (Value part : start->getResults())
      for (Operation *user : part.getUsers())
        if (auto wait = dyn_cast<CollectiveOpInterface>(user);
            !wait || wait.isStart() || user->getOperands() != start->getResults()) {
          InFlightDiagnostic diagnostic = user->emitOpError() << "reads a message that is in flight";
          diagnostic.attachNote(start->getLoc()) << "started here";
          return diagnostic;
        }
    return success();
  }

  LogicalResult checkWait(CollectiveOpInterface wait) {
    auto start = wait->getOperand(0).getDefiningOp<CollectiveOpInterface>();
    if (!start || !start.isStart() || start.getPosition() != wait.getPosition())
      return wait.emitOpError() << "waits for no start at position " << wait.getPosition();
    return success();
  }

  LogicalResult checkView(Operation &op) {
    BufferAttr source = buffers[op.getOperand(0)], result = buffers[op.getResult(0)];
    int64_t offset = source.getOffset() + cast<ViewOpInterface>(op).getViewOffsetBytes();
    if (result.getSpace() != source.getSpace() || result.getOffset() != offset || result.getEnd() > source.getEnd())
      return op.emitOpError() << "is a view of " << source << " but lies at " << result;
    return success();
  }

  LogicalResult checkInVariable(Operation &op, Value value, StringAttr variable) {
    if (buffers[value] != variablePlaces[variable])
      return op.emitOpError() << "the value lies at " << buffers[value] << ", the variable at "
                              << variablePlaces[variable];
    return success();
  }

  LogicalResult launch(Operation &op) {
    for (OpOperand &operand : op.getOpOperands())
      if (!rootOf(operand.get()).getDefiningOp<EmptyOp>())
        if (failed(checkHolds(&op, operand.get(), "operand " + Twine(operand.getOperandNumber()))))
          return failure();
    for (OpResult result : op.getResults()) {
      for (OpOperand &operand : op.getOpOperands())
        if (failed(checkOverlap(op, operand, result)))
          return failure();
      for (OpResult other : op.getResults().take_front(result.getResultNumber()))
        if (buffers[result].overlaps(buffers[other]))
          return op.emitOpError() << "results " << other.getResultNumber() << " and " << result.getResultNumber()
                                  << " overlap at " << buffers[result];
    }
    for (OpResult result : op.getResults())
      writeValue(result);
    return success();
  }

  LogicalResult checkOverlap(Operation &op, OpOperand &operand, OpResult result) {
    BufferAttr read = buffers[operand.get()], written = buffers[result];
    bool isTied = tiedOperand(result) == &operand;
    if (isTied && read != written)
      return op.emitOpError() << "result " << result.getResultNumber() << " must lie in its operand's buffer " << read
                              << ", lies at " << written;
    bool mayShare = read == written &&
                    cast<KernelOpInterface>(op).canShareBuffer(operand.getOperandNumber(), result.getResultNumber());
    if (read.overlaps(written) && !isTied && !mayShare)
      return op.emitOpError() << "result " << result.getResultNumber() << " at " << written << " overlaps operand "
                              << operand.getOperandNumber() << " at " << read;
    return success();
  }

  LogicalResult leave() {
    Operation *exit = program.getBody().front().getTerminator();
    if (numStarted != numDone)
      return exit->emitOpError() << "comes with " << numStarted - numDone << " collectives in flight";
    for (OpOperand &operand : exit->getOpOperands()) {
      if (failed(checkHolds(exit, operand.get(), "result " + Twine(operand.getOperandNumber()))))
        return failure();
      MemorySpace space = buffers[operand.get()].getSpace();
      if (space != MemorySpace::state && !(space == MemorySpace::arena && program.getKind() == "forward"))
        return exit->emitOpError() << "result " << operand.getOperandNumber() << " does not lie in the state";
    }
    for (auto variable : module.getOps<VariableOp>())
      if (!pieceOf(variable) &&
          !contents.holds(variablePlaces[variable.getSymNameAttr()], current[variable.getSymNameAttr()]))
        return exit->emitOpError() << "variable " << variable.getSymNameAttr()
                                   << " does not hold its value at the end of the program";
    for (BlockArgument argument : program.getBody().getArguments())
      if (failed(checkHolds(exit, argument, "argument " + Twine(argument.getArgNumber()))))
        return failure();
    return success();
  }

  ProgramOp program;
  ModuleOp module;
  DenseMap<Value, BufferAttr> buffers;
  DenseMap<Value, MemoryContents::Owner> owners; ///< of roots: who wrote what the value is
  DenseMap<StringAttr, BufferAttr> variablePlaces;
  DenseMap<StringAttr, MemoryContents::Owner> current; ///< who wrote a variable's value
  DenseMap<StringAttr, MemoryContents::Owner> scalars;
  MemoryContents contents;
  int64_t numStarted = 0, numDone = 0; ///< collectives
};

struct VerifyPlannable : impl::VerifyPlannableBase<VerifyPlannable> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      if (failed(ProgramVerifier(program, getOperation()).run()))
        return signalPassFailure();
  }
};

} // namespace

} // namespace llmc
