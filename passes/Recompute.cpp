// At the launch where most bytes are alive, the largest value that only waits there for the backward pass and that a
// fusion can compute again is taken away, and so on, until nothing at the peak can be.
#include "passes/FusionSlice.h"
#include "passes/LaunchGraph.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {

#define GEN_PASS_DEF_RECOMPUTE
#include "passes/Passes.h.inc"

/// Smaller values are not worth a launch, as a share of the peak.
static constexpr double kSmallestShare = 1e-3;

namespace {

/// A result that is idle between two of its uses.
struct Candidate {
  FusionOp fusion;
  unsigned result = 0;
  int64_t bytes = 0;
  unsigned lastEarly = 0, firstLate = 0; ///< nodes: the gap lies between them
  FusionSlice slice;
  llvm::SmallVector<std::pair<unsigned, int64_t>>
      kept; ///< what the slice reads, kept from its last use until firstLate: (last, bytes)
};

class Recomputer {
public:
  Recomputer(ProgramOp program, const LaunchGraph &graph) : program(program), graph(graph) {
    for (auto set : program.getBody().front().getOps<SetOp>())
      sets[set.getVariableAttr().getAttr()] = set;
  }

  void run() {
    sumLiveBytes();
    int64_t before = *llvm::max_element(live);
    unsigned numAgain = 0;
    while (std::optional<Candidate> candidate = largestAtPeak()) {
      for (unsigned node = candidate->lastEarly + 1; node < candidate->firstLate; ++node)
        live[node] -= candidate->bytes;
      for (auto [last, bytes] : candidate->kept)
        for (unsigned node = last + 1; node <= candidate->firstLate; ++node)
          live[node] += bytes;
      done.insert(candidate->fusion.getOutputs()[candidate->result]);
      computeAgain(*candidate);
      ++numAgain;
    }
    if (numAgain > 0)
      remarkOn(program) << "applied: " << numAgain << " values are computed again: at most " << *llvm::max_element(live)
                        << " live bytes instead of " << before;
  }

private:
  void sumLiveBytes() {
    live.assign(graph.getNodes().size(), 0);
    for (const LaunchGraph::Value &value : graph.getValues())
      for (unsigned node = value.users.front(); node <= value.users.back(); ++node)
        live[node] += value.bytes;
  }

  std::optional<Candidate> largestAtPeak() {
    unsigned peak = llvm::max_element(live) - live.begin();
    std::optional<Candidate> best;
    for (unsigned node = 0; node < peak; ++node) {
      auto fusion = dyn_cast<FusionOp>(graph.getNodes()[node].op);
      for (unsigned result = 0; fusion && result < fusion.getNumResults(); ++result) {
        if (std::optional<Candidate> candidate = candidateAt(fusion, result, peak, best ? best->bytes : 0))
          best = std::move(candidate);
      }
    }
    return best;
  }

  /// The candidate that a result is, when it is larger than `least`.
  std::optional<Candidate> candidateAt(FusionOp fusion, unsigned result, unsigned peak, int64_t least) {
    Value value = fusion.getOutputs()[result];
    std::optional<unsigned> memory = graph.valueOf(value);
    if (!memory || done.contains(value))
      return std::nullopt;
    int64_t bytes = graph.getValues()[*memory].bytes;
    if (bytes <= least || double(bytes) < kSmallestShare * double(live[peak]))
      return std::nullopt;
    Candidate candidate{fusion, result, bytes, graph.nodeOfOp(fusion), ~0u, {}, {}};
    for (OpOperand *use : usesOf(value)) {
      auto node = nodeOfOriginal(use->getOwner());
      if (!node || isTied(*use))
        return std::nullopt;
      if (*node < peak)
        candidate.lastEarly = std::max(candidate.lastEarly, *node);
      else
        candidate.firstLate = std::min(candidate.firstLate, *node);
    }
    if (candidate.lastEarly == graph.nodeOfOp(fusion) || candidate.firstLate <= peak || candidate.firstLate == ~0u)
      return std::nullopt;
    std::optional<FusionSlice> slice =
        sliceFusion(fusion, result, [&](Value other) { return isAtHand(other, peak, candidate); });
    if (!slice || slice->ops.empty())
      return std::nullopt;
    candidate.slice = std::move(*slice);
    return candidate;
  }

  static bool isTied(OpOperand &use) {
    return llvm::any_of(use.getOwner()->getResults(), [&](OpResult result) { return tiedOperand(result) == &use; });
  }

  /// Launches of this pass are no nodes: what they read is left alone.
  std::optional<unsigned> nodeOfOriginal(Operation *op) const {
    return again.contains(op) ? std::nullopt : std::optional(graph.nodeOfOp(op));
  }

  /// Whether the slice can read a value at the candidate's first late use: it is there anyway, or died so shortly
  /// before that keeping it costs less than is won.
  bool isAtHand(Value value, unsigned peak, Candidate &candidate) {
    Value root = rootOf(value);
    Operation *producer = root.getDefiningOp();
    if (!producer || isa<ScalarOp>(producer))
      return true;
    if (auto get = dyn_cast<GetOp>(producer))
      return !isOverwritten(get.getVariableAttr().getAttr(), graph.getNodes()[candidate.firstLate].op);
    unsigned last = 0;
    for (OpOperand *use : usesOf(root)) {
      auto node = again.find(use->getOwner());
      last = std::max(last, node != again.end() ? node->second : graph.nodeOfOp(use->getOwner()));
      if (isTied(*use))
        return false;
    }
    if (last >= candidate.firstLate)
      return true;
    int64_t bytes = bytesOf(root);
    for (unsigned node = last + 1; node <= candidate.firstLate; ++node)
      if (last <= peak || live[node] + bytes > live[peak] - candidate.bytes)
        return false;
    candidate.kept.push_back({last, bytes});
    return true;
  }

  /// Whether a variable's new value may lie in its memory before `at`.
  bool isOverwritten(StringAttr variable, Operation *at) const {
    SetOp set = sets.lookup(variable);
    if (!set)
      return false;
    Operation *writer = rootOf(set.getValue()).getDefiningOp();
    return set->isBeforeInBlock(at) || (writer && writer->isBeforeInBlock(at));
  }

  void computeAgain(Candidate &candidate) {
    Value value = candidate.fusion.getOutputs()[candidate.result];
    Operation *first = graph.getNodes()[candidate.firstLate].op;
    OpBuilder builder(first);
    FusionOp clone = buildSlice(builder, candidate.fusion, candidate.result, candidate.slice);
    again[clone] = candidate.firstLate;
    remarkOn(clone) << "applied: computed again for " << first->getName() << ", " << candidate.bytes
                    << " bytes less at the peak";
    for (OpOperand *use : usesOf(value))
      if (auto node = nodeOfOriginal(use->getOwner()); node && *node >= candidate.firstLate)
        use->set(viewLike(builder, use->get(), value, clone.getResult(0)));
  }

  /// `view` of `from`, on `to`.
  static Value viewLike(OpBuilder &builder, Value view, Value from, Value to) {
    if (view == from)
      return to;
    Operation *op = view.getDefiningOp();
    Operation *copy = builder.clone(*op);
    copy->setOperand(0, viewLike(builder, op->getOperand(0), from, to));
    copy->moveBefore(&*builder.getInsertionPoint());
    return copy->getResult(0);
  }

  ProgramOp program;
  const LaunchGraph &graph;
  DenseMap<StringAttr, SetOp> sets; ///< by variable, which a program sets once at most
  SmallVector<int64_t> live;        ///< bytes by node
  DenseSet<Value> done;
  DenseMap<Operation *, unsigned> again; ///< launches of this pass, with the node that each stands before
};

struct Recompute : impl::RecomputeBase<Recompute> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>()) {
      FailureOr<LaunchGraph> graph = LaunchGraph::build(program);
      if (failed(graph))
        return signalPassFailure();
      if (!graph->getValues().empty())
        Recomputer(program, *graph).run();
    }
  }
};

} // namespace

} // namespace llmc
