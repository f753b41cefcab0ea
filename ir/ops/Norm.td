// Normalisation over the last axis. Statistics are computed in f32 and again in the gradient: a row is in cache, a
// saved mean is not free.
#ifndef LLMC_IR_OPS_NORM_TD
#define LLMC_IR_OPS_NORM_TD

include "ir/Dialect.td"

class Llmc_NormOp<string mnemonic, list<Trait> traits = []>
    : Llmc_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                         DeclareOpInterfaceMethods<DecomposableOpInterface>,
                                         DeclareOpInterfaceMethods<PrecisionOpInterface>],
                                        traits)> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    double $cppClass::getFlops() { return 8.0 * double(getX().getType().getNumElements()); }
    ::llmc::PrecisionPolicy $cppClass::getOperandPrecision(unsigned) { return ::llmc::PrecisionPolicy::follow; }
    ::mlir::LogicalResult $cppClass::verify() { return ::llmc::verifyNorm(getOperation()); }
  }];
}

def Llmc_LayerNormOp : Llmc_NormOp<"layer_norm", [DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                                  AllTypesMatch<["x", "result"]>]> {
  let summary = "y = (x - mean x) / sqrt(var x + epsilon) * scale + bias over the last axis";
  let description = [{
    var is the mean of squared deviations. norm_c1: scale and bias are (C), C the last dimension of x.

    ```mlir
    %y = llmc.layer_norm %x, %scale, %bias {epsilon = 1.000000e-05 : f64}
      : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$x, Llmc_FloatTensor:$scale, Optional<Llmc_FloatTensor>:$bias,
      F64Attr:$epsilon);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, $result)";
}
def Llmc_LayerNormGradOp
    : Llmc_NormOp<"layer_norm_grad", [AllTypesMatch<["x", "dx", "dy"]>, AllTypesMatch<["scale", "dScale", "dBias"]>]> {
  let summary = "the gradient of layer_norm";
  let description = [{
    With n = (x - mean) rstd and g = dy scale: dx = rstd (g - mean g - n mean(g n)), dScale = sum over rows of dy n,
    dBias = sum over rows of dy.

    ```mlir
    %dx, %dscale, %dbias = llmc.layer_norm_grad %dy, %x, %scale {epsilon = 1.000000e-05 : f64}
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>)
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$dy, Llmc_FloatTensor:$x, Llmc_FloatTensor:$scale, F64Attr:$epsilon);
  let results = (outs Llmc_FloatTensor:$dx, Llmc_FloatTensor:$dScale, Llmc_FloatTensor:$dBias);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Llmc_RmsNormOp
    : Llmc_NormOp<"rms_norm", [DeclareOpInterfaceMethods<DifferentiableOpInterface>, AllTypesMatch<["x", "result"]>]> {
  let summary = "y = x / sqrt(mean x^2 + epsilon) * scale over the last axis";
  let description = [{
    ```mlir
    %y = llmc.rms_norm %x, %scale {epsilon = 1.000000e-05 : f64} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$x, Llmc_FloatTensor:$scale, F64Attr:$epsilon);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, $result)";
}
def Llmc_RmsNormGradOp
    : Llmc_NormOp<"rms_norm_grad", [AllTypesMatch<["x", "dx", "dy"]>, AllTypesMatch<["scale", "dScale"]>]> {
  let summary = "the gradient of rms_norm";
  let description = [{
    With n = x rstd and g = dy scale: dx = rstd (g - n mean(g n)), dScale = sum over rows of dy n.

    ```mlir
    %dx, %dscale = llmc.rms_norm_grad %dy, %x, %scale {epsilon = 1.000000e-05 : f64}
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$dy, Llmc_FloatTensor:$x, Llmc_FloatTensor:$scale, F64Attr:$epsilon);
  let results = (outs Llmc_FloatTensor:$dx, Llmc_FloatTensor:$dScale);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif
