// Elementwise ops: result[i] = f(operands[i]) with NumPy broadcasting. Everything about one is its record: the formula,
// written once over an abstract number (ir/Formula.h), and its gradient over graph values (ir/Expr.h). Here: how such a
// record is written; comparison, logic and selection; conversion and generation. Arithmetic and functions: Math.td.
//   In formulas: a, b, c are the operands. In gradients: also y, the result, and dy, its gradient; one expression per
//   operand, "" for none.
#ifndef LLMC_IR_OPS_ELEMENTWISE_TD
#define LLMC_IR_OPS_ELEMENTWISE_TD

include "ir/Dialect.td"

// Rules every elementwise op obeys, checked in ir/ops/Elementwise.cpp:
//   elementwise_c1: operand shapes broadcast to the result's shape.
//   elementwise_c2: float operands have one element type.
class Llmc_Elementwise<string mnemonic, list<Trait> traits = []>
    : Llmc_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<LaneOpInterface>,
                                         DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                         DeclareOpInterfaceMethods<PrecisionOpInterface>,
                                         DeclareOpInterfaceMethods<ShardingOpInterface>],
                                        traits)> {
  let hasFolder = 1;
  let hasVerifier = 1;
  code facts = [{
    double $cppClass::getFlops() { return double(getType().getNumElements()); }
    ::llmc::PrecisionPolicy $cppClass::getOperandPrecision(unsigned) { return ::llmc::PrecisionPolicy::follow; }
    std::string $cppClass::getShardingRule() { return ::llmc::elementwiseShardingRule(getOperation()); }
    ::mlir::LogicalResult $cppClass::verify() { return ::llmc::verifyElementwise(getOperation()); }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor adaptor) {
      return ::llmc::foldByEvaluation(getOperation(), adaptor.getOperands());
    }
  }];
  string common = facts # [{
    ::mlir::LogicalResult $cppClass::evaluate(::llvm::ArrayRef<::llmc::HostTensor> operands,
                                              ::llvm::SmallVectorImpl<::llmc::HostTensor> &results) {
      return ::llmc::evaluateElementwise(getOperation(), operands, results);
    }
  }];
}

// An op whose math is one formula. `integerFormula` is "" for ops on floats alone.
class Llmc_Formula<string mnemonic, string formula, string integerFormula, string parameters, string spread,
                   list<Trait> traits> : Llmc_Elementwise<mnemonic, traits> {
  let extraClassDeclaration = "template <typename T> T formula(" # parameters # ") { return " # formula # "; }";
  string integerBody =
      !if(!empty(integerFormula), "(void)x; llvm_unreachable(\"a float op\");",
          !strconcat(
              "auto formula = [](::llmc::WrappingInt a, [[maybe_unused]] ::llmc::WrappingInt b) -> int64_t { return ",
              integerFormula, "; }; return formula(x[0], x.size() > 1 ? x[1] : 0);"));
  string math = [{
    ::llmc::Lanes $cppClass::emitLanes(::llmc::LaneScope &, ::llvm::ArrayRef<::llmc::Lanes> x) {
      return formula<::llmc::Lanes>(}] # spread # [{);
    }
    double $cppClass::evaluateFloat(::llvm::ArrayRef<double> x) { return formula<double>(}] # spread # [{); }
    int64_t $cppClass::evaluateInteger(::llvm::ArrayRef<int64_t> x) { }] # integerBody # [{ }
  }];
}

// The gradient of an elementwise op, one expression per operand.
class Llmc_GradientCode<list<string> gradients, string names> {
  list<string> expressions = !foreach(gradient, gradients, !if(!empty(gradient), "none", gradient));
  string initializers = !interleave(expressions, ", ");
  string body = [{
    ::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &builder,
                                                                ::llvm::ArrayRef<::mlir::Value> resultGradients) {
      [[maybe_unused]] ::llmc::ExprScope scope{builder, getLoc()};
      [[maybe_unused]] ::llmc::Expr none = scope(::mlir::Value()), y = scope(getResult());
      [[maybe_unused]] ::llmc::Expr dy = scope(resultGradients[0]), }] # names # [{;
      return ::llmc::sumToOperands(getOperation(), {}] # initializers # [{});
    }
  }];
}

// The result's type from those of the operands: `call` fills `types`.
class Llmc_InferCode<string call> {
  string body = [{
    ::mlir::LogicalResult $cppClass::inferReturnTypes(
        ::mlir::MLIRContext *, std::optional<::mlir::Location> location, ::mlir::ValueRange operands,
        ::mlir::DictionaryAttr, ::mlir::OpaqueProperties, ::mlir::RegionRange,
        ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return }] # call # [{;
    }
  }];
}

class Llmc_Unary<string mnemonic, string formula, string gradient, string integerFormula = "", list<Trait> traits = []>
    : Llmc_Formula<mnemonic, formula, integerFormula, "T a", "x[0]",
                   !listconcat([SameOperandsAndResultType, DeclareOpInterfaceMethods<DifferentiableOpInterface>],
                               traits)> {
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` type($result)";
  let extraClassDefinition = common # math # Llmc_GradientCode<[gradient], "a = scope(getOperand())">.body;
}

// Operands and result broadcast.
class Llmc_Binary<string mnemonic, string formula, list<string> gradients, string integerFormula = "",
                  list<Trait> traits = []>
    : Llmc_Formula<mnemonic, formula, integerFormula, "T a, T b", "x[0], x[1]",
                   !listconcat([DeclareOpInterfaceMethods<InferTypeOpInterface>,
                                DeclareOpInterfaceMethods<DifferentiableOpInterface>],
                               traits)> {
  string isPredicate = "false";
  let arguments = (ins Llmc_Tensor:$a, Llmc_Tensor:$b);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` `(` type($a) `,` type($b) `)` `->` type($result)";
  let extraClassDefinition = common # math # Llmc_GradientCode<gradients, "a = scope(getA()), b = scope(getB())">.body #
      Llmc_InferCode<"::llmc::inferBroadcast(location, operands, /*isPredicate=*/" # isPredicate # ", types)">.body;
}

// A comparison or logic op: the result is boolean and no gradient flows.
class Llmc_Predicate<string mnemonic, string formula, string integerFormula>
    : Llmc_Binary<mnemonic, formula, ["", ""], integerFormula> {
  let isPredicate = "true";
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
def Llmc_IsNanOp
    : Llmc_Formula<"is_nan", "isNan(a)", "", "T a", "x[0]", [DeclareOpInterfaceMethods<InferTypeOpInterface>]> {
  let summary = "y = (a is not a number)";
  let description = [{
    ```mlir
    %y = llmc.is_nan %a : (tensor<2x3xf32>) -> tensor<2x3xi1>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a);
  let results = (outs Llmc_IntTensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
  let extraClassDefinition = common # math #
      Llmc_InferCode<"::llmc::inferBroadcast(location, operands, /*isPredicate=*/true, types)">.body;
}
def Llmc_SelectOp : Llmc_Formula<"select", "select(a, b, c)", "", "T a, T b, T c", "x[0], x[1], x[2]",
                                 [DeclareOpInterfaceMethods<InferTypeOpInterface>,
                                  DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
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
    ::llmc::Lanes $cppClass::emitLanes(::llmc::LaneScope &, ::llvm::ArrayRef<::llmc::Lanes> x) {
      return select(x[0], x[1], x[2]);
    }
    double $cppClass::evaluateFloat(::llvm::ArrayRef<double> x) { return select(x[0], x[1], x[2]); }
    int64_t $cppClass::evaluateInteger(::llvm::ArrayRef<int64_t> x) { return select(x[0], x[1], x[2]); }
  }] # Llmc_InferCode<"::llmc::inferSelect(location, operands, types)">.body #
      Llmc_GradientCode<["", "select(condition, dy, 0.0)", "select(condition, 0.0, dy)"],
                        "condition = scope(getCondition())">.body;
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
    Element i is kept when a counter-based generator on (seed, step, `node`, i) draws at least `rate`; so the gradient
    is the same op on dy and no mask is stored. `node` numbers the model's Dropout nodes. The seed and step are the
    session's scalars.

    ```mlir
    %y = llmc.dropout %a, %lo, %hi, %step {node = 0 : i64, rate = 1.000000e-01 : f64}
      : (tensor<2x3xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a, Llmc_IntTensor:$seedLow, Llmc_IntTensor:$seedHigh, Llmc_IntTensor:$step,
      F64Attr:$rate, I64Attr:$node);
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
