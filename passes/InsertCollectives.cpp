// Gives each program that ends in an update a twin for several ranks. In it gradients are summed over the ranks in
// messages ("buckets" of PyTorch's DDP, Li et al., arXiv:2006.15704): filled in the order in which the backward pass
// completes gradients, started when the last of them is there and waited for at once (overlap-collectives says that
// they need not be). The first message takes the loss along.
#include "passes/Passes.h"
#include "passes/ProgramResults.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_INSERTCOLLECTIVES
#include "passes/Passes.h.inc"

static GlobalNormOp normOf(ProgramOp program) {
  auto norms = program.getBody().front().getOps<GlobalNormOp>();
  return norms.empty() ? GlobalNormOp() : *norms.begin();
}

static int64_t bytesOf(Value value) { return tensorBytes(cast<RankedTensorType>(value.getType())); }

namespace {

/// Indices of gradients, in the order of the norm's operands, that travel together.
using Message = SmallVector<unsigned>;

/// The collectives of one program.
class Inserter {
public:
  Inserter(ProgramOp program, ArrayRef<Message> messages)
      : program(program), messages(messages), norm(normOf(program)), gradients(norm.getGradients()),
        clips(llvm::any_of(norm.getNorm().getUsers(), [](Operation *user) { return !isa<ReturnOp>(user); })) {}

  void run() {
    for (unsigned position = 0; position < messages.size(); ++position)
      starts.push_back(insertStart(position));
    for (unsigned position = 0; position < messages.size(); ++position)
      insertWait(position);
    int64_t bytes = 0;
    for (Value gradient : gradients)
      bytes += bytesOf(gradient);
    program.emitRemark() << "applied: " << gradients.size() << " gradients of " << bytes
                         << " bytes are summed over ranks in " << messages.size() << " messages";
  }

private:
  /// Behind the op that completes the message, and behind the start before it.
  AllReduceStartOp insertStart(unsigned position) {
    SmallVector<Value> parts;
    if (std::optional<unsigned> loss = lossResult(program); loss && position == 0)
      parts.push_back(program.getBody().front().getTerminator()->getOperand(*loss));
    for (unsigned index : messages[position])
      parts.push_back(gradients[index]);
    Operation *last = starts.empty() ? nullptr : starts.back().getOperation();
    SmallVector<Location> locations;
    int64_t bytes = 0;
    for (Value part : parts) {
      if (Operation *producer = part.getDefiningOp(); producer && (!last || last->isBeforeInBlock(producer)))
        last = producer;
      locations.push_back(part.getLoc());
      bytes += bytesOf(part);
    }
    OpBuilder builder(program.getContext());
    if (last)
      builder.setInsertionPointAfter(last);
    else
      builder.setInsertionPointToStart(&program.getBody().front());
    auto start = builder.create<AllReduceStartOp>(builder.getFusedLoc(locations), parts, position);
    start.emitRemark() << "applied: message " << position << ": " << parts.size() << " values, " << bytes << " bytes";
    return start;
  }

  /// Right behind the start.
  void insertWait(unsigned position) {
    AllReduceStartOp start = starts[position];
    OpBuilder builder(norm);
    builder.setInsertionPointAfter(start);
    auto wait = builder.create<AllReduceWaitOp>(start.getLoc(), start.getSums(), position);
    for (auto [part, sum] : llvm::zip_equal(start.getParts(), wait.getSums())) {
      part.replaceUsesWithIf(sum, [&](OpOperand &use) { return !use.getOwner()->isBeforeInBlock(norm); });
      if (auto kept = part.getDefiningOp<GetOp>())
        builder.create<SetOp>(wait.getLoc(), kept.getVariable(), sum);
    }
    if (!clips)
      moveUpdates(wait);
  }

  /// Brings the updates that need nothing but this message, and what they read and set, behind the wait.
  void moveUpdates(AllReduceWaitOp wait) {
    Operation *at = wait;
    auto moveHere = [&](Operation *op) {
      op->moveAfter(at);
      at = op;
    };
    SmallVector<Operation *> users;
    for (Operation *user : wait->getUsers())
      if (!isa<GlobalNormOp, SetOp, ReturnOp>(user) && !llvm::is_contained(users, user))
        users.push_back(user);
    for (Operation *user : llvm::reverse(users)) {
      for (Value operand : user->getOperands())
        if (auto get = operand.getDefiningOp<GetOp>(); get && wait->isBeforeInBlock(get))
          moveHere(get);
      moveHere(user);
      for (Operation *set : llvm::make_early_inc_range(user->getUsers()))
        moveHere(set);
    }
  }

  ProgramOp program;
  ArrayRef<Message> messages;
  GlobalNormOp norm;
  SmallVector<Value> gradients;
  bool clips; ///< updates need the norm
  SmallVector<AllReduceStartOp> starts;
};

struct InsertCollectives : impl::InsertCollectivesBase<InsertCollectives> {
  using InsertCollectivesBase::InsertCollectivesBase;

  void runOnOperation() override {
    SmallVector<ProgramOp> programs;
    for (auto program : getOperation().getOps<ProgramOp>())
      if (normOf(program))
        programs.push_back(program);
    if (programs.empty()) {
      getOperation().emitRemark("declined: no program computes the norm of gradients");
      return;
    }
    SmallVector<Message> messages = fillMessages(programs);
    orderVariables(programs, messages);
    for (ProgramOp program : programs) {
      auto twin = cast<ProgramOp>(program->clone());
      std::string kind = (program.getKind() + "-ranks").str();
      twin.setSymName(kind);
      twin.setKind(kind);
      getOperation().getBody()->push_back(twin);
      Inserter(twin, messages).run();
    }
  }

private:
  /// One partition for all programs: gradients in the order in which a program that computes them does so, as many as
  /// make up the bytes of a message.
  SmallVector<Message> fillMessages(ArrayRef<ProgramOp> programs) {
    auto computes = [](ProgramOp program) {
      return llvm::none_of(normOf(program).getGradients(), [](Value value) { return value.getDefiningOp<GetOp>(); });
    };
    const ProgramOp *found = llvm::find_if(programs, computes);
    ProgramOp program = found == programs.end() ? programs.front() : *found;
    SmallVector<Value> gradients(normOf(program).getGradients());
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, gradients.size()));
    llvm::stable_sort(order, [&](unsigned a, unsigned b) {
      Operation *first = gradients[a].getDefiningOp(), *second = gradients[b].getDefiningOp();
      return first && second && first->isBeforeInBlock(second);
    });
    SmallVector<Message> messages;
    int64_t bytes = 0;
    for (unsigned index : order) {
      int64_t own = bytesOf(gradients[index]);
      bool sameType = !messages.empty() && getElementTypeOrSelf(gradients[messages.back().front()].getType()) ==
                                               getElementTypeOrSelf(gradients[index].getType());
      if (!sameType || bytes + own > bucketBytes) {
        messages.emplace_back();
        bytes = 0;
      }
      messages.back().push_back(index);
      bytes += own;
    }
    return messages;
  }

  /// Kept gradients lie in memory as their variables follow each other: a message must be one piece.
  void orderVariables(ArrayRef<ProgramOp> programs, ArrayRef<Message> messages) {
    SymbolTable symbols(getOperation());
    for (ProgramOp program : programs)
      for (ArrayRef<unsigned> message : messages)
        for (unsigned index : message)
          if (auto kept = normOf(program).getGradients()[index].getDefiningOp<GetOp>())
            symbols.lookup(kept.getVariable())->moveBefore(programs.front());
  }
};

} // namespace
} // namespace llmc
