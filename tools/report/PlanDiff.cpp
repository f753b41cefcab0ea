// Both sides become maps from a name to a text or a count; what differs between the maps is the difference.
#include "tools/report/PlanDiff.h"

#include "tools/report/KernelCost.h"
#include "tools/report/PlanText.h"
#include "tools/report/ProgramMemory.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace llmc {

namespace {

struct ProgramFacts {
  std::map<std::string, std::string> facts;
  std::map<std::string, size_t> kernels;
};

using Facts = std::map<std::string, std::string>;

} // namespace

static std::string mibText(uint64_t bytes) { return fmt::format("{:.2f} MiB", double(bytes) / (1 << 20)); }

static Facts planFacts(const PlanView &view) {
  const Plan &plan = *view.plan;
  Facts facts = {{"model", plan.modelName},
                 {"producer", plan.producer},
                 {"precision", plan.precision},
                 {"optimizer", plan.optimizer},
                 {"batch", fmt::format("{} x {}", plan.batch, plan.sequence)},
                 {"vocabulary", std::to_string(plan.vocabulary)},
                 {"FLOPs a token", countText(plan.flopsPerToken)},
                 {"state", mibText(plan.stateBytes)},
                 {"kept gradients", mibText(plan.gradientBytes)}};
  for (const SectionBytes &section : view.sections)
    facts["section " + section.name] = fmt::format("{} bytes", section.bytes);
  for (const TargetPrograms *target : view.targets)
    facts["target " + target->isa] = fmt::format("{} kernels", target->entries.size());
  for (const StateEntry &entry : plan.state)
    facts["state " + entry.name] = fmt::format("{} {}{}", elementTypeName(entry.type), fmt::join(entry.shape, " x "),
                                               entry.decays ? ", decays" : "");
  return facts;
}

static ProgramFacts programFacts(const PlanView &view, const Program &program) {
  ProgramFacts result;
  ProgramMemory memory = programMemory(*view.plan, program);
  double flops = 0, bytes = 0, boundMs = 0;
  for (const Launch &launch : program.launches) {
    flops += launch.flops;
    bytes += launch.bytes;
    boundMs += roofline(launch, view.plan->precision, view.device).ms;
    ++result.kernels[fmt::format("{} [{}] {}", kernelText(*view.targets.front(), launch), shapeText(launch),
                                 typesText(launch))];
  }
  result.facts = {{"launches", std::to_string(program.launches.size())},
                  {"operations", countText(flops) + "FLOP"},
                  {"traffic", countText(bytes) + "B"},
                  {"time at least", fmt::format("{:.3f} ms", boundMs)},
                  {"arena", mibText(program.arenaBytes)},
                  {"arena's lower bound", mibText(program.arenaLowerBoundBytes)}};
  for (size_t i = 0; i < memory.peak.size(); ++i)
    result.facts[fmt::format("peak of {}", kMemoryCategories[i])] = mibText(memory.peak[i]);
  if (double ms = totalMs(view.times, program.kind); ms > 0)
    result.facts["time measured"] = fmt::format("{:.3f} ms", ms);
  return result;
}

/// "what: before -> after" for each name whose text differs; "none" stands for a side that lacks it.
static std::string factsDiff(const std::string &prefix, const Facts &before, const Facts &after) {
  std::set<std::string> names;
  for (const Facts *facts : {&before, &after})
    for (const auto &[name, value] : *facts)
      names.insert(name);
  std::string text;
  for (const std::string &name : names) {
    auto a = before.find(name), b = after.find(name);
    std::string from = a == before.end() ? "none" : a->second, to = b == after.end() ? "none" : b->second;
    if (from != to)
      text += fmt::format("{}{}: {} -> {}\n", prefix, name, from, to);
  }
  return text;
}

/// "- 3 x kernel" for what only `before` has so often, "+ 2 x kernel" for `after`.
static std::string kernelsDiff(const std::string &prefix, const ProgramFacts &before, const ProgramFacts &after) {
  std::string text;
  auto add = [&](char sign, const ProgramFacts &facts, const ProgramFacts &other) {
    for (const auto &[kernel, count] : facts.kernels) {
      auto found = other.kernels.find(kernel);
      size_t same = found == other.kernels.end() ? 0 : found->second;
      if (count > same)
        text += fmt::format("{}{} {} x {}\n", prefix, sign, count - same, kernel);
    }
  };
  add('-', before, after);
  add('+', after, before);
  return text;
}

static std::map<ProgramKind, ProgramFacts> allPrograms(const PlanView &view) {
  std::map<ProgramKind, ProgramFacts> result;
  for (const Program &program : view.targets.front()->programs)
    result[program.kind] = programFacts(view, program);
  return result;
}

std::string planDiff(const PlanView &before, const PlanView &after) {
  std::string text = factsDiff("", planFacts(before), planFacts(after));
  std::map<ProgramKind, ProgramFacts> a = allPrograms(before), b = allPrograms(after);
  for (size_t kind = 0; kind < kNumProgramKinds; ++kind) {
    auto program = static_cast<ProgramKind>(kind);
    std::string prefix = std::string(programKindName(program)) + ": ";
    text += factsDiff(prefix, a[program].facts, b[program].facts) + kernelsDiff(prefix, a[program], b[program]);
  }
  return text;
}

} // namespace llmc
