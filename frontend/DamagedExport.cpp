// Exporters that optimise for inference damage what must train. Two kinds are seen in the stored weights themselves;
// training them as they stand would silently be another model.
#include "frontend/OnnxError.h"
#include "frontend/ParameterLedger.h"
#include "frontend/WeightValues.h"

using namespace mlir;

namespace llmc {

/// Whether b (n, m) is a (m, n) transposed, bit for bit, and not one number throughout.
static bool isTransposed(VariableOp a, VariableOp b) {
  ArrayRef<int64_t> shape = cast<RankedTensorType>(a.getType()).getShape();
  int64_t rows = shape[0], columns = shape[1];
  WeightValues x(a), y(b);
  bool varies = false;
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) {
      if (x[i * columns + j] != y[j * rows + i])
        return false;
      varies |= x[i * columns + j] != x[0];
    }
  return varies;
}

static std::optional<std::string> findSplitTie(ArrayRef<Weight> matrices) {
  for (size_t i = 0; i < matrices.size(); ++i)
    for (size_t j = i + 1; j < matrices.size(); ++j) {
      VariableOp a = matrices[i].variable, b = matrices[j].variable;
      ArrayRef<int64_t> shapeA = cast<RankedTensorType>(a.getType()).getShape(),
                        shapeB = cast<RankedTensorType>(b.getType()).getShape();
      if (shapeA[0] == shapeB[1] && shapeA[1] == shapeB[0] && isTransposed(a, b))
        return "a tie was split: " + inQuotes(a.getSymName()) + " and " + inQuotes(b.getSymName()) +
               " are one matrix, stored twice, the second transposed; trained as they are they would drift apart";
    }
  return std::nullopt;
}

static std::optional<std::string> findMerged(Weight vector, const LedgerEntry &entry) {
  if (entry.uses.size() < 2)
    return std::nullopt;
  std::string uses;
  for (const std::string &use : ArrayRef(entry.uses).take_front(4))
    uses += (uses.empty() ? "" : ", ") + inQuotes(use);
  return "parameters of equal value were merged: " + inQuotes(vector.variable.getSymName()) + " is read by " +
         std::to_string(entry.uses.size()) + " nodes (" + uses + (entry.uses.size() > 4 ? ", ..." : "") +
         "); trained as it is they would stay one parameter";
}

std::optional<std::string> describeDamage(ArrayRef<Weight> weights, const Ledger &ledger) {
  SmallVector<Weight> matrices;
  for (Weight weight : weights) {
    const LedgerEntry &entry = ledger.entries[weight.entry];
    if (!entry.trains)
      continue;
    if (entry.shape.size() == 2)
      matrices.push_back(weight);
    if (entry.shape.size() != 1)
      continue;
    if (std::optional<std::string> merged = findMerged(weight, entry))
      return merged;
  }
  return findSplitTie(matrices);
}

} // namespace llmc
