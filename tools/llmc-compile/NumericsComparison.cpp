// The reference runs first, and what the optimized step's results may be compared with is kept; then each of these is
// compared as soon as it has been written. Bounds of variables follow from their gradients'.
#include "tools/llmc-compile/NumericsComparison.h"

#include "backend/StateEmitter.h"

#include <cmath>
#include <limits>

using namespace mlir;

namespace llmc {

namespace {

class StepComparer {
public:
  StepComparer(ProgramOp referenceStep, ProgramOp optimizedStep, bool isBf16)
      : reference(collectStepValues(referenceStep, /*viewNames=*/true)), tolerance(toleranceOf(isBf16)) {
    result.optimized = collectStepValues(optimizedStep, /*viewNames=*/false);
    findCandidates();
  }

  Result<NumericsComparison> run(StepRun &referenceRun, StepRun &optimizedRun) {
    LLMC_RETURN_IF_ERROR(runReference(referenceRun));
    LLMC_RETURN_IF_ERROR(runOptimized(optimizedRun));
    compareLeftovers(referenceRun, optimizedRun);
    return std::move(result);
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
    for (const StepValue &value : result.optimized.values) {
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
      result.verdicts.push_back(std::move(verdict));
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
      for (; next < result.optimized.values.size() && result.optimized.values[next].launch == launch; ++next)
        if (!result.verdicts[next].candidates.empty())
          compare(result.optimized.values[next], result.verdicts[next], read(run, result.optimized.values[next].value));
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
      result.departing.push_back({value.value, verdict.difference});
  }

  void note(const Difference &difference, const std::string &where) {
    if (difference.share > result.largestShare) {
      result.largestShare = difference.share;
      result.largestAt = where;
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
      ++result.numLeftBehind;
      if (now.share > 1)
        result.departing.push_back({value, now});
      else if (!reference.variables.contains(name) || StringRef(name).ends_with("/m"))
        note(now, name); // a parameter's share is 1 wherever the sign of its gradient is open
    };
    for (const auto &[name, value] : result.optimized.outputs)
      check(name, reference.outputs, value,
            [&](const std::vector<float> &expected) { return tolerance.relative * largestEntry(expected); });
    for (const auto &[name, value] : result.optimized.variables)
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

  StepValues reference;
  NumericsComparison result;
  Tolerance tolerance;
  std::map<size_t, std::vector<float>> kept;        ///< of reference.values: those that are candidates
  std::map<std::string, std::vector<float>> before; ///< the reference's variables
  double largestGradient = 0;
};

} // namespace

Result<NumericsComparison> compareSteps(ProgramOp referenceStep, StepRun &referenceRun, ProgramOp optimizedStep,
                                        StepRun &optimizedRun, bool isBf16) {
  return StepComparer(referenceStep, optimizedStep, isBf16).run(referenceRun, optimizedRun);
}

} // namespace llmc
