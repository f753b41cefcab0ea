// Elementwise math: arithmetic, functions and activations. See Elementwise.td for how a record is written.
#ifndef LLMC_IR_OPS_MATH_TD
#define LLMC_IR_OPS_MATH_TD

include "ir/ops/Elementwise.td"

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
    A constant exponent that is a small integer or a half becomes products and roots when it is lowered. The gradient by
    a constant exponent is never built.

    ```mlir
    %y = llmc.pow %a, %b : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
    ```
  }];
  let hasCanonicalizer = 1;
}
def Llmc_MaxOp : Llmc_Binary<"max", "max(a, b)", ["select(less(a, b), 0.0, dy)", "select(less(a, b), dy, 0.0)"],
                             "max(a, b)", [Commutative]> {
  let summary = "y = max(a, b), NaN if either is; at a tie the gradient goes to a";
  let description = [{
    ```mlir
    %y = llmc.max %a, %b : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
}
def Llmc_MinOp : Llmc_Binary<"min", "min(a, b)", ["select(less(b, a), 0.0, dy)", "select(less(b, a), dy, 0.0)"],
                             "min(a, b)", [Commutative]> {
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

def Llmc_GeluOp
    : Llmc_Formula<"gelu",
                   "getApproximate() ? 0.5 * a * (1.0 + tanh(0.7978845608028654 * (a + 0.044715 * (a * a * a)))) "
                   ": 0.5 * a * (1.0 + erf(a * std::numbers::sqrt2 * 0.5))",
                   "", "T a", "x[0]",
                   [SameOperandsAndResultType, DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "Gaussian error linear unit, exact (erf) or by tanh";
  let description = [{
    y = a/2 (1 + erf(a / sqrt 2)), or with `approximate` a/2 (1 + tanh(sqrt(2/pi) (a + 0.044715 a^3))). Hendrycks and
    Gimpel, arXiv:1606.08415.

    ```mlir
    %y = llmc.gelu %a {approximate} : tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a, UnitAttr:$approximate);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$a attr-dict `:` type($result)";
  let extraClassDefinition = common # math # [{
    ::llvm::SmallVector<::mlir::Value> $cppClass::buildGradient(::mlir::OpBuilder &builder,
                                                                ::llvm::ArrayRef<::mlir::Value> resultGradients) {
      return {builder.create<::llmc::GeluGradOp>(getLoc(), getType(), getA(), resultGradients[0],
                                                 getApproximateAttr())};
    }
  }];
}
def Llmc_GeluGradOp : Llmc_Formula<"gelu_grad", "geluGradient(a, b, getApproximate())", "", "T a, T b",
                                   "x[0], x[1]", [SameOperandsAndResultType]> {
  let summary = "the gradient of gelu at a, times b";
  let description = [{
    With `approximate`: u = sqrt(2/pi) (a + 0.044715 a^3), t = tanh u:
    y = b (1/2 (1 + t) + a/2 (1 - t^2) sqrt(2/pi) (1 + 3 * 0.044715 a^2)).
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
      return b * (0.5 * (1.0 + t) +
                  (0.5 * 0.7978845608028654) * a * (1.0 - t * t) * (1.0 + (3.0 * 0.044715) * (a * a)));
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

#endif
