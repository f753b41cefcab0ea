// Compiles the reference, runs both steps, and says what came of it.
#include "tools/llmc-compile/CheckNumerics.h"

#include "passes/Passes.h"
#include "tools/llmc-compile/NumericsComparison.h"

#include "mlir/Pass/PassManager.h"

#include <cmath>
#include <fmt/format.h>

using namespace mlir;

namespace llmc {

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

static NumericsReport report(const NumericsComparison &compared, const Program &reference, const Program &optimized) {
  NumericsReport report;
  report.numUnchecked =
      llvm::count_if(compared.verdicts, [](const Verdict &v) { return v.outcome == Outcome::unchecked; });
  report.numCompared = compared.verdicts.size() - report.numUnchecked + compared.numLeftBehind;
  report.numLaunches = optimized.launches.size();
  report.numReferenceLaunches = reference.launches.size();
  report.largestShare = compared.largestShare;
  report.largestAt = compared.largestAt;
  if (!compared.departing.empty())
    report.departure = blame(compared, optimized);
  return report;
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
  Result<NumericsComparison> compared = compareSteps(stepProgram(input.imported), **referenceRun,
                                                     stepProgram(input.optimized), **optimizedRun, input.isBf16);
  LLMC_RETURN_IF_ERROR(compared);
  return report(*compared, (*referenceRun)->program(), (*optimizedRun)->program());
}

} // namespace llmc
