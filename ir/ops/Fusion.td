// A generated kernel: elementwise ops and reductions that run as one launch.
#ifndef LLMC_IR_OPS_FUSION_TD
#define LLMC_IR_OPS_FUSION_TD

include "ir/Dialect.td"

def Llmc_FusionOp
    : Llmc_PureOp<"fusion", [IsolatedFromAbove, SingleBlock, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                             DeclareOpInterfaceMethods<KernelOpInterface, ["canShareBuffer"]>]> {
  let summary = "one generated kernel over an iteration space (rows, cols)";
  let description = [{
    The body is elementwise ops (LaneOpInterface), constants and reductions on tensors of the form of the iteration
    space: every value in the body has the rank of the iteration space `space` (d0 … dk), each dimension full or 1
    (broadcast). The last dimension are the lanes, the others together the rows. Operands are viewed under the block
    arguments' shapes: an operand has as many elements as its argument; so do results and what is yielded.
      fusion_c1: every body value has rank k+1 with dimensions d_i or 1 (constants may have rank 0).
      fusion_c2: a reduction in the body runs over the last axis only (a row reduction, usable by later body ops), or
          over all axes but the last (a column reduction) with its result only yielded; a column reduction yields (P,
          cols) partial sums, one per row block, written as a result of shape P x cols, P = ceil(rows / rowBlock).
      fusion_c3: yielded values are the space's full shape, (rows, 1) shapes, or column partials.
    `rowBlock` x `colBlock` is what one task computes; colBlock < cols only when there is no row reduction.

    ```mlir
    %y = llmc.fusion(%x, %g) {space = array<i64: 6, 8>, rowBlock = 6 : i64, colBlock = 8 : i64}
      : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32> {
    ^bb0(%a: tensor<6x8xf32>, %b: tensor<1x8xf32>):
      %0 = llmc.mul %a, %b : (tensor<6x8xf32>, tensor<1x8xf32>) -> tensor<6x8xf32>
      llmc.yield %0 : tensor<6x8xf32>
    }
    ```
  }];
  let arguments = (ins Variadic<Llmc_Tensor>:$inputs, DenseI64ArrayAttr:$space, I64Attr:$rowBlock, I64Attr:$colBlock);
  let results = (outs Variadic<Llmc_Tensor>:$outputs);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "`(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs) $body";
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// Product of all dimensions of the space but the last.
    int64_t getRows();
    /// The last dimension of the space.
    int64_t getCols() { return getSpace().back(); }
    /// ceil(rows / rowBlock): the number of partial sums of a column reduction.
    int64_t getNumRowBlocks() { return (getRows() + getRowBlock() - 1) / getRowBlock(); }
    /// Whether an op of the body (or none) sums over rows: what it yields are partial sums (fusion_c2).
    bool isColumnReduction(::mlir::Operation *op);
  }];
}
def Llmc_YieldOp : Llmc_Op<"yield", [Pure, Terminator, HasParent<"FusionOp">]> {
  let summary = "the results of a fusion";
  let description = [{
    ```mlir
    llmc.yield %y : tensor<6x8xf32>
    ```
  }];
  let arguments = (ins Variadic<Llmc_Tensor>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
}

#endif
