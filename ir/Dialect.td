// The dialect llmc: one dialect for every level of the compiler, from the model's graph to placed kernels.
// Ops have value semantics on statically shaped tensors; facts that passes find out are attributes on ops.
#ifndef LLMC_IR_DIALECT_TD
#define LLMC_IR_DIALECT_TD

include "mlir/IR/OpBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/IR/RegionKindInterface.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "ir/Interfaces.td"

def Llmc_Dialect : Dialect {
  let name = "llmc";
  let summary = "training steps of GPTs, from the model's graph to placed kernels";
  let cppNamespace = "::llmc";
  let useDefaultAttributePrinterParser = 1;
  let hasConstantMaterializer = 1;
}

// A tensor of static shape; the element type is f32, bf16, f16, f64 or an integer or boolean.
def Llmc_Tensor : Type<And<[AnyRankedTensor.predicate, HasStaticShapePred]>, "statically shaped tensor",
                       "::mlir::RankedTensorType">;
def Llmc_FloatTensor : Type<And<[TensorOf<[AnyFloat]>.predicate, HasStaticShapePred]>, "statically shaped float tensor",
                            "::mlir::RankedTensorType">;
def Llmc_IntTensor : Type<And<[TensorOf<[AnyInteger]>.predicate, HasStaticShapePred]>,
                          "statically shaped integer tensor", "::mlir::RankedTensorType">;

class Llmc_Op<string mnemonic, list<Trait> traits = []> : Op<Llmc_Dialect, mnemonic, traits>;

// An op without side effects whose value can be computed from constants on the host.
class Llmc_PureOp<string mnemonic, list<Trait> traits = []>
    : Llmc_Op<mnemonic, !listconcat([Pure, DeclareOpInterfaceMethods<CostOpInterface>], traits)>;

#endif
