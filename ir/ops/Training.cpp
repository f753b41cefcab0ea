// Programs, variables and the optimizer. A program is a function whose kind stands after its name; the optimizers and
// the gradient norm are small ops that the fusion pass gathers, in the order of operations of torch.optim.
#include "ir/Piece.h"
#include "ir/ops/Rows.h"

#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"

using namespace mlir;

namespace llmc {

//===-- variable, get and set

static constexpr StringLiteral kPieceName = "llmc.piece";

/// The attribute read; nothing where it is no piece.
static std::optional<Piece> readPiece(Attribute attribute) {
  auto fields = dyn_cast_or_null<DictionaryAttr>(attribute);
  auto whole = fields ? fields.getAs<FlatSymbolRefAttr>("of") : FlatSymbolRefAttr();
  auto axis = fields ? fields.getAs<IntegerAttr>("axis") : IntegerAttr(),
       start = fields ? fields.getAs<IntegerAttr>("start") : IntegerAttr();
  if (!whole || !axis || !start)
    return std::nullopt;
  return Piece{whole, axis.getInt(), start.getInt()};
}

std::optional<Piece> pieceOf(VariableOp variable) { return readPiece(variable->getAttr(kPieceName)); }

void makePart(VariableOp variable, const Piece &piece) {
  Builder builder(variable.getContext());
  variable.setKind("part");
  variable->setAttr(kPieceName,
                    builder.getDictionaryAttr({builder.getNamedAttr("of", piece.whole),
                                               builder.getNamedAttr("axis", builder.getI64IntegerAttr(piece.axis)),
                                               builder.getNamedAttr("start", builder.getI64IntegerAttr(piece.start))}));
}

static LogicalResult verifyPiece(VariableOp op) {
  std::optional<Piece> piece = pieceOf(op);
  // variable_c4
  if ((op.getKind() == "part") != piece.has_value())
    return op.emitOpError() << "a part has a piece (axis, of, start) and nothing else has, found kind \""
                            << op.getKind() << "\"";
  if (!piece)
    return success();
  // variable_c5
  auto whole = SymbolTable::lookupNearestSymbolFrom<VariableOp>(op, piece->whole);
  if (!whole)
    return op.emitOpError() << "found no variable " << piece->whole;
  auto type = cast<RankedTensorType>(op.getType()), wholeType = cast<RankedTensorType>(whole.getType());
  auto [symbol, axis, start] = *piece;
  bool isInside = type.getRank() == wholeType.getRank() && type.getElementType() == wholeType.getElementType() &&
                  axis >= 0 && axis < type.getRank() && start >= 0 &&
                  start <= wholeType.getDimSize(axis) - type.getDimSize(axis);
  for (int64_t d = 0; isInside && d < type.getRank(); ++d)
    isInside = d == axis || type.getDimSize(d) == wholeType.getDimSize(d);
  if (!isInside)
    return op.emitOpError() << type << " from " << start << " on along dimension " << axis << " does not lie inside of "
                            << wholeType;
  return success();
}

LogicalResult VariableOp::verify() {
  // variable_c2
  constexpr StringLiteral kinds[] = {"parameter", "constant", "moment", "gradient", "part"};
  if (!llvm::is_contained(kinds, getKind()))
    return emitOpError() << "kind must be parameter, constant, moment, gradient or part, found \"" << getKind() << "\"";
  // variable_c3
  if (getValue() && getValue()->getShapedType() != getType())
    return emitOpError() << "value must have the variable's type " << getType() << ", found "
                         << getValue()->getShapedType();
  return verifyPiece(*this);
}

static LogicalResult verifyVariable(Operation *op, FlatSymbolRefAttr name, Type type, SymbolTableCollection &symbols) {
  // variable_c1
  auto variable = symbols.lookupNearestSymbolFrom<VariableOp>(op, name);
  if (!variable)
    return op->emitOpError() << "found no variable " << name;
  if (variable.getType() != type)
    return op->emitOpError() << "the value must have the type of variable " << name << ", " << variable.getType()
                             << ", found " << type;
  return success();
}

LogicalResult GetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariable(*this, getVariableAttr(), getResult().getType(), symbols);
}

LogicalResult SetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  return verifyVariable(*this, getVariableAttr(), getValue().getType(), symbols);
}

//===-- program and return

void ProgramOp::build(OpBuilder &builder, OperationState &state, StringRef name, StringRef kind, FunctionType type) {
  state.addAttribute(getSymNameAttrName(state.name), builder.getStringAttr(name));
  state.addAttribute(getKindAttrName(state.name), builder.getStringAttr(kind));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addRegion();
}

ParseResult ProgramOp::parse(OpAsmParser &parser, OperationState &result) {
  StringAttr name, kind;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> resultTypes;
  SmallVector<DictionaryAttr> resultAttributes;
  bool isVariadic = false;
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name), result.attributes) ||
      parser.parseAttribute(kind, getKindAttrName(result.name), result.attributes) ||
      function_interface_impl::parseFunctionSignature(parser, /*allowVariadic=*/false, arguments, isVariadic,
                                                      resultTypes, resultAttributes))
    return failure();
  SmallVector<Type> argumentTypes;
  for (const OpAsmParser::Argument &argument : arguments)
    argumentTypes.push_back(argument.type);
  result.addAttribute(getFunctionTypeAttrName(result.name),
                      TypeAttr::get(parser.getBuilder().getFunctionType(argumentTypes, resultTypes)));
  if (parser.parseOptionalAttrDictWithKeyword(result.attributes))
    return failure();
  function_interface_impl::addArgAndResultAttrs(parser.getBuilder(), result, arguments, resultAttributes,
                                                getArgAttrsAttrName(result.name), getResAttrsAttrName(result.name));
  return parser.parseRegion(*result.addRegion(), arguments);
}

void ProgramOp::print(OpAsmPrinter &printer) {
  printer << ' ';
  printer.printSymbolName(getSymName());
  printer << ' ' << getKindAttr();
  function_interface_impl::printFunctionSignature(printer, *this, getArgumentTypes(), /*isVariadic=*/false,
                                                  getResultTypes());
  function_interface_impl::printFunctionAttributes(
      printer, *this, {getKindAttrName(), getFunctionTypeAttrName(), getArgAttrsAttrName(), getResAttrsAttrName()});
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false, /*printBlockTerminators=*/true);
}

LogicalResult ReturnOp::verify() {
  // return_c1
  auto program = cast<ProgramOp>((*this)->getParentOp());
  if (getOperandTypes() != program.getResultTypes())
    return emitOpError() << "operand types must be the program's result types (" << program.getResultTypes()
                         << "), found (" << getOperandTypes() << ")";
  return success();
}

//===-- Optimizers

namespace {
/// Hyperparameters in the type of one parameter.
struct Hyperparameters {
  ExprScope scope;
  Type elementType;
  Expr operator()(StringRef name) const {
    auto type = RankedTensorType::get({}, scope.builder.getF32Type());
    return castTo(scope(scope.builder.create<ScalarOp>(scope.loc, type, name)), elementType);
  }
};
} // namespace

/// The gradient in the parameter's type, clipped when there is a factor.
static Expr clippedGradient(Expr gradient, Expr clipFactor, Type elementType) {
  Expr g = castTo(gradient, elementType);
  return clipFactor.value ? g * castTo(clipFactor, elementType) : g;
}

SmallVector<Value> AdamWOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  Type elementType = getParameter().getType().getElementType();
  Hyperparameters scalar{scope, elementType};
  Expr g = clippedGradient(scope(getGradient()), scope(getClipFactor()), elementType);
  Expr p = scope(getParameter()), oldM = castTo(scope(getM()), elementType), oldV = castTo(scope(getV()), elementType);
  Expr lr = scalar("lr");
  if (getDecays())
    p = p * (1.0 - lr * scalar("weight_decay"));
  Expr m = oldM + scalar("one_minus_beta1") * (g - oldM);
  Expr v = oldV * scalar("beta2") + scalar("one_minus_beta2") * (g * g);
  Expr denominator = sqrt(v) / sqrt(scalar("bias_correction2")) + scalar("eps");
  p = p - (lr / scalar("bias_correction1")) * (m / denominator);
  return {p, castTo(m, getM().getType().getElementType()), castTo(v, getV().getType().getElementType())};
}

SmallVector<Value> SgdOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  Type elementType = getParameter().getType().getElementType();
  Hyperparameters scalar{scope, elementType};
  Expr p = scope(getParameter()), g = clippedGradient(scope(getGradient()), scope(getClipFactor()), elementType);
  if (getDecays())
    g = g + scalar("weight_decay") * p;
  return {p - scalar("lr") * g};
}

SmallVector<Value> GlobalNormOp::decompose(OpBuilder &builder) {
  ExprScope scope{builder, getLoc()};
  Type elementType = getNorm().getType().getElementType();
  Expr sum = zeros(scope, RankedTensorType::get({1, 1}, elementType));
  for (auto [i, gradient] : llvm::enumerate(getGradients())) {
    Expr g = castTo(asRows(scope(gradient)), elementType);
    Expr squares = rowSum(g * g);
    Expr ofOne = rowSum(reshape(squares, {1, squares.shape()[0]}));
    sum = i == 0 ? ofOne : sum + ofOne;
  }
  return {asType(sqrt(sum), getNorm().getType())};
}

} // namespace llmc
