// What makes a graph a training step: programs, variables that outlive a step, hyperparameters, the optimizer.
#ifndef LLMC_IR_OPS_TRAINING_TD
#define LLMC_IR_OPS_TRAINING_TD

include "ir/Dialect.td"

def Llmc_VariableOp : Llmc_Op<"variable", [Symbol]> {
  let summary = "a named tensor that outlives a step: a parameter, a constant of the model, an optimizer moment or a "
                "kept gradient";
  let description = [{
    `kind` is "parameter" (trains), "constant" (does not), "moment" (optimizer state, starts at zero), "gradient"
    (summed over micro-batches) or "part": what the model knows as a parameter of its own and the step as a piece of
    another one, whose value its parts give (ir/Piece.h). `value` is the initial value of parameters, parts and
    constants, in the tensor's type (dense_resource: mapped from the model's file, never copied).
    variable_c2: `kind` is one of these. variable_c3: `value` has the variable's type.
    variable_c4: a part, and nothing else, has llmc.piece. variable_c5: the piece lies inside a variable of its own rank
    and element type.
    `decays` says that weight decay applies. `source` is the initializer's name in the ONNX file, where that differs
    from the symbol.

    ```mlir
    llmc.variable @wte "parameter" tensor<7x3xf32> = dense<0.000000e+00> : tensor<7x3xf32> {decays}
    llmc.variable @qkv "parameter" tensor<3x9xf32> {decays}
    llmc.variable @k "part" tensor<3x3xf32> = dense<0.000000e+00> : tensor<3x3xf32>
      {llmc.piece = {axis = 1 : i64, of = @qkv, start = 3 : i64}}
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, TypeAttrOf<AnyRankedTensor>:$type,
      OptionalAttr<ElementsAttr>:$value, UnitAttr:$decays, OptionalAttr<StrAttr>:$source);
  let assemblyFormat = "$sym_name $kind $type (`=` $value^)? attr-dict";
  let hasVerifier = 1;
}

def Llmc_ProgramOp : Llmc_Op<"program", [IsolatedFromAbove, FunctionOpInterface, SingleBlock]> {
  let summary = "one program of the plan: inputs to outputs, with variables read and written inside";
  let description = [{
    `kind` is "graph" (as imported), then "forward", "step-fused", "step", "accumulate" or "update", and
    "step-fused-ranks", "step-ranks" and "update-ranks" for several ranks. Arguments carry
    `llmc.name` (the graph input's name) and `llmc.role` ("tokens", "labels", "labels_unshifted" or ""); results carry
    `llmc.name` and `llmc.role` ("loss", "logits", "grad_norm" or "").

    ```mlir
    llmc.program @graph "graph" (%x: tensor<f32> {llmc.name = "x"}) -> (tensor<f32> {llmc.name = "loss"}) {
      %loss = llmc.exp %x : tensor<f32>
      llmc.return %loss : tensor<f32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$kind, TypeAttrOf<FunctionType>:$function_type,
      OptionalAttr<DictArrayAttr>:$arg_attrs, OptionalAttr<DictArrayAttr>:$res_attrs);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
  // The body starts without a block, as func.func's: call addEntryBlock().
  let builders = [OpBuilder<(ins "::llvm::StringRef":$name, "::llvm::StringRef":$kind, "::mlir::FunctionType":$type)>];
  let skipDefaultBuilders = 1;
}

def Llmc_ReturnOp : Llmc_Op<"return", [Pure, Terminator, HasParent<"ProgramOp">]> {
  let summary = "the outputs of a program";
  let description = [{
    return_c1: operand types are the program's result types.

    ```mlir
    llmc.return %loss : tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<Llmc_Tensor>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
  let hasVerifier = 1;
}

def Llmc_GetOp : Llmc_Op<"get", [MemoryEffects<[MemRead]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "the value of a variable at this point of the program";
  let description = [{
    variable_c1: the symbol names a variable of the result's type.

    ```mlir
    %w = llmc.get @wte : tensor<7x3xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$variable attr-dict `:` type($result)";
}
def Llmc_SetOp : Llmc_Op<"set", [MemoryEffects<[MemWrite]>, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "gives a variable a new value; values read before must not be used after";
  let description = [{
    ```mlir
    llmc.set @wte, %w : tensor<7x3xf32>
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$variable, Llmc_Tensor:$value);
  let assemblyFormat = "$variable `,` $value attr-dict `:` type($value)";
}

def Llmc_ScalarOp : Llmc_PureOp<"scalar"> {
  let summary =
      "a hyperparameter that the session writes before each run, by its name in runtime/Plan.h's kScalarNames";
  let description = [{
    f32, or i32 bits for seed_lo, seed_hi and step.

    ```mlir
    %lr = llmc.scalar "lr" : tensor<f32>
    ```
  }];
  let arguments = (ins StrAttr:$name);
  let results = (outs Llmc_Tensor:$result);
  let assemblyFormat = "$name attr-dict `:` type($result)";
  let extraClassDefinition = "double $cppClass::getFlops() { return 0; }";
}

def Llmc_AdamWOp : Llmc_PureOp<"adamw", [DeclareOpInterfaceMethods<DecomposableOpInterface>,
                                         AllTypesMatch<["parameter", "newParameter"]>, AllTypesMatch<["m", "newM"]>,
                                         AllTypesMatch<["v", "newV"]>]> {
  let summary = "one AdamW update of one parameter";
  let description = [{
    g = gradient * clipFactor; m' = beta1 m + (1 - beta1) g; v' = beta2 v + (1 - beta2) g^2;
    p' = p (1 - lr weightDecay) - lr (m' / c1) / (sqrt(v' / c2) + eps), c1 and c2 the bias corrections; weightDecay is 0
    unless `decays`. Loshchilov and Hutter, arXiv:1711.05101, with the order of operations of torch.optim.AdamW.
    Hyperparameters are llmc.scalar ops.

    ```mlir
    %p1, %m1, %v1 = llmc.adamw %p, %g, %m, %v clip %c {decays}
      : (tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>, tensor<f32>)
        -> (tensor<7x3xf32>, tensor<7x3xf32>, tensor<7x3xf32>)
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$parameter, Llmc_FloatTensor:$gradient, Llmc_FloatTensor:$m,
      Llmc_FloatTensor:$v, Optional<Llmc_FloatTensor>:$clipFactor, UnitAttr:$decays);
  let results = (outs Llmc_FloatTensor:$newParameter, Llmc_FloatTensor:$newM, Llmc_FloatTensor:$newV);
  let assemblyFormat =
      "$parameter `,` $gradient `,` $m `,` $v (`clip` $clipFactor^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition =
      "double $cppClass::getFlops() { return 14.0 * double(getParameter().getType().getNumElements()); }";
}
def Llmc_SgdOp : Llmc_PureOp<"sgd", [DeclareOpInterfaceMethods<DecomposableOpInterface>,
                                     AllTypesMatch<["parameter", "newParameter"]>]> {
  let summary = "one step of stochastic gradient descent: p' = p - lr (clipFactor g + weightDecay p)";
  let description = [{
    weightDecay is 0 unless `decays`.

    ```mlir
    %p1 = llmc.sgd %p, %g {decays} : (tensor<7x3xf32>, tensor<7x3xf32>) -> tensor<7x3xf32>
    ```
  }];
  let arguments = (ins Llmc_FloatTensor:$parameter, Llmc_FloatTensor:$gradient, Optional<Llmc_FloatTensor>:$clipFactor,
      UnitAttr:$decays);
  let results = (outs Llmc_FloatTensor:$newParameter);
  let assemblyFormat =
      "$parameter `,` $gradient (`clip` $clipFactor^)? attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition =
      "double $cppClass::getFlops() { return 4.0 * double(getParameter().getType().getNumElements()); }";
}
def Llmc_GlobalNormOp : Llmc_PureOp<"global_norm", [DeclareOpInterfaceMethods<DecomposableOpInterface>]> {
  let summary = "the 2-norm of all gradients together";
  let description = [{
    ```mlir
    %n = llmc.global_norm %a, %b : (tensor<7x3xf32>, tensor<3xf32>) -> tensor<f32>
    ```
  }];
  let arguments = (ins Variadic<Llmc_FloatTensor>:$gradients);
  let results = (outs Llmc_FloatTensor:$norm);
  let assemblyFormat = "$gradients attr-dict `:` functional-type($gradients, $norm)";
  let extraClassDefinition = [{
    double $cppClass::getFlops() {
      double flops = 0;
      for (::mlir::Value gradient : getGradients())
        flops += 2.0 * double(::mlir::cast<::mlir::ShapedType>(gradient.getType()).getNumElements());
      return flops;
    }
  }];
}

#endif
