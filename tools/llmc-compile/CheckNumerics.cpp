// Which results must agree, and which one is to blame:
// - A node's own result in the forward pass has one counterpart: the last that the reference computes for that node.
// - So have variables and outputs after the step: parameters, moments, loss, gradient norm.
// - Any other result (gradients of activations, intermediate ones) may have several counterparts or, after fusion,
//   none; that it agrees with one of them is evidence that all before it is right, that it agrees with none is not
//   enough to call it wrong. Among what leads to a departing one of the first two kinds, the first such result that no
//   agreeing reader clears is where it starts.
#include "tools/llmc-compile/CheckNumerics.h"

#include "backend/StateEmitter.h"
#include "ir/Views.h"
#include "passes/Passes.h"
#include "tools/llmc-compile/StepRun.h"
#include "tools/llmc-compile/StepValues.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;

namespace llmc {

namespace {

enum class Outcome { unchecked, agrees, departs };

/// What is known of one result of the optimized program.
struct Verdict {
  std::vector<size_t> candidates; ///< values of the reference, in its order
  bool isExact = false;           ///< the only candidate is its counterpart
  Outcome outcome = Outcome::unchecked;
  Difference difference;
};

class NumericsCheck {
public:
  NumericsCheck(ProgramOp referenceStep, ProgramOp optimizedStep, bool isBf16)
      : reference(collectStepValues(referenceStep, /*viewNames=*/true)),
        optimized(collectStepValues(optimizedStep, /*viewNames=*/false)), tolerance(toleranceOf(isBf16)) {
    findCandidates();
  }

  Status run(StepRun &referenceRun, StepRun &optimizedRun) {
    LLMC_RETURN_IF_ERROR(runReference(referenceRun));
    LLMC_RETURN_IF_ERROR(runOptimized(optimizedRun));
    compareLeftovers(referenceRun, optimizedRun);
    report.numLaunches = optimizedRun.program().launches.size();
    report.numReferenceLaunches = referenceRun.program().launches.size();
    return {};
  }

  NumericsReport conclude(const Program &program) {
    for (const Verdict &verdict : verdicts)
      (verdict.outcome == Outcome::unchecked ? report.numUnchecked : report.numCompared) += 1;
    if (!triggers.empty())
      report.departure = blame(program);
    return report;
  }

private:
  static std::vector<float> read(const StepRun &run, Value value) {
    return run.read(bufferOf(value), cast<RankedTensorType>(value.getType()).getElementType().isBF16());
  }

  void findCandidates() {
    std::map<StringRef, std::vector<size_t>> byName;
    for (auto [i, value] : llvm::enumerate(reference.values))
      for (StringRef name : value.names)
        byName[name].push_back(i);
    for (const StepValue &value : optimized.values) {
      Verdict verdict;
      for (StringRef name : value.names)
        for (size_t i : byName[name])
          if (reference.values[i].type().getNumElements() == value.type().getNumElements() &&
              (!value.isForward || reference.values[i].isForward))
            verdict.candidates.push_back(i);
      llvm::sort(verdict.candidates);
      verdict.isExact = value.isForward && value.isFinal && !verdict.candidates.empty();
      if (verdict.isExact)
        verdict.candidates = {verdict.candidates.back()};
      for (size_t i : verdict.candidates)
        kept[i];
      verdicts.push_back(std::move(verdict));
    }
  }

  Status runReference(StepRun &run) {
    for (const auto &[name, value] : reference.variables)
      before[name] = read(run, value);
    size_t next = 0;
    for (size_t launch = 0; launch < run.program().launches.size(); ++launch) {
      LLMC_RETURN_IF_ERROR(run.run(launch));
      for (; next < reference.values.size() && reference.values[next].launch == launch; ++next)
        if (auto wanted = kept.find(next); wanted != kept.end())
          wanted->second = read(run, reference.values[next].value);
    }
    for (const auto &[name, value] : reference.variables)
      largestGradient = std::max(largestGradient, largestEntry(gradientOf(name, read(run, value))));
    return {};
  }

  /// A parameter's gradient (clipped), from what the reference left in its first moment or, without one, changed in it.
  std::vector<float> gradientOf(const std::string &name, std::vector<float> after) const {
    bool isMoment = StringRef(name).ends_with("/m");
    if (!isMoment && (StringRef(name).ends_with("/v") || reference.variables.contains(name + "/m")))
      return {};
    for (size_t i = 0; i < after.size(); ++i)
      after[i] = isMoment ? after[i] / float(1 - kCheckedStep.beta1)
                          : (before.at(name)[i] - after[i]) / float(kCheckedStep.lr);
    return after;
  }

  Status runOptimized(StepRun &run) {
    size_t next = 0;
    for (size_t launch = 0; launch < run.program().launches.size(); ++launch) {
      LLMC_RETURN_IF_ERROR(run.run(launch));
      for (; next < optimized.values.size() && optimized.values[next].launch == launch; ++next)
        if (!verdicts[next].candidates.empty())
          compare(optimized.values[next], verdicts[next], read(run, optimized.values[next].value));
    }
    return {};
  }

  void compare(const StepValue &value, Verdict &verdict, std::vector<float> found) {
    std::vector<float> sorted;
    double floor = value.isForward ? 0 : tolerance.floor * largestGradient;
    verdict.difference.share = std::numeric_limits<double>::infinity();
    for (size_t i : verdict.candidates) {
      const std::vector<float> &expected = kept[i];
      double bound = tolerance.relative * largestEntry(expected) + floor;
      Difference now = difference(expected, found, bound);
      // Another layout has the same numbers in another order.
      if (now.share > 1 && reference.values[i].type().getShape() != value.type().getShape()) {
        std::vector<float> sortedExpected = expected;
        llvm::sort(sortedExpected);
        if (sorted.empty())
          llvm::sort(sorted = found);
        if (Difference then = difference(sortedExpected, sorted, bound); then.share <= 1)
          now = then;
      }
      if (now.share < verdict.difference.share || i == verdict.candidates.front())
        verdict.difference = now;
    }
    verdict.outcome = verdict.difference.share <= 1 ? Outcome::agrees : Outcome::departs;
    if (verdict.outcome == Outcome::agrees && verdict.isExact)
      note(verdict.difference, value.names.empty() ? "" : value.names.back().str());
    else if (verdict.isExact)
      triggers.push_back({value.value, verdict.difference});
  }

  void note(const Difference &difference, const std::string &where) {
    if (difference.share > report.largestShare) {
      report.largestShare = difference.share;
      report.largestAt = where;
    }
  }

  //===-- After the step

  void compareLeftovers(const StepRun &referenceRun, const StepRun &optimizedRun) {
    auto check = [&](const std::string &name, const std::map<std::string, Value> &others, Value value, auto boundsOf) {
      auto other = others.find(name);
      if (other == others.end())
        return;
      std::vector<float> expected = read(referenceRun, other->second);
      Difference now = difference(expected, read(optimizedRun, value), boundsOf(expected));
      ++report.numCompared;
      if (now.share > 1)
        triggers.push_back({value, now});
      else if (!reference.variables.contains(name) || StringRef(name).ends_with("/m"))
        note(now, name); // a parameter's share is 1 wherever the sign of its gradient is open
    };
    for (const auto &[name, value] : optimized.outputs)
      check(name, reference.outputs, value,
            [&](const std::vector<float> &expected) { return tolerance.relative * largestEntry(expected); });
    for (const auto &[name, value] : optimized.variables)
      check(name, reference.variables, value,
            [&](const std::vector<float> &expected) { return variableBounds(referenceRun, name, expected); });
  }

  double gradientBound(double largest) const {
    return tolerance.relative * largest + tolerance.floor * largestGradient;
  }

  /// Bounds that follow from the gradient's: m = (1 - beta1) g, v = (1 - beta2) g^2; a parameter moves by lr g, or in
  /// AdamW's first step by lr times the sign of g, which is open where g is no larger than its bound.
  std::vector<double> variableBounds(const StepRun &run, const std::string &name, const std::vector<float> &expected) {
    double factor1 = 1 - kCheckedStep.beta1, factor2 = 1 - kCheckedStep.beta2;
    if (StringRef(name).ends_with("/m"))
      return std::vector<double>(expected.size(), factor1 * gradientBound(largestEntry(expected) / factor1));
    if (StringRef(name).ends_with("/v")) {
      double largest = std::sqrt(largestEntry(expected) / factor2), bound = gradientBound(largest);
      return std::vector<double>(expected.size(), factor2 * (2 * largest + bound) * bound);
    }
    auto moment = reference.variables.find(name + "/m");
    bool hasMoment = moment != reference.variables.end();
    std::vector<float> gradient =
        hasMoment ? gradientOf(name + "/m", read(run, moment->second)) : gradientOf(name, expected);
    double bound = gradientBound(largestEntry(gradient));
    std::vector<double> bounds(expected.size());
    for (size_t i = 0; i < bounds.size(); ++i) {
      double open = hasMoment ? 2 * std::min(1.0, 2 * bound / std::max<double>(std::abs(gradient[i]), 1e-30)) : bound;
      bounds[i] = kCheckedStep.lr * (open + 1e-5) + 0x1p-22 * std::abs(expected[i]);
    }
    return bounds;
  }

  //===-- Who is to blame

  /// Launches that lead to what departs.
  DenseSet<Operation *> slice() const {
    DenseSet<Operation *> seen;
    SmallVector<Value> open;
    for (const Trigger &trigger : triggers)
      open.push_back(trigger.value);
    while (!open.empty())
      if (Operation *op = open.pop_back_val().getDefiningOp(); op && seen.insert(op).second)
        llvm::append_range(open, op->getOperands());
    return seen;
  }

  bool isCleared(size_t i) const {
    if (verdicts[i].outcome == Outcome::agrees)
      return true;
    return !verdicts[i].isExact && llvm::any_of(readersOf(optimized.values[i].value), [&](Operation *reader) {
      bool agrees = false, departs = false;
      for (Value result : reader->getResults())
        if (auto found = indexOf.find(result); found != indexOf.end()) {
          agrees |= verdicts[found->second].outcome == Outcome::agrees;
          departs |= verdicts[found->second].outcome == Outcome::departs;
        }
      return agrees && !departs;
    });
  }

  NumericsDeparture blame(const Program &program) {
    for (auto [i, value] : llvm::enumerate(optimized.values))
      indexOf[value.value] = i;
    DenseSet<Operation *> suspects = slice();
    for (auto [i, value] : llvm::enumerate(optimized.values))
      if (suspects.contains(value.value.getDefiningOp()) && verdicts[i].outcome == Outcome::departs && !isCleared(i))
        return describe(program, i, verdicts[i].difference);
    Value last = rootOf(triggers.front().value);
    auto found = indexOf.find(last);
    assert(found != indexOf.end() && "what a step leaves behind is computed by a launch");
    return describe(program, found->second, triggers.front().difference);
  }

  NumericsDeparture describe(const Program &program, size_t i, const Difference &difference) const {
    const StepValue &value = optimized.values[i];
    const Launch &launch = program.launches[value.launch];
    NumericsDeparture departure;
    departure.nodes =
        fmt::format("{}", fmt::join(llvm::map_range(value.names, [](StringRef n) { return n.str(); }), ", "));
    departure.kernel = kernelInfo(launch.kind).name;
    if (launch.name != departure.nodes)
      departure.kernel += fmt::format(" '{}'", launch.name);
    RankedTensorType type = value.type();
    departure.shape =
        fmt::format("({}) {}", fmt::join(type.getShape(), ", "), type.getElementType().isBF16() ? "bf16" : "f32");
    SmallVector<int64_t> index(type.getRank());
    size_t rest = difference.index;
    for (int64_t d = type.getRank(); d-- > 0;) {
      index[d] = int64_t(rest) % type.getDimSize(d);
      rest /= size_t(type.getDimSize(d));
    }
    departure.index = fmt::format("[{}]", fmt::join(index, ", "));
    departure.launch = value.launch + 1;
    departure.difference = difference;
    for (Value operand : value.value.getDefiningOp()->getOperands())
      if (auto found = indexOf.find(rootOf(operand)); found != indexOf.end() &&
                                                      verdicts[found->second].outcome == Outcome::unchecked &&
                                                      !isCleared(found->second)) {
        const StepValue &other = optimized.values[found->second];
        departure.unchecked += (departure.unchecked.empty() ? "" : ", ") + program.launches[other.launch].name;
      }
    return departure;
  }

  struct Trigger {
    Value value;
    Difference difference;
  };

  StepValues reference, optimized;
  Tolerance tolerance;
  std::vector<Verdict> verdicts; ///< of optimized.values
  std::map<size_t, std::vector<float>> kept;
  std::map<std::string, std::vector<float>> before; ///< the reference's variables
  double largestGradient = 0;
  std::vector<Trigger> triggers; ///< what must agree and departs
  DenseMap<Value, size_t> indexOf;
  NumericsReport report;
};

} // namespace

std::string NumericsReport::text() const {
  if (!departure)
    return fmt::format("numerics: {} results agree with the unfused f32 program ({} launches against {}), {} have no "
                       "counterpart in it; at most {:.2g} of the bound, at '{}'",
                       numCompared, numLaunches, numReferenceLaunches, numUnchecked, largestShare, largestAt);
  const NumericsDeparture &found = *departure;
  std::string text = fmt::format("numerics: '{}' departs: {}, launch {} of {}, {} at {} is {:.9g}, the unfused f32 "
                                 "program has {:.9g}: {:.2g} apart, at most {:.2g} allowed",
                                 found.nodes, found.kernel, found.launch, numLaunches, found.shape, found.index,
                                 found.difference.found, found.difference.expected,
                                 std::abs(found.difference.found - found.difference.expected), found.difference.bound);
  if (!found.unchecked.empty())
    text += fmt::format("; what it reads of '{}' has no counterpart and may be the cause", found.unchecked);
  return text;
}

/// The imported module as the plainest step there is: f32, no optional pass.
static Status compileReference(const NumericsInput &input) {
  ModuleOp module = input.imported;
  PassManager manager(module.getContext(), ModuleOp::getOperationName());
  PipelineOptions pipeline;
  pipeline.optimizer = input.optimizer;
  for (StringRef name : passNames())
    if (whyRequired(name).empty())
      pipeline.disabled.push_back(name.str());
  buildPipeline(manager, pipeline);
  if (failed(manager.run(module)))
    return Error{"the unfused program could not be compiled"};
  return {};
}

Result<NumericsReport> checkNumerics(const NumericsInput &input) {
  auto optimizedRun = StepRun::open(input.temporary, input.emitted, input.batch);
  LLMC_RETURN_IF_ERROR(optimizedRun);
  LLMC_RETURN_IF_ERROR(compileReference(input));
  SmallVector<CpuIsa> levels; // one dispatch of oneDNN a process: the reference takes the optimized one's level
  llvm::copy_if(cpuIsas(), std::back_inserter(levels), [&](auto &isa) { return isa.name == (*optimizedRun)->isa(); });
  FailureOr<EmittedPlan> emitted = emitPlan(input.imported, levels);
  if (failed(emitted))
    return Error{"no code could be generated for the unfused program"};
  auto referenceRun = StepRun::open(input.temporary, *emitted, input.batch);
  LLMC_RETURN_IF_ERROR(referenceRun);
  NumericsCheck check(stepProgram(input.imported), stepProgram(input.optimized), input.isBf16);
  LLMC_RETURN_IF_ERROR(check.run(**referenceRun, **optimizedRun));
  return check.conclude((*optimizedRun)->program());
}

} // namespace llmc
