// Ops that move elements without computing: constants, views, permutations, slices and their inverses.
#ifndef LLMC_IR_OPS_SHAPE_TD
#define LLMC_IR_OPS_SHAPE_TD

include "ir/Dialect.td"

class Llmc_ShapeOp<string mnemonic, list<Trait> traits = []>
    : Llmc_PureOp<mnemonic, !listconcat([DeclareOpInterfaceMethods<EvaluableOpInterface>], traits)> {
  let hasFolder = 1;
  let hasVerifier = 1;
  code common = [{
    double $cppClass::getFlops() { return 0; }
    ::mlir::OpFoldResult $cppClass::fold(FoldAdaptor adaptor) {
      if (::mlir::OpFoldResult simpler = foldTrivial())
        return simpler;
      return ::llmc::foldByEvaluation(getOperation(), adaptor.getOperands());
    }
  }];
  let extraClassDefinition = common;
  let extraClassDeclaration = "::mlir::OpFoldResult foldTrivial();";
}

def Llmc_ConstantOp : Llmc_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>,
                                               DeclareOpInterfaceMethods<EvaluableOpInterface>]> {
  let summary = "a tensor known at compile time";
  let description = [{
    ```mlir
    %c = llmc.constant dense<5.000000e-01> : tensor<f32>
    ```
  }];
  let arguments = (ins ElementsAttr:$value);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
  let extraClassDefinition = "double $cppClass::getFlops() { return 0; }";
}

def Llmc_ReshapeOp : Llmc_ShapeOp<"reshape", [DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                              DeclareOpInterfaceMethods<ViewOpInterface>]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    Never a kernel: the result is a view of the operand. reshape_c1: both shapes have the same number of elements;
    reshape_c2: and the same element type.

    ```mlir
    %y = llmc.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_TransposeOp
    : Llmc_ShapeOp<"transpose", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                 DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "dimensions in another order: result dimension i is operand dimension permutation[i]";
  let description = [{
    transpose_c1: `permutation` is one of the operand's dimensions. transpose_c2: at most six dimensions remain after
    merging neighbours.

    ```mlir
    %y = llmc.transpose %a {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a, DenseI64ArrayAttr:$permutation);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_SliceOp : Llmc_ShapeOp<"slice", [InferTypeOpAdaptor,
                                          DeclareOpInterfaceMethods<ViewOpInterface, ["isView", "getViewOffsetBytes"]>,
                                          DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                          DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "elements starts[d], starts[d] + steps[d], … along each dimension d, sizes[d] of them";
  let description = [{
    slice_c1: starts, sizes and steps have one entry per dimension. slice_c2: every index lies in the operand; steps are
    not zero (negative ones walk backwards).

    ```mlir
    %y = llmc.slice %a {starts = array<i64: 0, 1>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>}
      : (tensor<2x3xf32>) -> tensor<2x2xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_PlaceOp : Llmc_ShapeOp<"place", [DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                          DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "operands written into parts of one result: concat, pad, and the gradient of slice";
  let description = [{
    Operand k goes to indices starts[k*rank + d] + i * steps[k*rank + d]; elements that no operand covers are `fill`.
    Operands do not overlap (later ones win where they do). place_c1: one start and step per operand and dimension.
    place_c2: every operand lies inside the result.

    ```mlir
    %y = llmc.place %a, %b {starts = array<i64: 0, 0, 0, 3>, steps = array<i64: 1, 1, 1, 1>, fill = 0.000000e+00 : f64}
      : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Variadic<Llmc_Tensor>:$parts, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps,
      F64Attr:$fill);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type($parts, $result)";
  let extraClassDeclaration = [{
    ::mlir::OpFoldResult foldTrivial();
    /// Whether the operands together have as many elements as the result.
    bool coversResult();
  }];
}

def Llmc_EmptyOp : Llmc_PureOp<"empty"> {
  let summary = "a tensor whose elements are not defined yet: what place_into writes into first";
  let description = [{
    ```mlir
    %e = llmc.empty : tensor<2x4xf32>
    ```
  }];
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
  let extraClassDefinition = "double $cppClass::getFlops() { return 0; }";
}

def Llmc_PlaceIntoOp
    : Llmc_PureOp<"place_into", [AllTypesMatch<["into", "result"]>, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                 DeclareOpInterfaceMethods<KernelOpInterface, ["getTiedOperand"]>]> {
  let summary = "`into` with `part` written at starts[d] + i * steps[d]; the result takes into's buffer";
  let description = [{
    One launch of what place means. place_into_c1: the part lies inside.

    ```mlir
    %y = llmc.place_into %a, %e {starts = array<i64: 0, 1>, steps = array<i64: 1, 1>}
      : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$part, Llmc_Tensor:$into, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$part `,` $into attr-dict `:` functional-type(operands, $result)";
  let hasVerifier = 1;
  let extraClassDefinition = "double $cppClass::getFlops() { return 0; }";
}

#endif
