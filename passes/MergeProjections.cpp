// Queries, keys and values are three contractions of one input. As one they read it once, and attention reads the
// result and writes its gradient side by side, so that the backward pass has one contraction for the weights and one
// for the input. Where the results are not read side by side their gradients would have to be copied together, which
// costs more than is won: such contractions are left alone.
#include "ir/Piece.h"
#include "passes/Match.h"
#include "passes/Passes.h"
#include "passes/Remark.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace llmc {
#define GEN_PASS_DEF_MERGEPROJECTIONS
#include "passes/Passes.h.inc"

namespace {
/// One input of an attention: product with a weight, plus a bias where there is one, on rows.
struct Projection {
  MatMulOp product;
  AddOp sum; ///< adds the bias; null where the product itself does or there is none
  VariableOp weight, bias;
};
} // namespace

static RankedTensorType typeOf(Value value) { return cast<RankedTensorType>(value.getType()); }

/// The trained variable that only `get` reads and only one op reads from there; null otherwise.
static VariableOp onlyReadBy(Value get, const llvm::StringMap<unsigned> &numGets) {
  VariableOp variable = variableOf(get);
  bool isOnly =
      variable && variable.getKind() == "parameter" && get.hasOneUse() && numGets.lookup(variable.getSymName()) == 1;
  return isOnly ? variable : VariableOp();
}

/// The projection that an attention's input (B, T, N) is; `why` says what it is not.
static std::optional<Projection> matchProjection(Value input, const llvm::StringMap<unsigned> &numGets,
                                                 std::string &why) {
  auto decline = [&](const Twine &reason) {
    why = reason.str();
    return std::nullopt;
  };
  Projection projection;
  Value bias;
  int64_t columns = typeOf(input).getShape().back();
  for (Value value = input; !projection.product;) {
    Operation *op = value.getDefiningOp();
    if (!value.hasOneUse() || typeOf(value).getShape().back() != columns)
      return decline("what a contraction gives is read elsewhere or in another shape");
    projection.product = dyn_cast_if_present<MatMulOp>(op);
    if (auto reshape = dyn_cast_if_present<ReshapeOp>(op)) {
      value = reshape.getA();
    } else if (auto add = dyn_cast_if_present<AddOp>(op); add && !projection.sum) {
      projection.sum = add;
      bool isVectorFirst = typeOf(add.getA()).getRank() == 1;
      bias = isVectorFirst ? add.getA() : add.getB();
      value = isVectorFirst ? add.getB() : add.getA();
    } else if (!projection.product) {
      return decline("not every input is a contraction with a bias");
    }
  }
  MatMulOp product = projection.product;
  if (product.getType().getRank() != 2 || product.getTransposeLhs() || product.getInit() ||
      (product.getBias() && projection.sum))
    return decline("a contraction is not one of rows with a weight");
  projection.weight = onlyReadBy(product.getRhs(), numGets);
  if (product.getBias())
    bias = product.getBias();
  projection.bias = bias ? onlyReadBy(bias, numGets) : VariableOp();
  if (!projection.weight || (bias && !projection.bias))
    return decline("a weight or bias does not train, or is read elsewhere");
  if (bias && typeOf(bias).getShape() != ArrayRef(columns))
    return decline("a bias is no vector");
  return projection;
}

/// What keeps two projections from being one; empty when nothing does.
static StringRef difference(Projection a, Projection b) {
  MatMulOp x = a.product, y = b.product;
  if (x.getLhs() != y.getLhs())
    return "the contractions read different inputs";
  if (x.getTransposeRhs() != y.getTransposeRhs())
    return "one weight is stored transposed, another is not";
  if (x.getType().getElementType() != y.getType().getElementType() ||
      typeOf(x.getRhs()).getElementType() != typeOf(y.getRhs()).getElementType())
    return "the element types differ";
  if (bool(a.bias) != bool(b.bias) || bool(a.sum) != bool(b.sum))
    return "not all have a bias in the same way";
  if (a.weight.getDecays() != b.weight.getDecays() || (a.bias && a.bias.getDecays() != b.bias.getDecays()))
    return "weight decay applies to some of them only";
  return "";
}

/// "h.0.{query,key,value}.weight" of the names, in order.
static std::string commonName(ArrayRef<StringRef> names) {
  size_t shortest = SIZE_MAX, before = 0, after = 0;
  for (StringRef name : names)
    shortest = std::min(shortest, name.size());
  auto allHave = [&](auto characterOf) {
    return llvm::all_of(names, [&](StringRef name) { return characterOf(name) == characterOf(names[0]); });
  };
  while (before < shortest && allHave([&](StringRef name) { return name[before]; }))
    ++before;
  while (before + after < shortest && allHave([&](StringRef name) { return name[name.size() - 1 - after]; }))
    ++after;
  std::string name = (names[0].take_front(before) + "{").str();
  for (size_t i = 0; i < names.size(); ++i)
    name += ((i ? "," : "") + names[i].substr(before, names[i].size() - before - after)).str();
  return (name + "}" + names[0].take_back(after)).str();
}

namespace {
struct MergeProjections : impl::MergeProjectionsBase<MergeProjections> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    llvm::StringMap<unsigned> numGets;
    getOperation().walk([&](GetOp get) { ++numGets[get.getVariable()]; });
    for (auto program : getOperation().getOps<ProgramOp>()) {
      Block &body = program.getBody().front();
      for (AttentionOp attention : llvm::make_early_inc_range(body.getOps<AttentionOp>()))
        if (attention.getInputs().size() == 3)
          tryMerge(attention, numGets, symbols);
      eraseDeadOps(program);
      remarkOthers(body);
    }
  }

private:
  static void tryMerge(AttentionOp attention, const llvm::StringMap<unsigned> &numGets, SymbolTable &symbols) {
    SmallVector<Projection, 3> projections;
    std::string why;
    for (Value input : attention.getInputs()) {
      std::optional<Projection> projection = matchProjection(input, numGets, why);
      if (projection && !projections.empty())
        why = difference(projections[0], *projection).str();
      if (!projection || !why.empty()) {
        remarkOn(attention) << "declined: queries, keys and values stay apart, " << why;
        return;
      }
      projections.push_back(*projection);
    }
    merge(attention, projections, symbols);
  }

  static void merge(AttentionOp attention, ArrayRef<Projection> projections, SymbolTable &symbols) {
    MatMulOp first = projections[0].product;
    // Where the last of them is: all operands are there.
    Operation *last = first;
    for (Projection projection : projections)
      for (Operation *op : {projection.product.getOperation(), projection.sum.getOperation()})
        if (op && last->isBeforeInBlock(op))
          last = op;
    OpBuilder builder(last);
    SmallVector<Location> locations;
    SmallVector<VariableOp> weights, biases;
    for (Projection projection : projections) {
      locations.push_back(projection.product.getLoc());
      weights.push_back(projection.weight);
      biases.push_back(projection.bias);
    }
    Location loc = builder.getFusedLoc(locations);
    bool isTransposed = first.getTransposeRhs();
    Value weight = mergeVariables(builder, weights, isTransposed ? 0 : 1, symbols);
    Value bias = biases[0] ? mergeVariables(builder, biases, 0, symbols) : Value();
    int64_t columns = typeOf(weight).getDimSize(isTransposed ? 0 : 1);
    auto type = first.getType().clone({first.getType().getDimSize(0), columns});
    Value rows = builder.create<MatMulOp>(loc, type, first.getLhs(), weight, projections[0].sum ? Value() : bias,
                                          Value(), false, isTransposed);
    if (projections[0].sum)
      rows = builder.create<AddOp>(loc, rows, bias);
    pack(builder, attention, rows);
    remarkOn(attention) << "merged " << projections.size() << " contractions of one input into one with "
                        << typeOf(weight);
    attention.erase();
  }

  /// A new parameter whose pieces the others become; its value.
  static Value mergeVariables(OpBuilder &builder, MutableArrayRef<VariableOp> parts, int64_t axis,
                              SymbolTable &symbols) {
    SmallVector<StringRef> names;
    SmallVector<Location> locations;
    SmallVector<int64_t> shape(cast<RankedTensorType>(parts[0].getType()).getShape());
    shape[axis] = 0;
    for (VariableOp part : parts) {
      names.push_back(part.getSymName());
      locations.push_back(part.getLoc());
      shape[axis] += cast<RankedTensorType>(part.getType()).getDimSize(axis);
    }
    auto type = cast<RankedTensorType>(parts[0].getType()).clone(shape);
    Location loc = builder.getFusedLoc(locations);
    OpBuilder atParts(parts[0]);
    auto whole =
        atParts.create<VariableOp>(loc, builder.getStringAttr(commonName(names)), builder.getStringAttr("parameter"),
                                   TypeAttr::get(type), ElementsAttr(), parts[0].getDecaysAttr(), StringAttr());
    symbols.insert(whole);
    int64_t start = 0;
    for (VariableOp part : parts) {
      makePart(part, {FlatSymbolRefAttr::get(whole.getSymNameAttr()), axis, start});
      start += cast<RankedTensorType>(part.getType()).getDimSize(axis);
    }
    return builder.create<GetOp>(loc, type, whole.getSymName());
  }

  /// The attention on rows that hold its three inputs side by side.
  static void pack(OpBuilder &builder, AttentionOp attention, Value rows) {
    RankedTensorType query = typeOf(attention.getInputs()[0]);
    builder.setInsertionPoint(attention);
    auto type = typeOf(rows).clone({query.getDimSize(0), query.getDimSize(1), typeOf(rows).getDimSize(1)});
    Value packed = builder.create<ReshapeOp>(rows.getLoc(), type, rows);
    auto merged =
        builder.create<AttentionOp>(attention.getLoc(), attention.getOut().getType(), attention.getLse().getType(),
                                    packed, attention.getMask(), attention.getHeads(), attention.getKvHeads(),
                                    attention.getCausal(), attention.getWindow(), attention.getScale());
    attention.replaceAllUsesWith(merged);
  }

  /// Other contractions of one input with weights, and why they stay.
  static void remarkOthers(Block &body) {
    llvm::MapVector<Value, SmallVector<MatMulOp>> groups;
    for (auto product : body.getOps<MatMulOp>())
      if (VariableOp weight = variableOf(product.getRhs()); weight && weight.getKind() == "parameter")
        groups[product.getLhs()].push_back(product);
    for (auto &[input, products] : groups)
      if (products.size() > 1)
        remarkOn(products[0]) << "declined: " << products.size() << " contractions share an input, but no attention "
                              << "reads their results side by side";
  }
};
} // namespace

} // namespace llmc
