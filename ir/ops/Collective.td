// Communication between ranks as ops, in pairs: a start hands its buffers to the network, a wait gives them back. What
// the schedule puts between the two runs while the network works.
#ifndef LLMC_IR_OPS_COLLECTIVE_TD
#define LLMC_IR_OPS_COLLECTIVE_TD

include "ir/Dialect.td"

// Both ops of a pair: results in their operands' buffers, one for one.
class Llmc_CollectiveOp<string mnemonic>
    : Llmc_PureOp<mnemonic, [InferTypeOpAdaptor, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                             DeclareOpInterfaceMethods<ShardingOpInterface>,
                             DeclareOpInterfaceMethods<CollectiveOpInterface>,
                             DeclareOpInterfaceMethods<KernelOpInterface, ["getTiedOperand"]>]> {
  let arguments = (ins Variadic<Llmc_FloatTensor>:$parts, I64Attr:$position);
  let results = (outs Variadic<Llmc_FloatTensor>:$sums);
  let assemblyFormat = "$parts `at` $position attr-dict `:` type($parts)";
  let hasVerifier = 1;
  // On one rank the sums are the parts.
  let extraClassDefinition = [{
    ::mlir::LogicalResult $cppClass::verify() { return ::llmc::verifyCollective(getOperation(), getPosition()); }
    ::mlir::LogicalResult $cppClass::inferReturnTypes(::mlir::MLIRContext *, std::optional<::mlir::Location>,
        Adaptor adaptor, ::llvm::SmallVectorImpl<::mlir::Type> &types) {
      ::llvm::append_range(types, adaptor.getParts().getTypes());
      return ::mlir::success();
    }
    ::mlir::LogicalResult $cppClass::evaluate(::llvm::ArrayRef<::llmc::HostTensor> operands,
                                              ::llvm::SmallVectorImpl<::llmc::HostTensor> &results) {
      ::llvm::append_range(results, operands);
      return ::mlir::success();
    }
    std::string $cppClass::getShardingRule() { return ::llmc::collectiveShardingRule(getParts()); }
    int $cppClass::getTiedOperand(unsigned result) { return int(result); }
  }];
}

def Llmc_AllReduceStartOp : Llmc_CollectiveOp<"all_reduce_start"> {
  let summary = "begins to sum tensors over all ranks, in their own buffers";
  let description = [{
    The parts form one message: they lie one behind the other in memory, each at the next multiple of 64 bytes. The
    results are the parts in flight: only the all_reduce_wait of the same `position` may read them. `position` counts
    the pairs of a program from 0: all ranks start them, and wait for them, in this order. Elements are summed in f32.
    On one rank the sums are the parts.
      all_reduce_c1: there are parts, of one element type (f32 or bf16 where a kernel runs it).
      all_reduce_c2: `position` is not negative.

    ```mlir
    %s:2 = llmc.all_reduce_start %dw, %db at 0 : tensor<7x3xf32>, tensor<3xf32>
    ```
  }];
}
def Llmc_AllReduceWaitOp : Llmc_CollectiveOp<"all_reduce_wait"> {
  let summary = "the sums over all ranks that an all_reduce_start began, once they are complete";
  let description = [{
    Takes all results of its start, in order (all_reduce_c1, all_reduce_c2 hold here too). Until here nothing else
    touches the buffers: verify-plannable proves it, as it proves that each start has its wait and that positions rise.

    ```mlir
    %s:2 = llmc.all_reduce_start %dw, %db at 0 : tensor<7x3xf32>, tensor<3xf32>
    %dw1, %db1 = llmc.all_reduce_wait %s#0, %s#1 at 0 : tensor<7x3xf32>, tensor<3xf32>
    ```
  }];
}

#endif
