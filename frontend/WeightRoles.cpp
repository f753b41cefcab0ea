// Recognition of weights that must not train. Place and values must both agree: a bias that happens to be zero is no
// mask, and a gain of ones with a bias of zeros is no rotary table.
#include "frontend/WeightRoles.h"

#include "frontend/WeightValues.h"

using namespace mlir;

namespace llmc {

/// Whether a value that comes from `start`, through ops that `passes` lets through, meets a use that `found`
/// recognises.
static bool meets(Value start, function_ref<bool(OpOperand &)> passes, function_ref<bool(OpOperand &)> found) {
  llvm::DenseSet<Value> seen{start};
  SmallVector<Value> open{start};
  while (!open.empty()) {
    for (OpOperand &use : open.pop_back_val().getUses()) {
      if (found(use))
        return true;
      if (!passes(use))
        continue;
      for (Value result : use.getOwner()->getResults())
        if (seen.insert(result).second)
          open.push_back(result);
    }
  }
  return false;
}

/// Ops that only move elements.
static bool movesElements(Operation *op) {
  return isa<ReshapeOp, TransposeOp, BroadcastToOp, SliceOp, PlaceOp, CastOp>(op);
}

/// Whether a softmax weighs values: what it gives is multiplied as a matrix, perhaps after dropout or after NaNs are
/// replaced.
static bool isAttentionSoftmax(SoftmaxOp softmax) {
  return meets(
      softmax.getResult(),
      [](OpOperand &use) { return movesElements(use.getOwner()) || isa<DropoutOp, SelectOp, MulOp>(use.getOwner()); },
      [](OpOperand &use) { return isa<MatMulOp>(use.getOwner()); });
}

static bool reachesScores(Value value) {
  return meets(
      value, [](OpOperand &use) { return movesElements(use.getOwner()) || isa<AddOp, SelectOp>(use.getOwner()); },
      [](OpOperand &use) {
        if (auto softmax = dyn_cast<SoftmaxOp>(use.getOwner()))
          return isAttentionSoftmax(softmax);
        auto attention = dyn_cast<AttentionOp>(use.getOwner());
        return attention && use.get() == attention.getMask();
      });
}

bool isMask(Weight weight, StringRef storedType) {
  if (cast<RankedTensorType>(weight.variable.getType()).getRank() < 2 || !reachesScores(weight.get.getResult()))
    return false;
  float lowest = storedType == "float16" ? -65504.0f : -1e30f;
  WeightValues values(weight.variable);
  bool isBinary = true;
  for (int64_t i = 0; i < values.size(); ++i) {
    if (values[i] <= lowest)
      return true;
    isBinary &= values[i] == 0 || values[i] == 1;
  }
  return isBinary;
}

bool isRotaryFrequency(Weight weight) {
  return weight.variable.getSymName().contains("inv_freq") ||
         meets(
             weight.get.getResult(),
             [](OpOperand &use) { return movesElements(use.getOwner()) || isa<MulOp, MatMulOp>(use.getOwner()); },
             [](OpOperand &use) { return isa<SinOp, CosOp>(use.getOwner()); });
}

static bool multiplies(Value value) {
  return meets(
      value,
      [](OpOperand &use) {
        return movesElements(use.getOwner()) || (isa<EmbeddingOp>(use.getOwner()) && use.getOperandNumber() == 0);
      },
      [](OpOperand &use) { return isa<MulOp>(use.getOwner()); });
}

/// Whether the values are cosines and sines of the same angles, and not all of the angle 0.
static bool areCosinesAndSines(const WeightValues &a, const WeightValues &b) {
  constexpr float kRounding = 0.02f; // of bf16, with room
  bool hasAngles = false;
  for (int64_t i = 0; i < a.size(); ++i) {
    if (!(std::fabs(a[i] * a[i] + b[i] * b[i] - 1) <= kRounding))
      return false;
    hasAngles |= std::fabs(a[i]) > 0.05f && std::fabs(b[i]) > 0.05f;
  }
  return hasAngles;
}

llvm::DenseSet<Operation *> rotaryTables(ArrayRef<Weight> weights) {
  SmallVector<Weight> multipliers;
  for (Weight weight : weights)
    if (cast<RankedTensorType>(weight.variable.getType()).getRank() >= 2 && multiplies(weight.get.getResult()))
      multipliers.push_back(weight);
  llvm::DenseSet<Operation *> tables;
  for (Weight a : multipliers)
    for (Weight b : multipliers)
      if (a.variable != b.variable && a.variable.getType() == b.variable.getType() &&
          areCosinesAndSines(WeightValues(a.variable), WeightValues(b.variable))) {
        tables.insert(a.variable);
        tables.insert(b.variable);
      }
  return tables;
}

} // namespace llmc
