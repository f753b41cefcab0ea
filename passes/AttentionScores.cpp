// Numbers and masks between a softmax and the product it is of.
#include "passes/AttentionScores.h"

using namespace mlir;

namespace llmc {

/// Whether a reshape only splits or joins leading dimensions.
static bool keepsMatrices(ReshapeOp reshape) {
  ArrayRef<int64_t> from = reshape.getA().getType().getShape(), to = reshape.getType().getShape();
  return from.size() >= 2 && to.size() >= 2 && from.take_back(2) == to.take_back(2);
}

static int64_t rankOf(Value value) { return cast<RankedTensorType>(value.getType()).getRank(); }

//===-- Probabilities

/// x when `value` is x with NaN replaced by zero: what exporters wrap around a softmax whose rows may see no key.
static Value withoutNanGuard(SelectOp select) {
  bool isInverted = bool(select.getCondition().getDefiningOp<NotOp>());
  auto isNan = (isInverted ? select.getCondition().getDefiningOp<NotOp>().getA() : select.getCondition())
                   .getDefiningOp<IsNanOp>();
  Value x = skipCasts(isInverted ? select.getA() : select.getB());
  Value zero = isInverted ? select.getB() : select.getA();
  return isNan && skipCasts(isNan.getA()) == x && knownNumber(zero) == 0.0 ? x : Value();
}

SoftmaxOp softmaxOf(Value value, bool &hasDropout) {
  for (;;) {
    value = skipCasts(value);
    Operation *op = value.getDefiningOp();
    if (auto softmax = dyn_cast_if_present<SoftmaxOp>(op))
      return softmax;
    if (auto select = dyn_cast_if_present<SelectOp>(op); select && withoutNanGuard(select)) {
      value = withoutNanGuard(select);
    } else if (auto reshape = dyn_cast_if_present<ReshapeOp>(op); reshape && keepsMatrices(reshape)) {
      value = reshape.getA();
    } else if (auto dropout = dyn_cast_if_present<DropoutOp>(op)) {
      hasDropout |= dropout.getRate().convertToDouble() > 0;
      value = dropout.getA();
    } else {
      return {};
    }
  }
}

//===-- Scores

/// The operand of a step from the softmax to the product that continues the way: the one of the result's type that a
/// product is behind.
static bool leadsToProduct(Value value, Type type, unsigned depth = 8) {
  value = skipCasts(value);
  Operation *op = value.getDefiningOp();
  if (depth == 0 || value.getType() != type || !op)
    return false;
  if (isa<MatMulOp>(op))
    return true;
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return keepsMatrices(reshape) && leadsToProduct(reshape.getA(), reshape.getA().getType(), depth - 1);
  if (isa<MulOp, DivOp, AddOp, SubOp, SelectOp>(op))
    return llvm::any_of(op->getOperands(), [&](Value operand) { return leadsToProduct(operand, type, depth - 1); });
  return false;
}

/// Multiplication by a number: the operand that is multiplied.
static Value stepScale(Operation *op, double &scale) {
  for (unsigned i : {0u, 1u}) {
    std::optional<double> number = knownNumber(op->getOperand(1 - i));
    if (!number || op->getOperand(i).getType() != op->getResult(0).getType() || (isa<DivOp>(op) && i == 1))
      continue;
    scale *= isa<DivOp>(op) ? 1 / *number : *number;
    return op->getOperand(i);
  }
  return {};
}

/// An added or subtracted mask: the operand that it is added to.
static Value stepAdditiveMask(Operation *op, Scores &scores) {
  Type type = op->getResult(0).getType();
  bool isFirst = leadsToProduct(op->getOperand(0), type),
       isSecond = isa<AddOp>(op) && leadsToProduct(op->getOperand(1), type);
  if (isFirst == isSecond)
    return {};
  double sign = isa<SubOp>(op) ? -1 : 1;
  scores.masks.push_back(
      {MaskTerm::Form::additive, op->getOperand(isFirst ? 1 : 0), rankOf(op->getResult(0)), 0, sign * scores.scale});
  return op->getOperand(isFirst ? 0 : 1);
}

/// A selected mask: the operand that is selected where it is visible.
static Value stepSelectedMask(SelectOp select, Scores &scores) {
  for (bool isVisible : {true, false}) {
    Value visible = isVisible ? select.getA() : select.getB();
    std::optional<double> fill = knownNumber(isVisible ? select.getB() : select.getA());
    if (!fill || !(*fill * scores.scale <= kHidden) || !leadsToProduct(visible, select.getType()))
      continue;
    scores.masks.push_back({isVisible ? MaskTerm::Form::visibleWhere : MaskTerm::Form::hiddenWhere,
                            select.getCondition(), select.getType().getRank(), *fill, scores.scale});
    return visible;
  }
  return {};
}

std::optional<Scores> readScores(Value value, std::string &why) {
  Scores scores;
  if (!leadsToProduct(value, value.getType())) {
    why = "the softmax is not of a product";
    return std::nullopt;
  }
  for (;;) {
    value = skipCasts(value);
    Operation *op = value.getDefiningOp();
    Value next;
    if (auto product = dyn_cast<MatMulOp>(op)) {
      scores.product = product;
      if (!product.getBias() && !product.getInit())
        return scores;
    } else if (auto reshape = dyn_cast<ReshapeOp>(op)) {
      next = reshape.getA();
    } else if (isa<MulOp, DivOp>(op)) {
      next = stepScale(op, scores.scale);
    } else if (isa<AddOp, SubOp>(op)) {
      next = stepAdditiveMask(op, scores);
    } else if (auto select = dyn_cast<SelectOp>(op)) {
      next = stepSelectedMask(select, scores);
    }
    if (!next || !leadsToProduct(next, next.getType())) {
      why =
          ("between product and softmax is a " + op->getName().stripDialect() + " that neither scales nor masks").str();
      return std::nullopt;
    }
    value = next;
  }
}

} // namespace llmc
