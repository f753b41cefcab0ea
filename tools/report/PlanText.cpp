// Tables of fixed columns; the widest text stands last, so that nothing wraps into a number.
#include "tools/report/PlanText.h"

#include "tools/report/Collectives.h"
#include "tools/report/KernelCost.h"
#include "tools/report/ProgramMemory.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace llmc {

/// Shown of long lists.
static constexpr size_t kNumLaunches = 20, kNumFusions = 12, kNumMessages = 8;

static double mib(uint64_t bytes) { return double(bytes) / (1 << 20); }

std::string countText(double value) {
  for (const char *unit : {"", " k", " M", " G"}) {
    if (value < 1000)
      return fmt::format("{:.4g}{}", value, unit);
    value /= 1000;
  }
  return fmt::format("{:.4g} T", value);
}

//===-- Memory

std::string memoryTable(const Plan &plan, const TargetPrograms &target) {
  std::string text = fmt::format("{:<24}{:>9}{:>11}{:>10}{:>13}{:>11}{:>11}{:>9}{:>10}{:>10}{:>9}\n",
                                 "memory at the peak, MiB", "weights", "optimizer", "in/out", "activations",
                                 "gradients", "workspace", "sum", "arena", "at least", "above");
  for (const Program &program : target.programs) {
    ProgramMemory memory = programMemory(plan, program);
    uint64_t bound = program.arenaLowerBoundBytes;
    text += fmt::format("  {:<22}{:>9.1f}{:>11.1f}{:>10.1f}{:>13.1f}{:>11.1f}{:>11.1f}{:>9.1f}{:>10.1f}{:>10.1f}",
                        programKindName(program.kind), mib(memory.peak[0]), mib(memory.peak[1]), mib(memory.peak[2]),
                        mib(memory.peak[3]), mib(memory.peak[4]), mib(memory.peak[5]), mib(sum(memory.peak)),
                        mib(program.arenaBytes), mib(bound));
    text += fmt::format("{:>8.2f}%", bound ? 100 * (double(program.arenaBytes) / double(bound) - 1) : 0);
    if (uint64_t padding = memory.paddedLowerBoundBytes - memory.lowerBoundBytes; padding * 100 > bound)
      text += fmt::format(", of it {:.2f}% padding", 100 * double(padding) / double(bound));
    text += "\n";
  }
  return text;
}

//===-- Kernels

namespace {

/// What a table's row adds up.
struct Cost {
  size_t numLaunches = 0;
  double flops = 0, bytes = 0, boundMs = 0, measuredMs = 0;
};

class KernelTables {
public:
  KernelTables(const PlanView &view, const Program &program)
      : view(view), program(program), isMeasured(totalMs(view.times, program.kind) > 0) {
    for (size_t i = 0; i < program.launches.size(); ++i) {
      add(total, i);
      add(kinds[kernelInfo(program.launches[i].kind).name], i);
      if (program.launches[i].kind == KernelKind::Generated)
        add(fusions[kernelText(*view.targets.front(), program.launches[i])], i);
    }
  }

  std::string summary() const {
    std::string text =
        fmt::format("{} on {}: {} launches, {}FLOP, {}B; at least {:.2f} ms on {}", programKindName(program.kind),
                    view.targets.front()->isa, total.numLaunches, countText(total.flops), countText(total.bytes),
                    total.boundMs, view.device.isMeasured ? "this machine" : view.device.name);
    if (std::optional<double> expected = expectedMs(program, view.device))
      text += fmt::format(", expected {:.2f} ms{}", *expected, tokensText(*expected));
    if (isMeasured)
      text +=
          fmt::format(", measured {:.2f} ms: {:.0f}% of it", total.measuredMs, 100 * total.boundMs / total.measuredMs);
    return text + "\n";
  }

  std::string byKind() const { return costTable("kernels by kind", kinds, kinds.size()); }
  std::string byFusion(bool isWhole) const {
    return costTable("fusions", fusions, isWhole ? fusions.size() : kNumFusions);
  }

  std::string launches(bool isWhole) const {
    std::vector<size_t> order(program.launches.size());
    std::iota(order.begin(), order.end(), size_t{0});
    if (!isWhole) {
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return ms(a) > ms(b); });
      order.resize(std::min(order.size(), kNumLaunches));
    }
    std::string text = fmt::format("{} launches\n", isWhole ? "all" : "costliest");
    for (size_t i : order)
      text += launchLine(i);
    return text;
  }

private:
  /// ": 670 k tokens/s" where the program takes the whole batch through a step.
  std::string tokensText(double ms) const {
    bool isStep = program.kind == ProgramKind::stepFused || program.kind == ProgramKind::step;
    double tokens = double(view.plan->batch * view.plan->sequence);
    return isStep && ms > 0 ? fmt::format(": {} tokens/s", countText(tokens / ms * 1000)) : "";
  }

  double ms(size_t i) const {
    const LaunchTime *time = timeOf(view, program.kind, i);
    return time ? time->meanMs : roofline(program.launches[i], view.plan->precision, view.device).ms;
  }

  void add(Cost &cost, size_t i) const {
    const Launch &launch = program.launches[i];
    const LaunchTime *time = timeOf(view, program.kind, i);
    ++cost.numLaunches;
    cost.flops += launch.flops;
    cost.bytes += launch.bytes;
    cost.boundMs += roofline(launch, view.plan->precision, view.device).ms;
    cost.measuredMs += time ? time->meanMs : 0;
  }

  /// "30.1%  12.345 ms  9.876 at least": share, measured time where there is one, bound.
  std::string timeText(double boundMs, double measuredMs) const {
    double share = isMeasured ? measuredMs / total.measuredMs : boundMs / std::max(total.boundMs, 1e-12);
    std::string text = fmt::format("{:>6.1f}%", 100 * share);
    if (isMeasured)
      text += fmt::format("{:>11.3f}{:>6.0f}%", measuredMs, 100 * boundMs / std::max(measuredMs, 1e-12));
    return text + fmt::format("{:>11.3f}", boundMs);
  }

  std::string heading(const std::string &first) const {
    return fmt::format("{:>7}{}{:>11}{:>9}{:>10}{:>9}  {}\n", "share", isMeasured ? "         ms of it" : "",
                       "least ms", "FLOP", "B", "FLOP/B", first);
  }

  std::string costTable(const std::string &title, const std::map<std::string, Cost> &costs, size_t most) const {
    std::vector<std::pair<std::string, Cost>> sorted(costs.begin(), costs.end());
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto &a, const auto &b) {
      return isMeasured ? a.second.measuredMs > b.second.measuredMs : a.second.boundMs > b.second.boundMs;
    });
    std::string text = heading(title);
    for (size_t i = 0; i < std::min(most, sorted.size()); ++i) {
      const auto &[name, cost] = sorted[i];
      text += fmt::format("{}{:>9}{:>10}{:>9.1f}  {} x {}\n", timeText(cost.boundMs, cost.measuredMs),
                          countText(cost.flops), countText(cost.bytes), cost.flops / std::max(cost.bytes, 1.0),
                          cost.numLaunches, name);
    }
    if (sorted.size() > most)
      text += fmt::format("  ... {} more; --all shows them\n", sorted.size() - most);
    return text;
  }

  std::string launchLine(size_t i) const {
    const Launch &launch = program.launches[i];
    const LaunchTime *time = timeOf(view, program.kind, i);
    Roofline bound = roofline(launch, view.plan->precision, view.device);
    std::string types = typesText(launch);
    return fmt::format(
        "{} {:<7} {:>4} {} {} [{}]{} {}\n", timeText(bound.ms, time ? time->meanMs : 0),
        bound.isByMemory ? "memory" : "compute", i, kernelInfo(launch.kind).name, types, shapeText(launch),
        launch.kind == KernelKind::Generated ? " " + kernelText(*view.targets.front(), launch) + " at" : "",
        launch.name);
  }

  const PlanView &view;
  const Program &program;
  bool isMeasured;
  Cost total;
  std::map<std::string, Cost> kinds, fusions;
};

} // namespace

static std::string headText(const std::string &name, const PlanView &view) {
  const Plan &plan = *view.plan;
  std::string text =
      fmt::format("{}: {} in {} with {}, {} x {} tokens of {}, by {}, hash {:016x}\n", name, plan.modelName,
                  plan.precision, plan.optimizer, plan.batch, plan.sequence, plan.vocabulary, plan.producer, view.hash);
  uint64_t fileBytes = 0;
  std::string sections;
  for (const SectionBytes &section : view.sections) {
    fileBytes += section.bytes;
    sections += fmt::format("{}{} {:.2f}", sections.empty() ? "" : ", ", section.name, mib(section.bytes));
  }
  text += fmt::format("file: {:.2f} MiB: {}\n", mib(fileBytes), sections);
  for (const TargetPrograms *target : view.targets)
    text += fmt::format("code: {} {}: {:.1f} KiB in {} generated kernels\n", target->target, target->isa,
                        double(target->codeBytes) / 1024, target->entries.size());
  return text + fmt::format("device: {}: f32 {:.0f}, bf16 {:.0f} GFLOP/s, memory {:.0f} GB/s\n\n",
                            view.device.description, view.device.f32Gflops, view.device.bf16Gflops,
                            view.device.memoryGbs);
}

std::string planText(const std::string &name, const PlanView &view, const Program &program, bool isWhole) {
  KernelTables tables(view, program);
  std::string collectives = collectiveTable(*view.targets.front(), isWhole ? SIZE_MAX : kNumMessages);
  return headText(name, view) + memoryTable(*view.plan, *view.targets.front()) + "\n" + collectives +
         (collectives.empty() ? "" : "\n") + tables.summary() + tables.byKind() + "\n" + tables.byFusion(isWhole) +
         "\n" + tables.launches(isWhole);
}

} // namespace llmc
