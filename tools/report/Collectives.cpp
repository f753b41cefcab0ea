// A start and its wait are found by the position they share.
#include "tools/report/Collectives.h"

#include "tools/report/KernelCost.h"
#include "tools/report/PlanText.h"

#include <fmt/format.h>

namespace llmc {

static int64_t positionOf(const Launch &launch) { return launch.ints.front(); } // as Kernels.def has it

/// The wait for what starts at launch `start`.
static size_t findWait(const Program &program, size_t start) {
  size_t i = start + 1;
  while (i < program.launches.size() && (program.launches[i].kind != KernelKind::AllReduceWait ||
                                         positionOf(program.launches[i]) != positionOf(program.launches[start])))
    ++i;
  return i;
}

std::vector<Collective> collectivesOf(const Program &program) {
  std::vector<Collective> collectives;
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch &launch = program.launches[i];
    if (launch.kind != KernelKind::AllReduceStart)
      continue;
    Collective &one = collectives.emplace_back();
    one.position = positionOf(launch);
    one.start = &launch;
    one.startLaunch = i;
    one.waitLaunch = findWait(program, i);
    for (const BufferRef &part : launch.operands)
      one.bytes += part.bytes;
    for (size_t between = i + 1; between < one.waitLaunch; ++between)
      one.flopsMeanwhile += program.launches[between].flops;
  }
  return collectives; // starts rise with the launches
}

OrderedJson collectivesJson(const PlanView &view, const Program &program) {
  OrderedJson list = OrderedJson::array();
  for (const Collective &one : collectivesOf(program)) {
    OrderedJson json = {{"op", "all_reduce"},
                        {"position", one.position},
                        {"name", one.start->name},
                        {"type", typesText(*one.start)},
                        {"parts", one.start->operands.size()},
                        {"bytes", one.bytes},
                        {"start_launch", one.startLaunch},
                        {"wait_launch", one.waitLaunch},
                        {"launches_meanwhile", one.launchesMeanwhile()},
                        {"flops_meanwhile", one.flopsMeanwhile}};
    if (const LaunchTime *time = timeOf(view, program.kind, one.waitLaunch))
      json["waited_ms"] = time->meanMs;
    list.push_back(std::move(json));
  }
  return list;
}

static std::string tableOf(const Program &program, const std::vector<Collective> &collectives, size_t most) {
  uint64_t bytes = 0;
  for (const Collective &one : collectives)
    bytes += one.bytes;
  std::string text = fmt::format(
      "collectives of {}: {} {}, {}B a rank\n{:>7}{:>7}{:>11}{:>20}{:>14}  {}\n", programKindName(program.kind),
      collectives.size(), collectives.size() == 1 ? "message" : "messages", countText(static_cast<double>(bytes)),
      "message", "parts", "B", "launches meanwhile", "FLOP", "first part");
  for (size_t i = 0; i < std::min(most, collectives.size()); ++i) {
    const Collective &one = collectives[i];
    text += fmt::format("{:>7}{:>7}{:>11}{:>20}{:>14}  {}\n", one.position, one.start->operands.size(),
                        countText(static_cast<double>(one.bytes)), one.launchesMeanwhile(),
                        countText(one.flopsMeanwhile), one.start->name.substr(0, one.start->name.find('+')));
  }
  if (collectives.size() > most)
    text += fmt::format("  ... {} more; --all shows them\n", collectives.size() - most);
  return text;
}

std::string collectiveTable(const TargetPrograms &target, size_t most) {
  for (const Program &program : target.programs)
    if (std::vector<Collective> collectives = collectivesOf(program); !collectives.empty())
      return tableOf(program, collectives, most);
  return "";
}

} // namespace llmc
