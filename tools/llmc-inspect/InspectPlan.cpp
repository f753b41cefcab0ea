// A view of the plan is made as the flags ask, then given to one of the reports.
#include "tools/llmc-inspect/InspectPlan.h"

#include "runtime/Say.h"
#include "tools/Outputs.h"
#include "tools/Threads.h"
#include "tools/report/PlanDiff.h"
#include "tools/report/PlanJson.h"
#include "tools/report/PlanText.h"
#include "tools/report/ReportPage.h"

#include <fmt/format.h>

namespace llmc {

/// The target of that name (all of them for ""), those for the newest CPUs first: llmc-run takes the first that it can.
static Result<std::vector<const TargetPrograms *>> chooseTargets(const Plan &plan, const std::string &isa) {
  std::vector<const TargetPrograms *> chosen;
  std::string names;
  for (const TargetPrograms &target : plan.targets) {
    names += (names.empty() ? "" : ", ") + target.isa;
    if (isa.empty() || isa == target.isa)
      chosen.insert(chosen.begin(), &target);
  }
  if (chosen.empty())
    return Error{fmt::format("--isa {}: the plan has {}", isa, names.empty() ? "no programs" : names)};
  return chosen;
}

static Result<PlanView> viewOf(const PlanFile &file, const InspectOptions &options, const DeviceRates &device) {
  PlanView view;
  view.plan = &file.plan();
  view.hash = file.hash();
  view.sections = sectionsOf(file);
  view.device = device;
  Result<std::vector<const TargetPrograms *>> targets = chooseTargets(file.plan(), options.isa);
  if (!targets)
    return inContext(file.path(), targets.error());
  view.targets = std::move(*targets);
  return view;
}

static Result<const Program *> chooseProgram(const PlanView &view, const std::string &name) {
  const TargetPrograms &target = *view.targets.front();
  std::string names;
  for (const Program &program : target.programs) {
    if (name == programKindName(program.kind))
      return &program;
    names += std::string(names.empty() ? "" : ", ") + programKindName(program.kind);
  }
  if (name.empty() && !target.programs.empty())
    return &mainProgram(view);
  return Error{fmt::format("--program {}: the plan has {}", name, names.empty() ? "no programs" : names)};
}

static Status printDiff(const PlanView &view, const InspectOptions &options) {
  Result<PlanFile> other = PlanFile::open(options.diff);
  LLMC_RETURN_IF_ERROR(other);
  Result<PlanView> otherView = viewOf(*other, options, view.device);
  LLMC_RETURN_IF_ERROR(otherView);
  std::string text = planDiff(view, *otherView);
  say("{}", text.empty() ? "no difference\n" : text);
  return {};
}

Status inspectPlan(const InspectOptions &options) {
  LLMC_RETURN_IF_ERROR(checkOutputPlaces({{"--html", options.html}}));
  Result<PlanFile> file = PlanFile::open(options.plan);
  LLMC_RETURN_IF_ERROR(file);
  Result<DeviceRates> device = findDevice(options.device, defaultThreads());
  LLMC_RETURN_IF_ERROR(device);
  Result<PlanView> view = viewOf(*file, options, *device);
  LLMC_RETURN_IF_ERROR(view);
  if (!options.profile.empty()) {
    Result<MeasuredTimes> times = readTrace(options.profile, *view->targets.front());
    LLMC_RETURN_IF_ERROR(times);
    view->times = std::move(*times);
  }
  Result<const Program *> program = chooseProgram(*view, options.program);
  LLMC_RETURN_IF_ERROR(program);
  if (!options.diff.empty())
    return printDiff(*view, options);
  if (!options.html.empty())
    return writeReportPage(options.html, *view, {});
  if (options.isJson)
    say("{}\n", jsonText(planJson(*view), 1));
  else
    say("{}", planText(options.plan, *view, **program, options.isWhole));
  return {};
}

} // namespace llmc
