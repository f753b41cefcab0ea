// Small look-ups.
#include "tools/report/PlanView.h"

#include <algorithm>

namespace llmc {

std::vector<SectionBytes> sectionsOf(const PlanFile &file) {
  return {{"metadata", file.metadataBytes()},
          {"weights", file.weightsBytes()},
          {"code", file.code().size()},
          {"model", file.model().size()}};
}

const Program &mainProgram(const PlanView &view) {
  const std::vector<Program> &programs = view.targets.front()->programs;
  auto weight = [&](const Program &program) {
    return std::pair(totalMs(view.times, program.kind), program.kind == ProgramKind::stepFused);
  };
  return *std::max_element(programs.begin(), programs.end(),
                           [&](const Program &a, const Program &b) { return weight(a) < weight(b); });
}

const LaunchTime *timeOf(const PlanView &view, ProgramKind kind, size_t launch) {
  auto found = view.times.find(kind);
  return found == view.times.end() || found->second[launch].runs == 0 ? nullptr : &found->second[launch];
}

std::string kernelText(const TargetPrograms &target, const Launch &launch) {
  return launch.kind == KernelKind::Generated ? target.entries[size_t(launch.entry)].name
                                              : kernelInfo(launch.kind).name;
}

} // namespace llmc
