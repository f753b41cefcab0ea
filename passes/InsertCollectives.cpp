// Gives each program that ends in an update a twin for several ranks. In it gradients are summed over the ranks in
// messages ("buckets" of PyTorch's DDP, Li et al., arXiv:2006.15704): filled in the order in which the backward pass
// completes gradients, started when the last of them is there and waited for at once (overlap-collectives says that
// they need not be). Small gradients and the loss, which are read until the end of the step, have a message of their
// own: in a large one they would hold its memory. What does not travel: weights at the start, which each rank has in
// its plan, and the norm, which each rank computes of the same sums; the labels of a step are counted before it
// (runtime/RankExchange.h).
#include "passes/Passes.h"
#include "passes/ProgramResults.h"
#include "passes/Remark.h"

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

/// What travels together.
struct Message {
  SmallVector<unsigned> gradients; ///< indices, in the order of the norm's operands
  bool takesLoss = false;
};

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
    remarkOn(program) << "applied: " << gradients.size() << " gradients of " << bytes
                      << " bytes are summed over ranks in " << messages.size() << " messages";
    remarkOn(norm) << "declined: every rank computes the norm of the same sums: nothing of it travels";
  }

private:
  /// Behind the op that completes the message, and behind the start before it.
  AllReduceStartOp insertStart(unsigned position) {
    SmallVector<Value> parts;
    if (std::optional<unsigned> loss = lossResult(program); loss && messages[position].takesLoss)
      parts.push_back(program.getBody().front().getTerminator()->getOperand(*loss));
    for (unsigned index : messages[position].gradients)
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
    remarkOn(start) << "applied: message " << position << ": " << parts.size() << " values, " << bytes << " bytes";
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
      remarkOn(getOperation()) << "declined: no program computes the norm of gradients";
      return;
    }
    remarkOn(programs.front())
        << "declined: weights are not sent at the start: each rank loads them from its own copy of "
           "the plan, whose hash all compare";
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
  /// One partition for all programs, in the order in which a program that computes the gradients completes it.
  SmallVector<Message> fillMessages(ArrayRef<ProgramOp> programs) {
    auto computes = [](ProgramOp program) {
      return llvm::none_of(normOf(program).getGradients(), [](Value value) { return value.getDefiningOp<GetOp>(); });
    };
    const ProgramOp *found = llvm::find_if(programs, computes);
    ProgramOp program = found == programs.end() ? programs.front() : *found;
    SmallVector<Value> gradients(normOf(program).getGradients());
    auto completesBefore = [&](unsigned a, unsigned b) {
      Operation *first = gradients[a].getDefiningOp(), *second = gradients[b].getDefiningOp();
      return first && second && first->isBeforeInBlock(second);
    };
    SmallVector<unsigned> order = llvm::to_vector(llvm::seq<unsigned>(0, gradients.size())), small, large;
    llvm::stable_sort(order, completesBefore);
    for (unsigned index : order)
      (bytesOf(gradients[index]) <= smallBytes ? small : large).push_back(index);
    SmallVector<Message> messages;
    addMessages(gradients, small, messages);
    if (messages.empty())
      messages.emplace_back();
    messages.front().takesLoss = true;
    addMessages(gradients, large, messages);
    if (messages.front().gradients.empty()) { // no small ones
      messages.erase(messages.begin());
      messages.front().takesLoss = true;
    }
    llvm::stable_sort(messages, [&](const Message &a, const Message &b) {
      return completesBefore(a.gradients.back(), b.gradients.back());
    });
    return messages;
  }

  /// As many gradients to a message as make up its bytes.
  void addMessages(ArrayRef<Value> gradients, ArrayRef<unsigned> order, SmallVector<Message> &messages) {
    int64_t bytes = 0;
    Type type;
    for (unsigned index : order) {
      int64_t own = bytesOf(gradients[index]);
      Type ownType = getElementTypeOrSelf(gradients[index].getType());
      if (ownType != type || bytes + own > bucketBytes) {
        messages.emplace_back();
        bytes = 0;
      }
      messages.back().gradients.push_back(index);
      bytes += own;
      type = ownType;
    }
  }

  /// Kept gradients lie in memory as their variables follow each other: a message must be one piece.
  void orderVariables(ArrayRef<ProgramOp> programs, ArrayRef<Message> messages) {
    SymbolTable symbols(getOperation());
    for (ProgramOp program : programs)
      for (const Message &message : messages)
        for (unsigned index : message.gradients)
          if (auto kept = normOf(program).getGradients()[index].getDefiningOp<GetOp>())
            symbols.lookup(kept.getVariable())->moveBefore(programs.front());
  }
};

} // namespace
} // namespace llmc
