// The passes, in pipeline order. Each does one thing, said in its summary, and prints a remark for what it did and for
// what it declined.
#ifndef LLMC_PASSES_TD
#define LLMC_PASSES_TD

include "mlir/Pass/PassBase.td"

class Llmc_Pass<string name> : Pass<"llmc-" # name, "::mlir::ModuleOp"> {
  let dependentDialects = ["::llmc::LlmcDialect"];
}

//===-- Graph level: find what the exporter spelled out in small ops

def RaiseNorm : Llmc_Pass<"raise-norm"> {
  let summary = "find layer_norm and rms_norm spelled out in small ops";
  let description = [{
    Before: `reduce_mean`, `sub`, `mul`, `reduce_mean`, `add`, `sqrt`, `div`, `mul`, `add`. After:
    `llmc.layer_norm %x, %scale, %bias`.
  }];
}
def RaiseActivation : Llmc_Pass<"raise-activation"> {
  let summary = "find gelu (erf or tanh form) and silu spelled out in small ops";
  let description = [{
    Before: `mul %x, 0.5`, `pow %x, 3`, `mul`, `add`, `tanh`, … After: `llmc.gelu %x {approximate}`.
  }];
}
def RaiseAttention : Llmc_Pass<"raise-attention"> {
  let summary = "find softmax(scale q k^T + mask) v, with what its mask means";
  let description = [{
    Before: `transpose`, `matmul`, `mul`, `add`/`select` with a mask, `softmax`, `matmul`, `transpose`. After:
    `llmc.attention(%qkv) {causal}` on token-major tensors; q, k and v that are slices of one tensor stay packed.
  }];
}
def RaiseCrossEntropy : Llmc_Pass<"raise-cross-entropy"> {
  let summary = "find the mean cross-entropy spelled out in small ops";
  let description = [{
    Before: `log_softmax`, selection by label, mean. After: `llmc.softmax_cross_entropy {mean}`.
  }];
}
def FlattenRows : Llmc_Pass<"flatten-rows"> {
  let summary = "bring the residual stream to (B*T, C), so that elementwise ops between contractions fuse";
  let description = [{
    Moves reshapes that split or join leading dimensions below elementwise ops, norms and softmax.
    Before: `add(reshape(%mm : 6x8 -> 2x3x8), %x : 2x3x8)`. After: `reshape(add(%mm, reshape(%x)))`.
  }];
}
def MergeProjections : Llmc_Pass<"merge-projections"> {
  let summary = "make the contractions that compute one attention's queries, keys and values from one input a single "
                "one";
  let description = [{
    Their weights and biases become pieces of one parameter, which has the gradient, the moments and the update; the
    plan still names, stores and exports the pieces. Before: `attention(matmul(%x, @q), matmul(%x, @k),
    matmul(%x, @v))`. After: `attention(matmul(%x, @qkv))`, and @k is
    a "part" with `llmc.piece = {axis = 1, of = @qkv, start = 384}`.
  }];
}

//===-- Training step

def ScaleLoss : Llmc_Pass<"scale-loss"> {
  let summary = "divide the loss by the session's count of labels instead of this batch's own";
  let description = [{
    A mean cross-entropy becomes a sum times `llmc.scalar "loss_scale"`; any other loss is multiplied by it. Sets
    `llmc.token_mean` on the module in the first case.
  }];
}
def BuildGradients : Llmc_Pass<"build-gradients"> {
  let summary = "build the program that also returns the gradient of every parameter";
  let description = [{
    Before: `llmc.program @graph "graph" (…) -> (loss, …)`. After: beside it `@gradients "gradients"`, whose further
    results carry `llmc.gradient_of = @parameter`.
  }];
}
def BuildPrograms : Llmc_Pass<"build-programs"> {
  let summary =
      "build the programs of the plan: forward, step-fused, step, accumulate, update, with the optimizer in them";
  let description = [{
    Replaces @graph and @gradients. Each parameter's update is `llmc.adamw` on `llmc.get`s followed by `llmc.set`s;
    moments are new variables.
  }];
  let options = [Option<"optimizer", "optimizer", "std::string", "\"adamw\"", "adamw or sgd">];
}

def InsertCollectives : Llmc_Pass<"insert-collectives"> {
  let summary = "give each program that ends in an update a twin for several ranks, which sums gradients over them";
  let description = [{
    Gradients travel in messages of at most `bucket-bytes`, in the order in which the backward pass completes them; those
    of at most `small-bytes` have messages of their own, and the loss travels with them. Before: `@step` with `%n = global_norm %g0, %g1`. After: beside it `@"step-ranks"`,
    with `%s:2 = all_reduce_start %g0, %g1 at 0` where %g1 is complete and `%r:2 = all_reduce_wait %s#0, %s#1 at 0`
    behind it; the norm and the updates now read %r. Where no update needs the norm, each follows the wait for its own
    message.
  }];
  let options = [Option<"bucketBytes", "bucket-bytes", "int64_t", "26214400",
                        "gradients that travel in one message, at most; a larger one travels alone">,
                 Option<"smallBytes", "small-bytes", "int64_t", "65536", "a small gradient, at most">];
}
def OverlapCollectives : Llmc_Pass<"overlap-collectives"> {
  let summary = "let the rest of the backward pass run while a message is on its way";
  let description = [{
    Marks each wait that other launches may come before; `schedule` then puts it behind the next start, or where its
    sums are needed. Without the mark a wait follows its start. Before: `all_reduce_wait %s at 0`. After:
    `all_reduce_wait %s at 0 {llmc.deferred}`.
  }];
}

//===-- Kernels

def FuseEpilogue : Llmc_Pass<"fuse-epilogue"> {
  let summary = "let contractions add their bias and sum into an existing gradient";
  let description = [{
    Before: `add(matmul(%a, %b), %bias)`. After: `matmul %a, %b bias %bias`. Before:
    `add(%g, embedding_grad(%ids, %d))`. After: `embedding_grad %ids, %d init %g`.
  }];
}
def ChunkLoss : Llmc_Pass<"chunk-loss"> {
  let summary = "compute a large linear + cross-entropy and its gradient in chunks of rows";
  let description = [{
    Before: `matmul %x, %w : (1024 x 50257)`, `softmax_cross_entropy`, its gradient, `matmul`s of that. After: for each
    chunk of rows a product, its loss and its gradient; then the products of the gradients, summed where they sum over
    rows. A sum that the tied embedding's gradient goes on from is computed only there, where the logits' gradient
    takes less memory than it.
  }];
  let options = [
    Option<"chunkBytes", "chunk-bytes", "int64_t", "int64_t(64) << 20", "the most that a chunk's logits take in f32">,
    Option<"storedBytes", "stored-bytes", "int64_t", "4", "bytes in which one logit's gradient will be stored">,
    Option<"maxChunks", "max-chunks", "int64_t", "int64_t(1) << 32", "the most chunks, whatever they take">
  ];
}
def AssignPrecision : Llmc_Pass<"assign-precision"> {
  let summary = "let contractions and attention read and write bf16";
  let description = [{
    Before: `matmul %x, %w : (f32, f32) -> f32`. After: `matmul cast(%x), cast(%w) : (bf16, bf16) -> bf16`, with a cast to f32 where an op reads it
    that computes in f32. One cast per value; of a product that goes straight into the next contraction none. Masters, moments and gradients of
    parameters stay f32. Runs with --bf16.
  }];
  let options = [
    Option<"keepCopies", "keep-copies", "bool", "false",
      "one bf16 copy of a parameter for all its readers, instead of one for each, which takes no memory in between">
  ];
}
def PackOperands : Llmc_Pass<"pack-operands"> {
  let summary = "bring what bf16 contractions read into the layout they are fastest with";
  let description = [{
    Before: `matmul %x, cast(%w)`. After: `matmul %x, pack(%w)`, the weights rounded and blocked in one pass over memory; a transposed lhs is
    transposed explicitly. Small products and f32 are left alone: there it costs what it wins.
  }];
}
def Decompose : Llmc_Pass<"decompose"> {
  let summary = "replace ops that are no kernel of their own by elementwise ops and row or column reductions";
  let description = [{
    Before: `llmc.layer_norm`. After: two `reduce_sum` along rows and the elementwise ops between them, on (rows, C).
  }];
}
def Fuse : Llmc_Pass<"fuse"> {
  let summary = "gather elementwise ops and reductions into generated kernels";
  let description = [{
    Before: `llmc.add`, `llmc.mul`, `llmc.reduce_sum` … After: one `llmc.fusion` over their common iteration space. A
    column reduction leaves one partial sum per row block and a second small kernel.
  }];
  let options = [
    Option<"single", "single", "bool", "false", "one kernel per op, to see what fusion is worth">,
    Option<"gpu", "gpu", "bool", "false", "tasks for the blocks of a GPU instead of a CPU's threads">
  ];
}
def MaterializeConstants : Llmc_Pass<"materialize-constants"> {
  let summary = "give constants that kernels read a place in memory";
  let description = [{
    Before: `llmc.constant` read by a kernel. After: `llmc.get` of a new variable of kind "constant".
  }];
}

//===-- Plan form

def Schedule : Llmc_Pass<"schedule"> {
  let summary = "order the launches of each program so that fewer bytes are alive at once";
  let description = [{
    An update runs as soon as its gradient is complete and nothing reads the old value any more; else the order of the
    graph is kept.
  }];
}
def Recompute : Llmc_Pass<"recompute"> {
  let summary =
      "compute cheap values of the forward pass again in the backward pass, where keeping them makes the peak";
  let description = [{
    After the schedule, because that decides where the peak is. Before: `%g = fusion(%h) {gelu}`, read by the next
    matmul and, much later, by its gradient. After: a second fusion in front of the gradient. Only what can be computed
    from values that are alive there anyway.
  }];
}
def PlanMemory : Llmc_Pass<"plan-memory"> {
  let summary = "give every value a space and an offset";
  let description = [{
    Sets `llmc.buffers` on ops (one #llmc.buffer per result) and programs (arguments), `llmc.arena_bytes` and
    `llmc.lower_bound_bytes` on programs, `llmc.buffer` on variables. Values whose lifetimes do not meet share memory;
    results take their operand's buffer where the kernel allows it. An output that only the forward program has lies
    in its arena, so that training needs no room for it.
  }];
}
def VerifyPlannable : Llmc_Pass<"verify-plannable"> {
  let summary = "check what the plan emitter relies on: a kernel for every op, and a place for every value that "
                "outlives what it shares memory with";
  let description = [{
    Fails with the op's location where an op has no kernel, a value no buffer, or two live values overlap.
  }];
}

#endif
