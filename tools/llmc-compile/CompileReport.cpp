// Numbers come from the plan: what is printed is what will run.
#include "tools/llmc-compile/CompileReport.h"

#include "runtime/Say.h"
#include "tools/report/PlanText.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>
#include <sstream>

using namespace mlir;

namespace llmc {

/// A longer ledger shows its first and last lines.
static constexpr size_t kMaxLedgerLines = 24, kFirstLedgerLines = 12, kLastLedgerLines = 8;
/// Passes faster than this are not worth a word.
static constexpr double kShortSeconds = 0.0005;

static double mib(uint64_t bytes) { return double(bytes) / (1 << 20); }

void printLedger(const Ledger &ledger, bool isWhole) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  ledger.print(stream);
  std::vector<std::string> lines;
  std::istringstream input(text);
  for (std::string line; std::getline(input, line);)
    lines.push_back(line);
  for (size_t i = 0; i < lines.size(); ++i) {
    if (!isWhole && lines.size() > kMaxLedgerLines && i == kFirstLedgerLines) {
      size_t last = lines.size() - kLastLedgerLines;
      say("  ... {} more; --verbose shows all\n", last - i);
      i = last;
    }
    say("{}\n", lines[i]);
  }
}

void printWarnings(const std::vector<std::string> &warnings) {
  for (const std::string &warning : warnings)
    say(stderr, "warning: {}\n", warning);
}

void printRemarks(const std::vector<Remark> &remarks) {
  for (const Remark &remark : remarks)
    say("{} {}{}{}: {}\n", remark.pass, remark.kind, remark.program.empty() ? "" : " in " + remark.program,
        remark.node.empty() ? "" : " at " + remark.node, remark.message);
}

//===-- Kernels

/// "elementwise", or over what a fusion reduces.
static std::string fusionKind(FusionOp fusion) {
  bool isRow = false, isColumn = false;
  for (Operation &op : fusion.getBody().front().without_terminator())
    if (auto axes = op.getAttrOfType<DenseI64ArrayAttr>("axes")) {
      bool overLanes = llvm::is_contained(axes.asArrayRef(), int64_t(fusion.getSpace().size()) - 1);
      (overLanes ? isRow : isColumn) = true;
    }
  return isRow && isColumn ? "row and column" : isRow ? "row" : isColumn ? "column" : "elementwise";
}

static const Program *findProgram(const Plan &plan, ProgramKind kind) {
  for (const Program &program : plan.targets.front().programs)
    if (program.kind == kind)
      return &program;
  return nullptr;
}

/// "a 3, b 2": counts, the largest first.
static std::string countsText(const std::map<std::string, size_t> &counts) {
  std::vector<std::pair<std::string, size_t>> sorted(counts.begin(), counts.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  std::string text;
  for (const auto &[name, count] : sorted)
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, name);
  return text;
}

void printKernels(ModuleOp module, const Plan &plan, const std::vector<Remark> &remarks) {
  std::map<std::string, size_t> fusions, launches;
  size_t numOps = 0, numFusions = 0;
  for (auto program : module.getOps<ProgramOp>())
    if (program.getKind() == programKindName(ProgramKind::stepFused))
      for (auto fusion : program.getBody().front().getOps<FusionOp>()) {
        ++fusions[fusionKind(fusion)];
        ++numFusions;
        numOps += fusion.getBody().front().getOperations().size() - 1;
      }
  const Program *step = findProgram(plan, ProgramKind::stepFused);
  for (const Launch &launch : step ? step->launches : std::vector<Launch>())
    ++launches[kernelInfo(launch.kind).name];
  say("a step: {} launches: {}\n", step ? step->launches.size() : 0, countsText(launches));
  say("fusions: {} of {} ops: {}\n", numFusions, numOps, countsText(fusions));
  size_t numDeclined =
      std::count_if(remarks.begin(), remarks.end(), [](const Remark &remark) { return remark.kind == "declined"; });
  say("remarks: {} applied, {} declined; --remarks FILE has them\n", remarks.size() - numDeclined, numDeclined);
  say("code: ");
  for (const TargetPrograms &target : plan.targets)
    say("{}{} {:.0f} KiB in {} kernels", &target == &plan.targets.front() ? "" : ", ", target.isa,
        double(target.codeBytes) / 1024, target.entries.size());
  say("\nFLOPs a token: {:.4g}\n", plan.flopsPerToken);
}

//===-- Memory

void printMemory(const Plan &plan) {
  say("state: {:.1f} MiB; kept gradients {:.1f} MiB when accumulating\n{}", mib(plan.stateBytes),
      mib(plan.gradientBytes), memoryTable(plan, plan.targets.front()));
}

void addCompilation(PageExtras &extras, const Ledger &ledger, const PassRecord &record,
                    const std::vector<Remark> &remarks) {
  for (const LedgerEntry &entry : ledger.entries) {
    std::string role = !entry.trains ? "constant: " + entry.reason : entry.decays ? "trains, decays" : "trains";
    extras.ledger.push_back({entry.name, entry.storedType, fmt::format("{}", fmt::join(entry.shape, " x ")), role,
                             fmt::format("{}", fmt::join(entry.uses, ", "))});
  }
  for (auto [pass, seconds] : record.seconds)
    extras.passSeconds.push_back({pass.str(), seconds});
  for (const Remark &remark : remarks)
    extras.remarks.push_back({remark.pass, remark.program, remark.kind, remark.node, remark.message});
}

void printTimes(const PassRecord &record) {
  std::vector<std::pair<StringRef, double>> sorted(record.seconds.begin(), record.seconds.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto &a, const auto &b) { return a.second > b.second; });
  double total = 0;
  std::string text;
  for (auto [pass, seconds] : sorted) {
    total += seconds;
    if (seconds > kShortSeconds)
      text += fmt::format("{}{} {:.3f}", text.empty() ? "" : ", ", pass.str(), seconds);
  }
  say("{:.2f} s: {}\n", total, text);
}

} // namespace llmc
