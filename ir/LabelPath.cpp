// Walks from the loss up to the input. The last axis must be the input's own where it is sliced or padded: one token
// less of a flattened batch is no token less of each row.
#include "ir/LabelPath.h"

using namespace mlir;

namespace llmc {

static ArrayRef<int64_t> shapeOf(Value value) { return cast<RankedTensorType>(value.getType()).getShape(); }

static bool isEvery(ArrayRef<int64_t> values, int64_t expected) {
  return llvm::all_of(values, [&](int64_t value) { return value == expected; });
}

/// Whether a slice takes all but the first element of each row.
static bool dropsFirst(SliceOp slice) {
  ArrayRef<int64_t> from = shapeOf(slice.getA()), to = slice.getSizes(), starts = slice.getStarts();
  return !from.empty() && isEvery(slice.getSteps(), 1) && isEvery(starts.drop_back(), 0) && starts.back() == 1 &&
         to.drop_back() == from.drop_back() && to.back() == from.back() - 1;
}

/// Whether a place puts one ignored label behind each row.
static bool appendsIgnored(PlaceOp place, int64_t ignoreIndex) {
  if (place.getParts().size() != 1)
    return false;
  ArrayRef<int64_t> from = shapeOf(place.getParts()[0]), to = shapeOf(place.getResult());
  return !from.empty() && isEvery(place.getSteps(), 1) && isEvery(place.getStarts(), 0) &&
         to.drop_back() == from.drop_back() && to.back() == from.back() + 1 &&
         place.getFill().convertToDouble() == double(ignoreIndex);
}

/// Whether a cast keeps every label there may be.
static bool keepsLabels(CastOp op) {
  auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(op.getResult().getType()));
  return type && type.getWidth() >= 32;
}

std::optional<LabelPath> labelPathOf(Value labels, int64_t ignoreIndex) {
  LabelPath path;
  bool isPadded = false;
  int64_t length = 0; // of the last axis, above the topmost shift or pad; 0 before any
  while (Operation *op = labels.getDefiningOp()) {
    auto slice = dyn_cast<SliceOp>(op);
    auto place = dyn_cast<PlaceOp>(op);
    bool isWhole = slice && slice.getA().getType() == slice.getResult().getType() && isEvery(slice.getSteps(), 1);
    bool isKept = isa<ReshapeOp>(op) || isWhole || (isa<CastOp>(op) && keepsLabels(cast<CastOp>(op)));
    if (!isKept) {
      bool isLastAxis = length == 0 || shapeOf(op->getResult(0)).back() == length;
      if (isLastAxis && slice && !path.isShifted && dropsFirst(slice))
        path.isShifted = true;
      else if (isLastAxis && place && !isPadded && appendsIgnored(place, ignoreIndex))
        isPadded = true;
      else
        return std::nullopt;
      length = shapeOf(op->getOperand(0)).back();
    }
    labels = op->getOperand(0);
  }
  path.input = cast<BlockArgument>(labels);
  bool isOwnAxis = length == 0 || (!shapeOf(labels).empty() && shapeOf(labels).back() == length);
  return isOwnAxis && path.isShifted >= isPadded ? std::optional(path) : std::nullopt;
}

} // namespace llmc
