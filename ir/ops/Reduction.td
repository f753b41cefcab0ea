// Reductions over axes, and softmax. Reduced axes stay with size 1.
#ifndef LLMC_IR_OPS_REDUCTION_TD
#define LLMC_IR_OPS_REDUCTION_TD

include "ir/Dialect.td"

class Llmc_Reduction<string mnemonic, list<Trait> traits = []>
    : Llmc_PureOp<mnemonic, !listconcat([InferTypeOpAdaptor, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                         DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                         DeclareOpInterfaceMethods<PrecisionOpInterface>],
                                        traits)> {
  let arguments = (ins Llmc_Tensor:$a, DenseI64ArrayAttr:$axes);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
  let hasFolder = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether the last axis is reduced, and no other.
    bool isOverLastAxis();
  }];
  let extraClassDefinition = [{
    bool $cppClass::isOverLastAxis() {
      return getAxes().size() == 1 && getAxes()[0] == getA().getType().getRank() - 1;
    }
    double $cppClass::getFlops() { return double(getA().getType().getNumElements()); }
    ::llmc::PrecisionPolicy $cppClass::getOperandPrecision(unsigned) { return ::llmc::PrecisionPolicy::follow; }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor adaptor) {
      if (getAxes().empty())
        return getA();
      return ::llmc::foldByEvaluation(getOperation(), adaptor.getOperands());
    }
    ::mlir::LogicalResult $cppClass::verify() {
      return ::llmc::verifyAxes(getOperation(), getAxes(), getA().getType());
    }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location> location,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      return ::llmc::inferReduction(adaptor.getA().getType(), adaptor.getAxes(), types);
    }
  }];
}

def Llmc_ReduceSumOp : Llmc_Reduction<"reduce_sum"> {
  let summary = "sum over axes, accumulated in f32 at least";
  let description = [{
    reduction_c1: axes are dimensions of the operand, in rising order.

    ```mlir
    %y = llmc.reduce_sum %a {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
  }];
}
def Llmc_ReduceMaxOp : Llmc_Reduction<"reduce_max"> {
  let summary = "maximum over axes; the gradient goes to every element that equals it, in equal parts";
  let description = [{
    ```mlir
    %y = llmc.reduce_max %a {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
  }];
}
def Llmc_ReduceMeanOp : Llmc_Reduction<"reduce_mean", [DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "mean over axes";
  let description = [{
    ```mlir
    %y = llmc.reduce_mean %a {axes = array<i64: 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
    ```
  }];
}

class Llmc_RowOp<string mnemonic>
    : Llmc_PureOp<mnemonic, [SameOperandsAndResultType, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                             DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                             DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let arguments = (ins Llmc_FloatTensor:$a);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$a attr-dict `:` type($result)";
  let extraClassDefinition = "double $cppClass::getFlops() { return 4.0 * double(getType().getNumElements()); }";
}
def Llmc_SoftmaxOp : Llmc_RowOp<"softmax"> {
  let summary = "y = e^(a - max a) / sum e^(a - max a) along the last axis, in f32";
  let description = [{
    Its gradient is da = y (dy - sum(dy y)).

    ```mlir
    %y = llmc.softmax %a : tensor<2x3xf32>
    ```
  }];
}
def Llmc_LogSoftmaxOp : Llmc_RowOp<"log_softmax"> {
  let summary = "y = a - max a - log sum e^(a - max a) along the last axis, in f32";
  let description = [{
    Its gradient is da = dy - e^y sum(dy).

    ```mlir
    %y = llmc.log_softmax %a : tensor<2x3xf32>
    ```
  }];
}

#endif
