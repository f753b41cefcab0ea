// Contractions.
#ifndef LLMC_IR_OPS_MATMUL_TD
#define LLMC_IR_OPS_MATMUL_TD

include "ir/Dialect.td"

def Llmc_MatMulOp : Llmc_PureOp<"matmul", [AttrSizedOperandSegments, InferTypeOpAdaptorWithIsCompatible,
    DeclareOpInterfaceMethods<EvaluableOpInterface>, DeclareOpInterfaceMethods<DifferentiableOpInterface>,
    DeclareOpInterfaceMethods<PrecisionOpInterface, ["getResultPrecision"]>, DeclareOpInterfaceMethods<ShardingOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface, ["getTiedOperand"]>]> {
  let summary = "y = op(lhs) op(rhs) + bias + init over the last two dimensions, accumulated in f32";
  let description = [{
    lhs (…, M, K), or (…, K, M) with `transposeLhs`; rhs (…, K, N), or (…, N, K) with `transposeRhs`; y (…, M, N). `bias` (N) is added to every
    row. `init` has y's type and is added; the result takes its buffer. The element type of y is lhs's unless stated: bf16 operands may give f32.
      matmul_c1: lhs and rhs have the same rank of two or more and the same leading dimensions.
      matmul_c2: the contracted sizes agree.
      matmul_c3: bias is (N), init has the result's type.
      matmul_c4: only a rhs that is a matrix and not transposed is packed.

    ```mlir
    %y = llmc.matmul %a, %b {transposeRhs} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<2x4xf32>
    %z = llmc.matmul %a, %w bias %bias : (tensor<2x3xf32>, tensor<3x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$lhs, Llmc_FloatTensor:$rhs, Optional<Llmc_FloatTensor>:$bias, Optional<Llmc_FloatTensor>:$init,
                       UnitAttr:$transposeLhs, UnitAttr:$transposeRhs);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$lhs `,` $rhs (`bias` $bias^)? (`init` $init^)? attr-dict `:` functional-type(operands, $result)";
  let hasFolder = 0;
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs, CArg<"bool", "false">:$transposeLhs, CArg<"bool", "false">:$transposeRhs)>];
}

def Llmc_PackOp : Llmc_PureOp<"pack", [DeclareOpInterfaceMethods<EvaluableOpInterface>,
    DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "a matrix in the layout and type in which a contraction reads it fastest";
  let description = [{
    y = a, or a's transpose, rounded to y's element type; y's encoding is its layout: #llmc.packed, or none for row-major.
      pack_c1: a is a matrix and y has its shape, transposed with `transpose`.
      pack_c2: blocked16x64 holds f32, blocked16x64x2 bf16.

    ```mlir
    %y = llmc.pack %a {transpose} : (tensor<70x40xf32>) -> tensor<40x70xbf16, #llmc.packed<blocked16x64x2>>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$a, UnitAttr:$transpose);
  let results = (outs Llmc_FloatTensor:$result);
  let assemblyFormat = "$a attr-dict `:` functional-type($a, $result)";
  let hasVerifier = 1;
  let extraClassDefinition = "double $cppClass::getFlops() { return 0; }";
}

#endif
