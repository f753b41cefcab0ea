// What a pass may ask any op: each interface is one fact an op knows about itself. To add an op is to answer these.
#ifndef LLMC_IR_INTERFACES_TD
#define LLMC_IR_INTERFACES_TD

include "mlir/IR/OpBase.td"

// Gradient.
def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "An op that knows its vector-Jacobian product.";
  let methods = [InterfaceMethod<[{
      Builds the gradients of the operands from those of the results, at the builder's insertion point. A result that
      the loss does not depend on has a null gradient. Returns one value per operand, of the operand's type, null where
      no gradient flows.
    }],
                                 "::llvm::SmallVector<::mlir::Value>", "buildGradient",
                                 (ins "::mlir::OpBuilder &":$builder,
                                     "::llvm::ArrayRef<::mlir::Value>":$resultGradients)>];
}

// Elementwise math on lanes.
def LaneOpInterface : OpInterface<"LaneOpInterface"> {
  let cppNamespace = "::llmc";
  let description = [{
    An elementwise op: each result element is a function of the operands' elements at the same (broadcast) index. The
    function is written once over an abstract number; lanes (generated code) and doubles (host evaluation) are two
    instances of it.
  }];
  let methods =
      [InterfaceMethod<"Emits the math on lanes; operands are in compute type (f32 for floats).", "::llmc::Lanes",
                       "emitLanes", (ins "::llmc::LaneScope &":$scope, "::llvm::ArrayRef<::llmc::Lanes>":$operands)>,
       InterfaceMethod<"The same on doubles.", "double", "evaluateFloat", (ins "::llvm::ArrayRef<double>":$operands)>,
       InterfaceMethod<"The same on integers, when operands and result are integers or booleans.", "int64_t",
                       "evaluateInteger", (ins "::llvm::ArrayRef<int64_t>":$operands)>];
}

// Host evaluation: constant folding, and the f64 oracle of the tests.
def EvaluableOpInterface : OpInterface<"EvaluableOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "An op that can be computed on the host in f64 / i64, slowly and plainly.";
  let methods = [InterfaceMethod<
      "Computes the results from the operands' values. Fails on values it is not defined for.", "::mlir::LogicalResult",
      "evaluate",
      (ins "::llvm::ArrayRef<::llmc::HostTensor>":$operands,
          "::llvm::SmallVectorImpl<::llmc::HostTensor> &":$results)>];
}

// Precision.
def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "How an op stores its f32 operands and results when the plan computes in bf16. Without it all stay f32.";
  let methods = [
    InterfaceMethod<
      "keepF32: read as f32; follow: read as stored, computed in f32; bf16: read as bf16, accumulated in f32.",
      "::llmc::PrecisionPolicy", "getOperandPrecision", (ins "unsigned":$operand)>,
    InterfaceMethod<
      "keepF32: written as f32; follow: as bf16 where every reader may read that; bf16: always as bf16.",
      "::llmc::PrecisionPolicy", "getResultPrecision", (ins "unsigned":$result), "",
      "return ::llmc::PrecisionPolicy::keepF32;">
  ];
}

// Cost.
def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "What an op costs.";
  let methods = [InterfaceMethod<"Floating-point operations (a multiply-add is two).", "double", "getFlops">];
}

// Sharding.
def ShardingOpInterface : OpInterface<"ShardingOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "How a split operand splits the result: index notation like an einsum, one letter per dimension.";
  let methods = [InterfaceMethod<[{
      For example "ik,kj->ij" for a matmul. A letter shared by an operand and the result may be split together; a letter
      absent from the result leaves partial sums when split; a letter in `*` after the rule, e.g. "ij->ij *j", must stay
      whole.
    }],
                                 "std::string", "getShardingRule">];
}

// Lowering to a launch.
def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "An op that is one launch of a kind of kernel of runtime/Kernels.def.";
  let methods =
      [InterfaceMethod<"Names the kernel, its operands in order and its integer and float arguments.", "void",
                       "describeLaunch", (ins "::llmc::LaunchDescription &":$launch)>,
       InterfaceMethod<"Whether the kernel works when result `result` lies in the very buffer of operand `operand` "
                       "(each element is read before it is written).",
                       "bool", "canShareBuffer", (ins "unsigned":$operand, "unsigned":$result), "", "return false;">,
       InterfaceMethod<"The operand in whose buffer result `result` must lie, because the kernel adds to it; -1 when "
                       "there is none.",
                       "int", "getTiedOperand", (ins "unsigned":$result), "", "return -1;">];
}

// Communication.
def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::llmc";
  let description = [{
    One half of a collective: a launch that hands its operands to the network, or one that waits for them. The operands
    of a start lie one behind the other in memory, each at the next multiple of 64 bytes; between the halves nothing
    else touches them.
  }];
  let methods = [
    InterfaceMethod<"The pair's place in the one order in which all ranks start and end a program's collectives.",
      "int64_t", "getPosition">,
    InterfaceMethod<"Whether this half starts the collective; else it waits for it.", "bool", "isStart">
  ];
}

// Lowering into smaller ops.
def DecomposableOpInterface : OpInterface<"DecomposableOpInterface"> {
  let cppNamespace = "::llmc";
  let description =
      "An op that is no kernel of its own but elementwise ops and reductions that the fusion pass gathers.";
  let methods = [InterfaceMethod<"Builds the equivalent small ops; returns one value per result.",
                                 "::llvm::SmallVector<::mlir::Value>", "decompose",
                                 (ins "::mlir::OpBuilder &":$builder)>];
}

// Views.
def ViewOpInterface : OpInterface<"ViewOpInterface"> {
  let cppNamespace = "::llmc";
  let description = "An op whose result lies in its first operand's buffer, at a byte offset: no kernel runs.";
  let methods = [InterfaceMethod<"Whether this instance is a view; else it runs a kernel.", "bool", "isView", (ins), "",
                                 "return true;">,
                 InterfaceMethod<"Bytes from the operand's start to the result's.", "int64_t", "getViewOffsetBytes",
                                 (ins), "", "return 0;">];
}

#endif
