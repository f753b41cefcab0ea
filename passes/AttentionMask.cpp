// Reading masks: a known one is compared, element by element, with what causal attention and a sliding window see.
#include "passes/AttentionMask.h"

using namespace mlir;

namespace llmc {

/// Which elements of a known term are visible, in the term's own shape. Nothing when a finite number other than zero is
/// added.
static std::optional<std::vector<bool>> visibleElements(const MaskTerm &term, const HostTensor &tensor) {
  std::vector<bool> visible(tensor.size());
  for (int64_t i = 0; i < tensor.size(); ++i) {
    double number = tensor.asDouble(i);
    if (term.form == MaskTerm::Form::additive && number != 0 && !(number * term.factor <= kHidden))
      return std::nullopt;
    visible[i] = term.form == MaskTerm::Form::visibleWhere ? number != 0 : number == 0;
  }
  return visible;
}

/// Whether query t sees key s; the last query is the last key's.
static bool sees(const MaskPattern &pattern, int64_t offset, int64_t t, int64_t s) {
  return !pattern.isCausal || (s <= t + offset && (pattern.window == 0 || s > t + offset - pattern.window));
}

/// The pattern that all planes of a known term have; nothing when they have none or different ones.
static std::optional<MaskPattern> findPattern(const std::vector<bool> &visible, ArrayRef<int64_t> shape,
                                              int64_t queries, int64_t keys) {
  if (llvm::all_of(visible, [](bool v) { return v; }))
    return MaskPattern{false, 0};
  int64_t rank = shape.size();
  if (rank < 2 || shape[rank - 2] != queries || shape[rank - 1] != keys)
    return std::nullopt;
  // The last query sees its whole window, or every key.
  auto lastRow = visible.begin() + (queries - 1) * keys;
  int64_t window = std::count(lastRow, lastRow + keys, true);
  MaskPattern pattern{true, window == keys ? 0 : window};
  if (window == 0)
    return std::nullopt;
  for (size_t i = 0; i < visible.size(); ++i)
    if (visible[i] != sees(pattern, keys - queries, int64_t(i) / keys % queries, int64_t(i) % keys))
      return std::nullopt;
  return pattern;
}

std::optional<MaskPattern> MaskReader::patternOf(const MaskTerm &term, int64_t queries, int64_t keys) {
  auto [entry, isNew] =
      patterns.try_emplace(Key{term.value.getAsOpaquePointer(), term.form, term.factor, queries, keys});
  if (const HostTensor *tensor = isNew ? tensors.of(term.value) : nullptr)
    if (std::optional<std::vector<bool>> visible = visibleElements(term, *tensor))
      entry->second = findPattern(*visible, tensor->type.getShape(), queries, keys);
  return entry->second;
}

MaskMeaning MaskReader::read(ArrayRef<MaskTerm> terms, int64_t queries, int64_t keys) {
  MaskMeaning meaning;
  for (const MaskTerm &term : terms) {
    std::optional<MaskPattern> pattern = patternOf(term, queries, keys);
    if (!pattern) {
      meaning.other.push_back(term);
      continue;
    }
    meaning.isCausal |= pattern->isCausal;
    if (pattern->window != 0)
      meaning.window = meaning.window == 0 ? pattern->window : std::min(meaning.window, pattern->window);
  }
  return meaning;
}

VariableOp trainedBy(const MaskTerm &term) {
  if (term.form != MaskTerm::Form::additive)
    return {};
  SmallVector<Value> pending = {term.value};
  DenseSet<Value> seen;
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (!seen.insert(value).second || !isa<FloatType>(getElementTypeOrSelf(value.getType())))
      continue;
    if (VariableOp variable = variableOf(value); variable && variable.getKind() == "parameter")
      return variable;
    if (Operation *op = value.getDefiningOp())
      llvm::append_range(pending, op->getOperands());
  }
  return {};
}

std::optional<SmallVector<int64_t, 4>> maskShape(const MaskTerm &term, int64_t batch, int64_t heads) {
  SmallVector<int64_t> shape(mlir::cast<RankedTensorType>(term.value.getType()).getShape());
  shape.insert(shape.begin(), std::max<int64_t>(term.rank, 2) - shape.size(), 1);
  ArrayRef<int64_t> leading = ArrayRef(shape).drop_back(2);
  int64_t count = 1;
  for (int64_t size : leading)
    count *= size;
  SmallVector<int64_t, 4> result = {1, 1, shape[shape.size() - 2], shape.back()};
  if (count == 1)
    return result;
  bool isMerged = leading.size() == 1;
  result[0] = isMerged ? batch : leading[0];
  result[1] = isMerged ? heads : count / leading[0];
  if (result[0] * result[1] != count || (result[1] != 1 && result[1] != heads))
    return std::nullopt;
  return result;
}

Value buildMask(OpBuilder &builder, Location loc, ArrayRef<MaskTerm> terms, int64_t batch, int64_t heads) {
  ExprScope scope{builder, loc};
  Type f32 = builder.getF32Type();
  auto number = [&](double value) -> Expr {
    auto type = RankedTensorType::get({}, f32);
    auto attribute = DenseElementsAttr::get(type, FloatAttr::get(f32, value).getValue());
    return scope(builder.create<ConstantOp>(loc, type, attribute));
  };
  Expr sum = scope(Value());
  for (const MaskTerm &term : terms) {
    Expr value = reshape(scope(term.value), *maskShape(term, batch, heads));
    if (term.form == MaskTerm::Form::additive) {
      value = cast(value, f32);
      value = term.factor == 1 ? value : value * term.factor;
    } else {
      bool isVisible = term.form == MaskTerm::Form::visibleWhere;
      Expr zero = number(0), hidden = number(term.fill * term.factor);
      value = isVisible ? select(value, zero, hidden) : select(value, hidden, zero);
    }
    sum = sum.value ? sum + value : value;
  }
  return sum;
}

} // namespace llmc
