// Elementwise ops: result[i] = f(operands[i]) with NumPy broadcasting. Everything about one is its record: the formula, written once over
// an abstract number (ir/Formula.h), and its gradient over graph values (ir/Expr.h).
//   In formulas: a, b, c are the operands. In gradients: also y, the result, and dy, its gradient; one expression per operand, "" for none.
#ifndef LLMC_IR_OPS_ELEMENTWISE_TD
#define LLMC_IR_OPS_ELEMENTWISE_TD

include "ir/Dialect.td"

// Rules every elementwise op obeys, checked in ir/ops/Elementwise.cpp:
//   elementwise_c1: operand shapes broadcast to the result's shape.   elementwise_c2: float operands have one element type.
class Llmc_Elementwise<string mnemonic, list<Trait> traits = []>
    : Llmc_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<LaneOpInterface>, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                         DeclareOpInterfaceMethods<PrecisionOpInterface>, DeclareOpInterfaceMethods<ShardingOpInterface>], traits)> {
  let hasFolder = 1;
  let hasVerifier = 1;
  code facts = [{
    double $cppClass::getFlops() { return double(getType().getNumElements()); }
    ::llmc::PrecisionPolicy $cppClass::getPrecisionPolicy() { return ::llmc::PrecisionPolicy::follow; }
    std::string $cppClass::getShardingRule() { return ::llmc::elementwiseShardingRule(getOperation()); }
    ::mlir::LogicalResult $cppClass::verify() { return ::llmc::verifyElementwise(getOperation()); }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor adaptor) { return ::llmc::foldByEvaluation(getOperation(), adaptor.getOperands()); }
  }];
  string common = !strconcat(facts,
    "::mlir::LogicalResult $cppClass::evaluate(::llvm::ArrayRef<::llmc::HostTensor> operands, ::llvm::SmallVectorImpl<::llmc::HostTensor> &results) {\n",
    "  return ::llmc::evaluateElementwise(getOperation(), operands, results);\n}\n");
}

// An op whose math is one formula. `integerFormula` is "" for ops on floats alone.
class Llmc_Formula<string mnemonic, string formula, string integerFormula, string parameters, string spread, list<Trait> traits>
    : Llmc_Elementwise<mnemonic, traits> {
  let extraClassDeclaration = "template <typename T> T formula(" # parameters # ") { return " # formula # "; }";
  string integerBody = !if(!empty(integerFormula), "(void)x; llvm_unreachable(\"a float op\");", !strconcat(
      "auto formula = [](::llmc::WrappingInt a, [[maybe_unused]] ::llmc::WrappingInt b) -> int64_t { return ", integerFormula,
      "; }; return formula(x[0], x.size() > 1 ? x[1] : 0);"));
  string math = !strconcat(
      "::llmc::Lanes $cppClass::emitLanes(::llmc::LaneScope &, ::llvm::ArrayRef<::llmc::Lanes> x) { return formula<::llmc::Lanes>(", spread, "); }\n",
      "double $cppClass::evaluateFloat(::llvm::ArrayRef<double> x) { return formula<double>(", spread, "); }\n",
      "int64_t $cppClass::evaluateInteger(::llvm::ArrayRef<int64_t> x) { ", integerBody, " }\n");
}

// The gradient of an elementwise op, one expression per operand.
class Llmc_GradientCode<list<string> gradients, string names> {
  list<string> expressions = !foreach(gradient, gradients, !if(!empty(gradient), "none", gradient));
  string initializers = !interleave(expressions, ", ");
  string body = !strconcat(
      "::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &builder, ::llvm::ArrayRef<::mlir::Value> resultGradients) {\n",
      "  [[maybe_unused]] ::llmc::ExprScope scope{builder, getLoc()};\n",
      "  [[maybe_unused]] ::llmc::Expr none = scope(::mlir::Value()), dy = scope(resultGradients[0]), y = scope(getResult()), ", names, ";\n",
      "  return ::llmc::sumToOperands(getOperation(), {", initializers, "});\n}\n");
}

class Llmc_Unary<string mnemonic, string formula, string gradient, string integerFormula = "", list<Trait> traits = []>
    : Llmc_Formula<mnemonic, formula, integerFormula, "T a", "x[0]",
                   !listconcat([SameOperandsAndResultType, DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits)> {
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` type($result)";
  let extraClassDefinition = common # math # Llmc_GradientCode<[gradient], "a = scope(getOperand())">.body;
}

// Operands and result broadcast.
class Llmc_Binary<string mnemonic, string formula, list<string> gradients, string integerFormula = "", list<Trait> traits = []>
    : Llmc_Formula<mnemonic, formula, integerFormula, "T a, T b", "x[0], x[1]",
                   !listconcat([DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<DifferentiableOpInterface>], traits)> {
  string isPredicate = "false";
  let arguments = (ins Llmc_Tensor:$a, Llmc_Tensor:$b);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` `(` type($a) `,` type($b) `)` `->` type($result)";
  let extraClassDefinition = common # math # Llmc_GradientCode<gradients, "a = scope(getA()), b = scope(getB())">.body # [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::llmc::inferBroadcast(location, operands, /*isPredicate=*/}] # isPredicate # [{, types);
    }
  }];
}

// A comparison or logic op: the result is boolean and no gradient flows.
class Llmc_Predicate<string mnemonic, string formula, string integerFormula> : Llmc_Binary<mnemonic, formula, ["", ""], integerFormula> {
  let isPredicate = "true";
}

//===-- Arithmetic

def Llmc_AddOp : Llmc_Binary<"add", "a + b", ["dy", "dy"], "a + b", [Commutative]> {
  let summary = "y = a + b";
  let description = [{
    ```mlir
    %y = llmc.add %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_SubOp : Llmc_Binary<"sub", "a - b", ["dy", "-dy"], "a - b"> {
  let summary = "y = a - b";
  let description = [{
    ```mlir
    %y = llmc.sub %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_MulOp : Llmc_Binary<"mul", "a * b", ["dy * b", "dy * a"], "a * b", [Commutative]> {
  let summary = "y = a * b";
  let description = [{
    ```mlir
    %y = llmc.mul %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_DivOp : Llmc_Binary<"div", "a / b", ["dy / b", "-(dy * y / b)"], "a / b"> {
  let summary = "y = a / b; integers truncate towards zero";
  let description = [{
    ```mlir
    %y = llmc.div %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_PowOp : Llmc_Binary<"pow", "pow(a, b)", ["dy * b * pow(a, b - 1.0)", "dy * y * log(a)"]> {
  let summary = "y = a^b on floats";
  let description = [{
    A constant exponent that is a small integer or a half becomes products and roots when it is lowered. The gradient by a constant exponent
    is never built.

    ```mlir
    %y = llmc.pow %a, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    ```
  }];
  let hasCanonicalizer = 1;
}
def Llmc_MaxOp : Llmc_Binary<"max", "max(a, b)", ["select(less(a, b), 0.0, dy)", "select(less(a, b), dy, 0.0)"], "max(a, b)", [Commutative]> {
  let summary = "y = max(a, b), NaN if either is; at a tie the gradient goes to a";
  let description = [{
    ```mlir
    %y = llmc.max %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_MinOp : Llmc_Binary<"min", "min(a, b)", ["select(less(b, a), 0.0, dy)", "select(less(b, a), dy, 0.0)"], "min(a, b)", [Commutative]> {
  let summary = "y = min(a, b), NaN if either is; at a tie the gradient goes to a";
  let description = [{
    ```mlir
    %y = llmc.min %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_NegOp : Llmc_Unary<"neg", "-a", "-dy", "-a"> {
  let summary = "y = -a";
  let description = [{
    ```mlir
    %y = llmc.neg %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_AbsOp : Llmc_Unary<"abs", "abs(a)", "select(less(a, a.constant(0.0)), -dy, dy)", "abs(a)"> {
  let summary = "y = |a|";
  let description = [{
    ```mlir
    %y = llmc.abs %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_RoundOp : Llmc_Unary<"round", "round(a)", "dy * 0.0"> {
  let summary = "y = a rounded to the nearest integer, ties to even; its gradient is zero";
  let description = [{
    ```mlir
    %y = llmc.round %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_FloorOp : Llmc_Unary<"floor", "floor(a)", "dy * 0.0"> {
  let summary = "y = the largest integer not above a; its gradient is zero";
  let description = [{
    ```mlir
    %y = llmc.floor %a : tensor<2x3xf32>
    ```
  }];
}

//===-- Functions

def Llmc_ExpOp : Llmc_Unary<"exp", "exp(a)", "dy * y"> {
  let summary = "y = e^a";
  let description = [{
    ```mlir
    %y = llmc.exp %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_LogOp : Llmc_Unary<"log", "log(a)", "dy / a"> {
  let summary = "y = ln a";
  let description = [{
    ```mlir
    %y = llmc.log %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_SqrtOp : Llmc_Unary<"sqrt", "sqrt(a)", "dy * 0.5 / y"> {
  let summary = "y = the square root of a";
  let description = [{
    ```mlir
    %y = llmc.sqrt %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_RsqrtOp : Llmc_Unary<"rsqrt", "rsqrt(a)", "dy * -0.5 * y / a"> {
  let summary = "y = 1 / sqrt(a)";
  let description = [{
    ```mlir
    %y = llmc.rsqrt %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_TanhOp : Llmc_Unary<"tanh", "tanh(a)", "dy * (1.0 - y * y)"> {
  let summary = "y = tanh a";
  let description = [{
    ```mlir
    %y = llmc.tanh %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_ErfOp : Llmc_Unary<"erf", "erf(a)", "dy * (2.0 * std::numbers::inv_sqrtpi) * exp(-(a * a))"> {
  let summary = "y = the error function of a";
  let description = [{
    ```mlir
    %y = llmc.erf %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_SigmoidOp : Llmc_Unary<"sigmoid", "1.0 / (1.0 + exp(-a))", "dy * y * (1.0 - y)"> {
  let summary = "y = 1 / (1 + e^-a)";
  let description = [{
    ```mlir
    %y = llmc.sigmoid %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_SinOp : Llmc_Unary<"sin", "sin(a)", "dy * cos(a)"> {
  let summary = "y = sin a";
  let description = [{
    ```mlir
    %y = llmc.sin %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_CosOp : Llmc_Unary<"cos", "cos(a)", "-(dy * sin(a))"> {
  let summary = "y = cos a";
  let description = [{
    ```mlir
    %y = llmc.cos %a : tensor<2x3xf32>
    ```
  }];
}

//===-- Activations

def Llmc_GeluOp : Llmc_Formula<"gelu",
    "getApproximate() ? 0.5 * a * (1.0 + tanh(0.7978845608028654 * (a + 0.044715 * (a * a * a)))) : 0.5 * a * (1.0 + erf(a * std::numbers::sqrt2 * 0.5))",
    "", "T a", "x[0]", [SameOperandsAndResultType, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Gaussian error linear unit, exact (erf) or by tanh";
  let description = [{
    y = a/2 (1 + erf(a / sqrt 2)), or with `approximate` a/2 (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))). Hendrycks and Gimpel, arXiv:1606.08415.

    ```mlir
    %y = llmc.gelu %a {approximate} : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a, UnitAttr:$approximate);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$a attr-dict `:` type($result)";
  let extraClassDefinition = common # math # [{
    ::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &builder, ::llvm::ArrayRef<::mlir::Value> resultGradients) {
      return {builder.create<::llmc::GeluGradOp>(getLoc(), getType(), getA(), resultGradients[0], getApproximateAttr())};
    }
  }];
}
def Llmc_GeluGradOp : Llmc_Formula<"gelu_grad", "geluGradient(a, b, getApproximate())", "", "T a, T b", "x[0], x[1]", [SameOperandsAndResultType]> {
  let summary = "the gradient of gelu at a, times b";
  let description = [{
    With `approximate`: u = sqrt(2/pi) (a + 0.044715 a^3), t = tanh u: y = b (1/2 (1 + t) + a/2 (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 a^2)).
    Else y = b (1/2 (1 + erf(a / sqrt 2)) + a e^(-a^2/2) / sqrt(2 pi)).

    ```mlir
    %y = llmc.gelu_grad %a, %b {approximate} : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a, Llmc_FloatTensor:$b, UnitAttr:$approximate);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($result)";
  let extraClassDefinition = common # math;
  let extraClassDeclaration = [{
    template <typename T> static T geluGradient(T a, T b, bool approximate) {
      if (!approximate)
        return b * (0.5 * (1.0 + erf(a * (std::numbers::sqrt2 * 0.5))) +
                    a * exp(a * a * -0.5) * (0.5 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi));
      T t = tanh(0.7978845608028654 * (a + 0.044715 * (a * a * a)));
      return b * (0.5 * (1.0 + t) + (0.5 * 0.7978845608028654) * a * (1.0 - t * t) * (1.0 + (3.0 * 0.044715) * (a * a)));
    }
    template <typename T> T formula(T a, T b) { return geluGradient(a, b, getApproximate()); }
  }];
}
def Llmc_SiluOp : Llmc_Unary<"silu", "a / (1.0 + exp(-a))", "dy * sigmoid(a) * (1.0 + a - y)"> {
  let summary = "y = a sigmoid(a)";
  let description = [{
    Its derivative is sigmoid(a) (1 + a (1 - sigmoid(a))) = sigmoid(a) (1 + a - y).

    ```mlir
    %y = llmc.silu %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_ReluOp : Llmc_Unary<"relu", "max(a, 0.0 * a)", "select(less(a.constant(0.0), a), dy, 0.0)"> {
  let summary = "y = max(a, 0)";
  let description = [{
    ```mlir
    %y = llmc.relu %a : tensor<2x3xf32>
    ```
  }];
}

//===-- Comparison, logic, selection

def Llmc_EqualOp : Llmc_Predicate<"equal", "equal(a, b)", "equal(a, b)"> {
  let summary = "y = (a = b)";
  let description = [{
    ```mlir
    %y = llmc.equal %a, %b : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
    ```
  }];
}
def Llmc_LessOp : Llmc_Predicate<"less", "less(a, b)", "less(a, b)"> {
  let summary = "y = (a < b)";
  let description = [{
    ```mlir
    %y = llmc.less %a, %b : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
    ```
  }];
}
def Llmc_LessEqualOp : Llmc_Predicate<"less_equal", "lessEqual(a, b)", "lessEqual(a, b)"> {
  let summary = "y = (a <= b)";
  let description = [{
    ```mlir
    %y = llmc.less_equal %a, %b : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi1>
    ```
  }];
}
def Llmc_AndOp : Llmc_Predicate<"and", "logicalAnd(a, b)", "logicalAnd(a, b)"> {
  let summary = "y = a and b on booleans";
  let description = [{
    ```mlir
    %y = llmc.and %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
    ```
  }];
}
def Llmc_OrOp : Llmc_Predicate<"or", "logicalOr(a, b)", "logicalOr(a, b)"> {
  let summary = "y = a or b on booleans";
  let description = [{
    ```mlir
    %y = llmc.or %a, %b : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
    ```
  }];
}
def Llmc_NotOp : Llmc_Unary<"not", "logicalNot(a)", "", "logicalNot(a)"> {
  let summary = "y = not a on booleans";
  let description = [{
    ```mlir
    %y = llmc.not %a : tensor<2x3xi1>
    ```
  }];
}
def Llmc_IsNanOp : Llmc_Formula<"is_nan", "isNan(a)", "", "T a", "x[0]",
    [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "y = (a is not a number)";
  let description = [{
    ```mlir
    %y = llmc.is_nan %a : (tensor<2x3xf32>) -> tensor<2x3xi1>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a);
  let results = (outs Llmc_IntTensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
  let extraClassDefinition = common # math # [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::llmc::inferBroadcast(location, operands, /*isPredicate=*/true, types);
    }
  }];
}
def Llmc_SelectOp : Llmc_Formula<"select", "select(a, b, c)", "", "T a, T b, T c", "x[0], x[1], x[2]",
    [DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "y = condition ? a : b";
  let description = [{
    ```mlir
    %y = llmc.select %condition, %a, %b : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_IntTensor:$condition, Llmc_Tensor:$a, Llmc_Tensor:$b);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$condition `,` $a `,` $b attr-dict `:` functional-type(operands, $result)";
  let extraClassDefinition = common # [{
    ::llmc::Lanes $cppClass::emitLanes(::llmc::LaneScope &, ::llvm::ArrayRef<::llmc::Lanes> x) { return select(x[0], x[1], x[2]); }
    double $cppClass::evaluateFloat(::llvm::ArrayRef<double> x) { return select(x[0], x[1], x[2]); }
    int64_t $cppClass::evaluateInteger(::llvm::ArrayRef<int64_t> x) { return select(x[0], x[1], x[2]); }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::llmc::inferSelect(location, operands, types);
    }
  }] # Llmc_GradientCode<["", "select(condition, dy, 0.0)", "select(condition, 0.0, dy)"], "condition = scope(getCondition())">.body;
}

//===-- Conversion and generation

def Llmc_CastOp : Llmc_Elementwise<"cast", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "y = a in another element type";
  let description = [{
    Floats round to nearest even; float to integer truncates towards zero; anything to boolean is a != 0.

    ```mlir
    %y = llmc.cast %a : (tensor<2x3xi64>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
  let extraClassDefinition = common;
}
def Llmc_IotaOp : Llmc_Elementwise<"iota"> {
  let summary = "y = the index along dimension `dim`";
  let description = [{
    ```mlir
    %y = llmc.iota {dim = 1 : i64} : tensor<1x5xi64>
    ```
  }];
  let arguments = (ins I64Attr:$dim);
  let results = (outs Llmc_IntTensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let extraClassDefinition = facts;
}
def Llmc_DropoutOp : Llmc_Elementwise<"dropout", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "y = a / (1 - rate) where kept, else 0";
  let description = [{
    Element i is kept when a counter-based generator on (seed, step, `node`, i) draws at least `rate`; so the gradient is the same op on dy
    and no mask is stored. `node` numbers the model's Dropout nodes. The seed and step are the session's scalars.

    ```mlir
    %y = llmc.dropout %a, %lo, %hi, %step {node = 0 : i64, rate = 1.000000e-01 : f64}
      : (tensor<2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a, Llmc_IntTensor:$seedLow, Llmc_IntTensor:$seedHigh, Llmc_IntTensor:$step, F64Attr:$rate, I64Attr:$node);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$a `,` $seedLow `,` $seedHigh `,` $step attr-dict `:` functional-type(operands, $result)";
  let extraClassDefinition = facts;
}

// A view in a kernel: the repetition costs no memory once it is fused.
def Llmc_BroadcastToOp : Llmc_Elementwise<"broadcast_to", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "a repeated along its dimensions of size one and new leading ones, as NumPy does";
  let description = [{
    ```mlir
    %y = llmc.broadcast_to %a : (tensor<1x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
  let extraClassDefinition = common;
}

#endif
