// Rows of a table picked by ids.
#ifndef LLMC_IR_OPS_EMBEDDING_TD
#define LLMC_IR_OPS_EMBEDDING_TD

include "ir/Dialect.td"

def Llmc_EmbeddingOp : Llmc_PureOp<"embedding", [InferTypeOpAdaptor, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                                 DeclareOpInterfaceMethods<DifferentiableOpInterface>,
                                                 DeclareOpInterfaceMethods<KernelOpInterface>]> {
  let summary = "y = table[ids] along the table's first dimension";
  let description = [{
    table (V, C…), ids (…), y (…, C…). An id outside [0, V) fails the step when it runs. Also integer tables (evaluated
    at compile time).
    embedding_c1: table has a first dimension.

    ```mlir
    %y = llmc.embedding %table, %ids : (tensor<7x3xf32>, tensor<2x5xi64>) -> tensor<2x5x3xf32>
    ```
  }];
  let arguments = (ins Llmc_Tensor:$table, Llmc_IntTensor:$ids);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$table `,` $ids attr-dict `:` functional-type(operands, $result)";
  let hasFolder = 1;
}
def Llmc_EmbeddingGradOp
    : Llmc_PureOp<"embedding_grad", [DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                     DeclareOpInterfaceMethods<KernelOpInterface, ["getTiedOperand"]>]> {
  let summary = "dTable[v] = sum of dOut over the positions where ids = v, plus init";
  let description = [{
    ids (…), dOut (…, C…), dTable (V, C…); positions are summed in order. With `init` the result takes its buffer.
      embedding_grad_c1: dOut's shape is ids' shape followed by the table's row; init has the result's type.

    ```mlir
    %d = llmc.embedding_grad %ids, %dout : (tensor<2x5xi64>, tensor<2x5x3xf32>) -> tensor<7x3xf32>
    ```
  }];
  let arguments = (ins Llmc_IntTensor:$ids, Llmc_FloatTensor:$dOut, Optional<Llmc_FloatTensor>:$init);
  let results = (outs Llmc_FloatTensor:$dTable);
  let assemblyFormat = "$ids `,` $dOut (`init` $init^)? attr-dict `:` functional-type(operands, $dTable)";
  let hasVerifier = 1;
}

#endif
