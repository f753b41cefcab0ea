// The rule of who trains, on the imported graph. A gradient flows through an op that is differentiable, from a float
// result to float operands; what it reaches trains, unless its place and its values show that it is a mask or a rotary
// table.
#include "frontend/ParameterLedger.h"

#include "frontend/WeightRoles.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace llmc {

static bool isFloatTensor(Value value) { return isa<FloatType>(getElementTypeOrSelf(value.getType())); }

/// All values that the loss's gradient reaches.
static llvm::DenseSet<Value> gradientReach(Value loss) {
  llvm::DenseSet<Value> reached{loss};
  SmallVector<Value> open{loss};
  while (!open.empty()) {
    Operation *op = open.pop_back_val().getDefiningOp();
    if (!op || !isa<DifferentiableOpInterface>(op))
      continue;
    // Attention sends no gradient to its mask.
    auto attention = dyn_cast<AttentionOp>(op);
    for (Value operand : attention ? attention.getInputs() : op->getOperands())
      if (isFloatTensor(operand) && reached.insert(operand).second)
        open.push_back(operand);
  }
  return reached;
}

void decideTraining(ArrayRef<Weight> weights, Value loss, Ledger &ledger) {
  llvm::DenseSet<Value> reached = gradientReach(loss);
  SmallVector<Weight> candidates;
  for (Weight weight : weights) {
    LedgerEntry &entry = ledger.entries[weight.entry];
    if (!weight.get)
      entry.reason = "not used";
    else if (!reached.contains(weight.get.getResult()))
      entry.reason = "no gradient reaches it";
    else if (isMask(weight, entry.storedType))
      entry.reason = "mask";
    else if (isRotaryFrequency(weight))
      entry.reason = "rotary frequencies";
    else
      candidates.push_back(weight);
  }
  llvm::DenseSet<Operation *> tables = rotaryTables(candidates);
  for (Weight weight : candidates) {
    LedgerEntry &entry = ledger.entries[weight.entry];
    entry.trains = !tables.contains(weight.variable);
    if (!entry.trains)
      entry.reason = "rotary table";
  }
}

std::optional<std::string> decideDecay(const std::string &rule, Ledger &ledger) {
  llvm::Regex pattern(rule);
  std::string error;
  bool isPattern = rule != "matrices" && rule != "all";
  if (isPattern && !pattern.isValid(error))
    return "the decay rule '" + rule + "' is neither matrices, all nor a regular expression: " + error;
  for (LedgerEntry &entry : ledger.entries)
    entry.decays = entry.trains && (isPattern ? pattern.match(entry.name) : rule == "all" || entry.shape.size() >= 2);
  return std::nullopt;
}

static std::string shapeText(ArrayRef<int64_t> shape) {
  std::string text;
  for (int64_t size : shape)
    text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text;
}

/// The names of a list, the rest counted when there are many.
static std::string shortList(ArrayRef<std::string> names) {
  constexpr size_t kShown = 3;
  std::string text;
  for (const std::string &name : names.take_front(kShown))
    text += (text.empty() ? "" : ", ") + name;
  if (names.size() > kShown)
    text += ", and " + std::to_string(names.size() - kShown) + " more";
  return text;
}

void Ledger::print(raw_ostream &out) const {
  size_t numParameters = 0, width = 4;
  int64_t numElements = 0, numSingles = 0;
  for (const LedgerEntry &entry : entries) {
    width = std::max(width, std::min<size_t>(entry.name.size(), 48));
    numSingles += entry.reason == "one number";
    if (!entry.trains)
      continue;
    ++numParameters;
    int64_t count = 1;
    for (int64_t size : entry.shape)
      count *= size;
    numElements += count;
  }
  out << llvm::formatv("parameters: {0} tensors, {1} numbers\n", numParameters, numElements);
  auto line = [&](const LedgerEntry &entry, StringRef note) {
    std::string name;
    llvm::raw_string_ostream(name).write_escaped(entry.name);
    out << "  " << llvm::left_justify(name, width) << "  " << llvm::left_justify(shapeText(entry.shape), 16) << "  "
        << llvm::left_justify(note, 8) << "  ";
    std::string uses;
    llvm::raw_string_ostream(uses).write_escaped(shortList(entry.uses));
    out << uses << "\n";
  };
  for (const LedgerEntry &entry : entries)
    if (entry.trains)
      line(entry, entry.decays ? "decays" : "");
  if (llvm::any_of(entries, [](const LedgerEntry &e) { return !e.trains && e.reason != "one number"; }))
    out << "constants:\n";
  for (const LedgerEntry &entry : entries)
    if (!entry.trains && entry.reason != "one number")
      line(entry, entry.reason);
  if (numSingles > 0)
    out << "  and " << numSingles << " single numbers\n";
  for (const LedgerInput &input : inputs) {
    std::string name;
    llvm::raw_string_ostream(name).write_escaped(input.name);
    out << "input " << name << ": "
        << (input.role.empty()                 ? "no role: give it by --inputs"
            : input.role == "labels_unshifted" ? "labels, which the graph shifts itself"
                                               : input.role)
        << "\n";
  }
}

} // namespace llmc
