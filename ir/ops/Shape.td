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

def Llmc_ConstantOp : Llmc_PureOp<"constant", [ConstantLike, AllTypesMatch<["value", "result"]>, DeclareOpInterfaceMethods<EvaluableOpInterface>]> {
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

def Llmc_ReshapeOp : Llmc_ShapeOp<"reshape", [DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<ViewOpInterface>]> {
  let summary = "the same elements in row-major order under another shape";
  let description = [{
    Never a kernel: the result is a view of the operand. reshape_c1: both shapes have the same number of elements; reshape_c2: and the same
    element type.

    ```mlir
    %y = llmc.reshape %a : (tensor<2x3xf32>) -> tensor<6xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_TransposeOp : Llmc_ShapeOp<"transpose", [DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                                  DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "dimensions in another order: result dimension i is operand dimension permutation[i]";
  let description = [{
    transpose_c1: `permutation` is one of the operand's dimensions. transpose_c2: at most six dimensions remain after merging neighbours.

    ```mlir
    %y = llmc.transpose %a {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a, DenseI64ArrayAttr:$permutation);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_BroadcastToOp : Llmc_ShapeOp<"broadcast_to", [DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "a repeated along its dimensions of size one and new leading ones, as NumPy does";
  let description = [{
    broadcast_to_c1: the operand's shape broadcasts to the result's.

    ```mlir
    %y = llmc.broadcast_to %a : (tensor<1x3xf32>) -> tensor<2x3xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_SliceOp : Llmc_ShapeOp<"slice", [DeclareOpInterfaceMethods<InferTypeOpInterface>, DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                          DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "elements starts[d], starts[d] + steps[d], … along each dimension d, sizes[d] of them";
  let description = [{
    slice_c1: starts, sizes and steps have one entry per dimension. slice_c2: every index lies in the operand; steps are not zero (negative
    ones walk backwards).

    ```mlir
    %y = llmc.slice %a {starts = array<i64: 0, 1>, sizes = array<i64: 2, 2>, steps = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$a, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$sizes, DenseI64ArrayAttr:$steps);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
}

def Llmc_PlaceOp : Llmc_ShapeOp<"place", [DeclareOpInterfaceMethods<DifferentiableOpInterface>, DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "operands written into parts of one result: concat, pad, and the gradient of slice";
  let description = [{
    Operand k goes to indices starts[k*rank + d] + i * steps[k*rank + d]; elements that no operand covers are `fill`. Operands do not overlap
    (later ones win where they do). place_c1: one start and step per operand and dimension. place_c2: every operand lies inside the result.

    ```mlir
    %y = llmc.place %a, %b {starts = array<i64: 0, 0, 0, 3>, steps = array<i64: 1, 1, 1, 1>, fill = 0.000000e+00 : f64}
      : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Variadic<Llmc_Tensor>:$parts, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$steps, F64Attr:$fill);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$parts attr-dict `:` functional-type($parts, $result)";
  let extraClassDeclaration = [{
    ::mlir::OpFoldResult foldTrivial();
    /// Whether every element of the result is covered by an operand.
    bool coversResult();
  }];
}

#endif
