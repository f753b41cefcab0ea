// The loss of a language model. Its logits stay f32 in a bf16 plan: rounded, they cost half as much error again.
#ifndef LLMC_IR_OPS_LOSS_TD
#define LLMC_IR_OPS_LOSS_TD

include "ir/Dialect.td"

class Llmc_LossOp<string mnemonic, list<Trait> traits = []> : Llmc_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<EvaluableOpInterface>,
    DeclareOpInterfaceMethods<DecomposableOpInterface>, DeclareOpInterfaceMethods<PrecisionOpInterface>], traits)> {
  let hasVerifier = 1;
  let extraClassDefinition = [{
    double $cppClass::getFlops() { return 6.0 * double(getLogits().getType().getNumElements()); }
    ::llmc::PrecisionPolicy $cppClass::getOperandPrecision(unsigned) { return ::llmc::PrecisionPolicy::keepF32; }
    ::mlir::LogicalResult $cppClass::verify() { return ::llmc::verifyLoss(getOperation()); }
  }];
}

def Llmc_SoftmaxCrossEntropyOp : Llmc_LossOp<"softmax_cross_entropy", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "loss = sum over rows with label != ignoreIndex of (lse - logits[label]), or with `mean` that over their number; times scale";
  let description = [{
    logits (N, V), labels (N) or (N, 1), loss rank 0, lse (N, 1) = log sum e^logits, all f32. `scale` (rank 0) multiplies the loss when given: how a
    training step divides by the labels of all micro-batches and ranks. With no valid label the mean is NaN, as in PyTorch.
      loss_c1: labels has one entry per row of logits.

    ```mlir
    %loss, %lse = llmc.softmax_cross_entropy %logits, %labels {mean, ignoreIndex = -100 : i64}
      : (tensor<6x7xf32>, tensor<6xi64>) -> (tensor<f32>, tensor<6x1xf32>)
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$logits, Llmc_IntTensor:$labels, Optional<Llmc_FloatTensor>:$scale, UnitAttr:$mean, I64Attr:$ignoreIndex);
  let results = (outs Llmc_FloatTensor:$loss, Llmc_FloatTensor:$lse);
  let assemblyFormat = "$logits `,` $labels (`scale` $scale^)? attr-dict `:` functional-type(operands, results)";
}
def Llmc_SoftmaxCrossEntropyGradOp : Llmc_LossOp<"softmax_cross_entropy_grad"> {
  let summary = "dLogits = dLoss (e^(logits - lse) - onehot(label)) at rows whose label counts, else 0; with `mean` over their number";
  let description = [{
    ```mlir
    %d = llmc.softmax_cross_entropy_grad %dloss, %logits, %labels, %lse {mean, ignoreIndex = -100 : i64}
      : (tensor<f32>, tensor<6x7xf32>, tensor<6xi64>, tensor<6x1xf32>) -> tensor<6x7xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$dLoss, Llmc_FloatTensor:$logits, Llmc_IntTensor:$labels, Llmc_FloatTensor:$lse, UnitAttr:$mean,
                       I64Attr:$ignoreIndex);
  let results = (outs Llmc_FloatTensor:$dLogits);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, $dLogits)";
}

#endif
