// Among the launches that lead to what departs, the first result that departs and that no agreeing reader clears is
// where it starts.
#include "tools/llmc-compile/NumericsBlame.h"

#include "ir/Views.h"
#include "tools/llmc-compile/NumericsComparison.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

using namespace mlir;

namespace llmc {

namespace {

class Blame {
public:
  Blame(const NumericsComparison &comparison, const Program &program) : comparison(comparison), program(program) {
    for (auto [i, value] : llvm::enumerate(comparison.optimized.values))
      indexOf[value.value] = i;
  }

  NumericsDeparture find() {
    DenseSet<Operation *> suspects = slice();
    for (auto [i, value] : llvm::enumerate(comparison.optimized.values))
      if (suspects.contains(value.value.getDefiningOp()) && comparison.verdicts[i].outcome == Outcome::departs &&
          !isCleared(i))
        return describe(i, comparison.verdicts[i].difference);
    Value last = rootOf(comparison.departing.front().value);
    auto found = indexOf.find(last);
    assert(found != indexOf.end() && "what a step leaves behind is computed by a launch");
    return describe(found->second, comparison.departing.front().difference);
  }

private:
  /// Launches that lead to what departs.
  DenseSet<Operation *> slice() const {
    DenseSet<Operation *> seen;
    SmallVector<Value> open;
    for (const Departing &trigger : comparison.departing)
      open.push_back(trigger.value);
    while (!open.empty())
      if (Operation *op = open.pop_back_val().getDefiningOp(); op && seen.insert(op).second)
        llvm::append_range(open, op->getOperands());
    return seen;
  }

  bool isCleared(size_t i) const {
    if (comparison.verdicts[i].outcome == Outcome::agrees)
      return true;
    return !comparison.verdicts[i].isExact &&
           llvm::any_of(readersOf(comparison.optimized.values[i].value), [&](Operation *reader) {
             bool agrees = false, departs = false;
             for (Value result : reader->getResults())
               if (auto found = indexOf.find(result); found != indexOf.end()) {
                 agrees |= comparison.verdicts[found->second].outcome == Outcome::agrees;
                 departs |= comparison.verdicts[found->second].outcome == Outcome::departs;
               }
             return agrees && !departs;
           });
  }

  NumericsDeparture describe(size_t i, const Difference &difference) const {
    const StepValue &value = comparison.optimized.values[i];
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
      if (auto found = indexOf.find(rootOf(operand));
          found != indexOf.end() && comparison.verdicts[found->second].outcome == Outcome::unchecked &&
          !isCleared(found->second)) {
        const StepValue &other = comparison.optimized.values[found->second];
        departure.unchecked += (departure.unchecked.empty() ? "" : ", ") + program.launches[other.launch].name;
      }
    return departure;
  }

  const NumericsComparison &comparison;
  const Program &program;
  DenseMap<Value, size_t> indexOf; ///< of comparison.optimized.values
};

} // namespace

NumericsDeparture blame(const NumericsComparison &comparison, const Program &program) {
  return Blame(comparison, program).find();
}

} // namespace llmc
