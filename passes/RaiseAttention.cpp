// Finds attention spelled out in small ops: softmax over scores q k^T, scaled and masked, times v. The scores are read
// from the softmax down to the product, collecting numbers and masks; q, k and v are followed back to token-major
// tensors (AttentionViews.h), and the mask is read for what it means (AttentionMask.h).
#include "passes/AttentionScores.h"
#include "passes/AttentionViews.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_RAISEATTENTION
#include "passes/Passes.h.inc"

namespace {
/// Everything of one attention.
struct Attention {
  HeadSizes queries, keys; ///< of keys: tokens S, all heads (before sharing), and the head size
  HeadTensor q, k, v;
  double scale;
  MaskMeaning mask;
};
} // namespace

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

//===-- Queries, keys and values

/// Sizes of (batch, heads) that the leading dimensions may mean, best guess first.
static SmallVector<std::pair<int64_t, int64_t>> possibleSplits(MatMulOp qk, MatMulOp pv) {
  for (MatMulOp product : {qk, pv}) {
    ArrayRef<int64_t> leading = product.getType().getShape().drop_back(2);
    if (leading.empty())
      return {{1, 1}};
    if (leading.size() >= 2)
      return {{leading[0], ShapedType::getNumElements(leading.drop_front())}};
  }
  for (auto [value, isTransposed] :
       {std::pair(qk.getLhs(), qk.getTransposeLhs()), std::pair(qk.getRhs(), !qk.getTransposeRhs())})
    if (auto split = leadingSplit(value, isTransposed))
      return {*split};
  int64_t merged = qk.getType().getDimSize(0);
  return {{1, merged}, {merged, 1}};
}

/// q, k and v from their sources; false when keys and values do not fit together.
static bool traceInputs(const HeadTensor &q, const HeadTensor &k, const HeadTensor &v, Attention &attention) {
  attention.q = traceToSource(q, {/*throughScale=*/true, /*throughRepeat=*/false});
  for (bool throughRepeat : {true, false}) {
    attention.k = traceToSource(k, {/*throughScale=*/true, throughRepeat});
    attention.v = traceToSource(v, {/*throughScale=*/false, throughRepeat});
    if (attention.k.repeat == attention.v.repeat)
      return true;
  }
  return false;
}

/// The same from the products' operands, with the leading dimensions read as (batch, heads).
static bool traceOperands(MatMulOp qk, MatMulOp pv, std::pair<int64_t, int64_t> split, Attention &attention) {
  auto [batch, heads] = split;
  int64_t t = qk.getType().getShape()[qk.getType().getRank() - 2], s = qk.getType().getShape().back();
  int64_t d = qk.getLhs().getType().getNumElements() / (batch * heads * t);
  attention.queries = {batch, t, heads, d};
  attention.keys = {batch, s, heads, d};
  return traceInputs(headTensor(qk.getLhs(), attention.queries, qk.getTransposeLhs()),
                     headTensor(qk.getRhs(), attention.keys, !qk.getTransposeRhs()),
                     headTensor(pv.getRhs(), attention.keys, pv.getTransposeRhs()), attention);
}

static std::optional<Attention> matchAttention(MatMulOp pv, SoftmaxOp softmax, MaskReader &masks, std::string &why) {
  std::optional<Scores> scores = readScores(softmax.getA(), why);
  if (!scores)
    return std::nullopt;
  MatMulOp qk = scores->product;
  auto decline = [&](const Twine &reason) {
    why = reason.str();
    return std::nullopt;
  };
  if (pv.getBias() || pv.getInit())
    return decline("the product with the values adds something");
  if (pv.getType().getNumElements() == 0 || qk.getType().getNumElements() == 0 ||
      qk.getLhs().getType().getNumElements() == 0)
    return decline("it is empty");
  if (pv.getLhs().getType().getNumElements() != qk.getType().getNumElements() ||
      pv.getLhs().getType().getShape().take_back(2) != qk.getType().getShape().take_back(2))
    return decline("the probabilities have another shape than the scores");
  if (pv.getType().getNumElements() != qk.getLhs().getType().getNumElements())
    return decline("values and keys differ in head size");
  Attention attention;
  for (auto split : possibleSplits(qk, pv)) {
    if (!traceOperands(qk, pv, split, attention))
      return decline("keys and values are shared by different numbers of heads");
    if (isTokenMajor(attention.q))
      break;
  }
  attention.scale = scores->scale * attention.q.scale * attention.k.scale;
  attention.mask = masks.read(scores->masks, attention.queries.tokens, attention.keys.tokens);
  for (const MaskTerm &term : attention.mask.other) {
    if (VariableOp variable = trainedBy(term))
      return decline("the mask trains: it depends on " + variable.getSymName());
    if (!maskShape(term, attention.queries.batch, attention.queries.heads))
      return decline("the mask repeats along a part of the heads");
  }
  return attention;
}

/// The tensor that q, k and v are neighbouring column ranges of, covering it; null when they are not.
static Value packedSource(const Attention &attention) {
  int64_t heads = attention.queries.heads, kvHeads = heads / attention.k.repeat, start = 0;
  Value packed;
  for (const HeadTensor *tensor : {&attention.q, &attention.k, &attention.v}) {
    auto slice = tensor->value.getDefiningOp<SliceOp>();
    if (!slice || !isTokenMajor(*tensor) || (packed && slice.getA() != packed))
      return {};
    packed = slice.getA();
    int64_t last = slice.getType().getRank() - 1,
            width = (tensor == &attention.q ? heads : kvHeads) * attention.queries.columns;
    bool isColumnRange = slice.getStarts()[last] == start && slice.getSizes()[last] == width &&
                         slice.getSteps()[last] == 1 &&
                         slice.getSizes().drop_back() == slice.getA().getType().getShape().drop_back() &&
                         llvm::all_of(slice.getSteps(), [](int64_t step) { return step == 1; });
    if (!isColumnRange)
      return {};
    start += width;
  }
  return start == typeOf(packed).getShape().back() ? packed : Value();
}

/// Attention that the model has as one op, looked at in the same way: its inputs may be slices or repeated heads, its
/// mask may mean something. Nothing when there is no more to it than it says.
static std::optional<Attention> rereadAttention(AttentionOp op, MaskReader &masks) {
  if (op.getInputs().size() != 3 || op.getOut().getType().getNumElements() == 0)
    return std::nullopt;
  Value q = op.getInputs()[0], k = op.getInputs()[1], v = op.getInputs()[2];
  int64_t heads = op.getHeads(), repeat = heads / int64_t(op.getKvHeads());
  Attention attention;
  attention.queries = {typeOf(q).getDimSize(0), typeOf(q).getDimSize(1), heads, typeOf(q).getDimSize(2) / heads};
  attention.keys = {typeOf(k).getDimSize(0), typeOf(k).getDimSize(1), heads, attention.queries.columns};
  if (!traceInputs(tokenMajorTensor(q, attention.queries, 1), tokenMajorTensor(k, attention.keys, repeat),
                   tokenMajorTensor(v, attention.keys, repeat), attention))
    return std::nullopt;
  attention.scale = op.getScale().convertToDouble() * attention.q.scale * attention.k.scale;
  if (op.getMask())
    attention.mask = masks.read(MaskTerm{MaskTerm::Form::additive, op.getMask(), 4}, attention.queries.tokens,
                                attention.keys.tokens);
  bool isMaskRead = op.getMask() && attention.mask.other.empty();
  attention.mask.isCausal |= op.getCausal();
  if (int64_t window = op.getWindow(); window != 0)
    attention.mask.window = attention.mask.window == 0 ? window : std::min(attention.mask.window, window);
  bool isNew = isMaskRead || attention.k.repeat != repeat || packedSource(attention) || attention.q.scale != 1 ||
               attention.k.scale != 1;
  return isNew ? std::optional(attention) : std::nullopt;
}

//===-- Building

static AttentionOp build(OpBuilder &builder, Location loc, const Attention &attention) {
  auto [batch, tokens, heads, columns] = attention.queries;
  ExprScope scope{builder, loc};
  SmallVector<Value> inputs;
  if (Value packed = packedSource(attention))
    inputs.push_back(reshape(scope(packed), {batch, tokens, typeOf(packed).getShape().back()}));
  else
    for (const HeadTensor *tensor : {&attention.q, &attention.k, &attention.v})
      inputs.push_back(buildTokenMajor(builder, loc, *tensor));
  Type element = typeOf(inputs[0]).getElementType();
  Value mask = attention.mask.other.empty() ? Value() : buildMask(builder, loc, attention.mask.other, batch, heads);
  return builder.create<AttentionOp>(loc, RankedTensorType::get({batch, tokens, heads * columns}, element),
                                     RankedTensorType::get({batch, heads, tokens}, builder.getF32Type()), inputs, mask,
                                     heads, heads / attention.k.repeat, attention.mask.isCausal, attention.mask.window,
                                     APFloat(attention.scale));
}

static void emitRaised(AttentionOp op, const Attention &attention) {
  std::string text =
      "raised attention: " + std::to_string(op.getHeads()) + " heads of " + std::to_string(attention.queries.columns);
  if (op.getKvHeads() != op.getHeads())
    text += ", " + std::to_string(op.getKvHeads()) + " key heads";
  text += op.getCausal() ? ", causal" : "";
  text += op.getWindow() ? ", window " + std::to_string(op.getWindow()) : "";
  text += op.getMask() ? ", with a mask" : "";
  text += op.getInputs().size() == 1 ? ", packed" : "";
  remarkOn(op) << text;
}

/// (batch, tokens, heads * columns) in the type of the product that attention replaces, (…, tokens, columns). The
/// transpose has the rank that the one after the product has, so that the two cancel.
static Expr headMajor(Expr out, const HeadSizes &sizes, RankedTensorType type) {
  auto [batch, tokens, heads, columns] = sizes;
  if (type.getRank() == 3 && batch == 1)
    out = transpose(reshape(out, {tokens, heads, columns}), {1, 0, 2});
  else if (type.getRank() > 3 || heads != 1)
    out = transpose(reshape(out, {batch, tokens, heads, columns}), {0, 2, 1, 3});
  return reshape(out, type.getShape());
}

namespace {
struct RaiseAttention : impl::RaiseAttentionBase<RaiseAttention> {
  void runOnOperation() override {
    for (auto program : getOperation().getOps<ProgramOp>())
      runOnProgram(program);
  }

  void runOnProgram(ProgramOp program) {
    MaskReader masks;
    DenseSet<Operation *> considered;
    Block &body = program.getBody().front();
    for (MatMulOp pv : llvm::make_early_inc_range(body.getOps<MatMulOp>())) {
      bool hasDropout = false;
      SoftmaxOp softmax = softmaxOf(pv.getLhs(), hasDropout);
      if (!softmax || pv.getTransposeLhs())
        continue;
      considered.insert(softmax);
      tryRaise(pv, softmax, hasDropout, masks);
    }
    for (AttentionOp op : llvm::make_early_inc_range(body.getOps<AttentionOp>()))
      if (std::optional<Attention> attention = rereadAttention(op, masks))
        op.replaceAllUsesWith(raise(op, *attention));
    for (SoftmaxOp softmax : body.getOps<SoftmaxOp>())
      if (!considered.contains(softmax))
        remarkOn(softmax) << "declined: no attention, the probabilities multiply no values";
    eraseDeadOps(program);
  }

  static AttentionOp raise(Operation *root, const Attention &attention) {
    OpBuilder builder(root);
    AttentionOp raised = build(builder, root->getLoc(), attention);
    emitRaised(raised, attention);
    return raised;
  }

  static void tryRaise(MatMulOp pv, SoftmaxOp softmax, bool hasDropout, MaskReader &masks) {
    std::string why = "attention dropout";
    std::optional<Attention> attention = hasDropout ? std::nullopt : matchAttention(pv, softmax, masks, why);
    if (!attention) {
      remarkOn(pv) << "declined: no attention, " << why;
      return;
    }
    AttentionOp raised = raise(pv, *attention);
    OpBuilder builder(pv);
    Expr out = ExprScope{builder, pv.getLoc()}(raised.getOut());
    pv.getResult().replaceAllUsesWith(headMajor(out, attention->queries, pv.getType()));
  }
};
} // namespace

} // namespace llmc
