// Scaled dot-product attention, never through a (T, T) matrix.
#ifndef LLMC_IR_OPS_ATTENTION_TD
#define LLMC_IR_OPS_ATTENTION_TD

include "ir/Dialect.td"

//   attention_c1: inputs are q (B, T, H*D), k (B, S, Hkv*D), v (B, S, Hkv*D), or one packed (B, T, (H+2*Hkv)*D) with
//       q, k, v side by side.
//   attention_c2: H is a multiple of Hkv; query head h reads key head h / (H/Hkv).
//   attention_c3: mask broadcasts to (B, H, T, S).
class Llmc_AttentionOp<string mnemonic, list<Trait> traits = []>
    : Llmc_PureOp<mnemonic, !listconcat([AttrSizedOperandSegments, DeclareOpInterfaceMethods<EvaluableOpInterface>,
                                         DeclareOpInterfaceMethods<PrecisionOpInterface, ["getResultPrecision"]>,
                                         DeclareOpInterfaceMethods<KernelOpInterface>],
                                        traits)> {
  let hasVerifier = 1;
}

def Llmc_AttentionOp : Llmc_AttentionOp<"attention", [DeclareOpInterfaceMethods<DifferentiableOpInterface>]> {
  let summary = "out = softmax(scale q k^T + mask) v per head, with the logarithm of the softmax's sum";
  let description = [{
    Query t sees key s when not `causal` or s <= t + S - T; with `window` w > 0 also s > t + S - T - w. `mask` (f32) is
    added to the scaled scores. out is (B, T, H*D), lse (B, H, T) f32. A query that sees no key gives out = 0 and
    lse = -inf. No gradient flows to the mask nor from lse: only a mask that does not train belongs here.

    ```mlir
    %out, %lse = llmc.attention(%qkv)
        {heads = 4 : i64, kvHeads = 4 : i64, causal, window = 0 : i64, scale = 2.500000e-01 : f64}
      : (tensor<2x32x192xf32>) -> (tensor<2x32x64xf32>, tensor<2x4x32xf32>)
    ```
  }];
  let arguments = (ins Variadic<Llmc_FloatTensor>:$inputs, Optional<Llmc_FloatTensor>:$mask, I64Attr:$heads,
      I64Attr:$kvHeads, UnitAttr:$causal, I64Attr:$window, F64Attr:$scale);
  let results = (outs Llmc_FloatTensor:$out, Llmc_FloatTensor:$lse);
  let assemblyFormat = "`(` $inputs `)` (`mask` $mask^)? attr-dict `:` functional-type(operands, results)";
}
def Llmc_AttentionGradOp : Llmc_AttentionOp<"attention_grad"> {
  let summary = "the gradients of attention's inputs";
  let description = [{
    With p = exp(scale q k^T + mask - lse), delta = sum(dOut out): dv = p^T dOut, ds = p (dOut v^T - delta),
    dq = scale ds k, dk = scale ds^T q. Dao et al., arXiv:2205.14135, section B.2. Results have the inputs' types,
    packed when those are.

    ```mlir
    %dqkv = llmc.attention_grad(%qkv) out %out lse %lse dOut %dout
        {heads = 4 : i64, kvHeads = 4 : i64, causal, window = 0 : i64, scale = 2.500000e-01 : f64}
      : (tensor<2x32x192xf32>, tensor<2x32x64xf32>, tensor<2x4x32xf32>, tensor<2x32x64xf32>) -> tensor<2x32x192xf32>
    ```
  }];
  let arguments = (ins Variadic<Llmc_FloatTensor>:$inputs, Optional<Llmc_FloatTensor>:$mask, Llmc_FloatTensor:$out,
      Llmc_FloatTensor:$lse, Llmc_FloatTensor:$dOut, I64Attr:$heads, I64Attr:$kvHeads, UnitAttr:$causal,
      I64Attr:$window, F64Attr:$scale);
  let results = (outs Variadic<Llmc_FloatTensor>:$gradients);
  let assemblyFormat = "`(` $inputs `)` (`mask` $mask^)? `out` $out `lse` $lse `dOut` $dOut attr-dict `:` "
                       "functional-type(operands, results)";
}

#endif
