"""Queries, keys and values of different widths, with weights stored (out, in), merged and apart: the same numbers, and the way back to ONNX."""
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from Plans import Check, load_file, losses, save_file, tool

B, T, C, HEADS, KV_HEADS, D, V = 2, 9, 24, 4, 2, 6, 31
ROUNDING = 4e-6  # of a tensor's largest entry: another order of the same f32 sums, over five steps


def model(rng):
    """One attention layer: query heads 0 and 1 read key head 0, 2 and 3 read 1."""
    nodes, initializers = [], []

    def tensor(name, value):
        initializers.append(numpy_helper.from_array(value, name))
        return name

    def node(kind, name, *inputs, **attributes):
        nodes.append(helper.make_node(kind, inputs, [name], name=name, **attributes))
        return name

    weight = lambda name, *shape: tensor(name, (0.2 * rng.standard_normal(shape)).astype(np.float32))
    shape = lambda name, *sizes: tensor(name, np.array(sizes, np.int64))

    def linear(x, name, width):
        product = node("MatMul", f"{name}.product", x, node("Transpose", f"{name}.transposed", weight(f"{name}.weight", width, C), perm=[1, 0]))
        return node("Add", name, product, weight(f"{name}.bias", width))

    def heads(x, name, count):
        split = node("Transpose", f"{name}.heads", node("Reshape", f"{name}.split", x, shape(f"{name}.shape", B, T, count, D)), perm=[0, 2, 1, 3])
        if count == HEADS:
            return split
        repeated = node("Expand", f"{name}.repeated", node("Unsqueeze", f"{name}.five", split, shape(f"{name}.axis", 2)),
                        shape(f"{name}.repeats", B, count, HEADS // count, T, D))
        return node("Reshape", f"{name}.all", repeated, shape(f"{name}.merged", B, HEADS, T, D))

    table = weight("table", V, C)
    x = node("Gather", "x", table, "ids")
    v, k, q = (linear(x, f"attn.{part}", count * D) for part, count in (("value", KV_HEADS), ("key", KV_HEADS), ("query", HEADS)))
    q, k, v = heads(q, "q", HEADS), heads(k, "k", KV_HEADS), heads(v, "v", KV_HEADS)
    scores = node("MatMul", "scores", q, node("Transpose", "k.transposed", k, perm=[0, 1, 3, 2]))
    scaled = node("Mul", "scaled", scores, tensor("scale", np.float32(D**-0.5)))
    masked = node("Add", "masked", scaled, tensor("mask", np.triu(np.full((T, T), -np.inf, np.float32), 1)))
    context = node("MatMul", "context", node("Softmax", "probabilities", masked, axis=-1), v)
    rows = node("Reshape", "rows", node("Transpose", "tokens", context, perm=[0, 2, 1, 3]), shape("rows.shape", B, T, C))
    node("MatMul", "logits", node("Add", "sum", x, linear(rows, "attn.out", C)), weight("head", C, V))
    graph = helper.make_graph(nodes, "grouped", [helper.make_tensor_value_info("ids", TensorProto.INT64, [B, T])],
                              [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [B, T, V])], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def main():
    check, rng = Check(), np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        onnx.save(model(rng), path("m.onnx"))
        feeds = {name: rng.integers(0, V, (B, T)) for name in ("ids", "targets")}
        save_file(feeds, path("in.safetensors"))
        results = {}
        for kind, flags in (("merged", []), ("apart", ["--disable-pass", "merge-projections"])):
            tool("llmc-compile", path("m.onnx"), "-o", path("p.plan"), "--isa", "x86-64-v3", "--remarks", path("remarks"), *flags)
            check.equal(f"{kind}: contractions are merged", "merged 3 contractions" in open(path("remarks")).read(), not flags)
            tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--threads", 2, "--lr", 1e-2, "--clip", 0, "--steps", 5, "--metrics",
                 path("m.jsonl"), "--export-grads", path("g.safetensors"), "--export-weights", path("w.safetensors"), "--export-onnx", path(f"{kind}.onnx"))
            results[kind] = {**{f"gradient {n}": g for n, g in load_file(path("g.safetensors")).items()},
                             **{f"weight {n}": w for n, w in load_file(path("w.safetensors")).items()}, "losses": np.array(losses(path("m.jsonl")))}
        merged, apart = results["merged"], results["apart"]
        check.equal("names", sorted(merged), sorted(apart))
        largest = max(np.abs(value).max() for name, value in apart.items() if name.startswith("gradient"))
        for name in apart:
            check.equal(f"shape of {name}", merged[name].shape, apart[name].shape)
            # A key's bias shifts all scores of a query alike: its gradient is rounding alone, and Adam makes whole steps of that.
            if name != "weight attn.key.bias":
                bound = ROUNDING * np.abs(apart[name]).max() + (1e-8 * largest if name.startswith("gradient") else 0)
                check.at_most(name, np.abs(merged[name] - apart[name]).max(), bound)
        trained = onnx.load(path("merged.onnx"))
        for initializer in trained.graph.initializer:
            if f"weight {initializer.name}" in merged:
                same = np.array_equal(numpy_helper.to_array(initializer), merged[f"weight {initializer.name}"])
                check.equal(f"{initializer.name} in the model", bool(same), True)
        onnxruntime.InferenceSession(path("merged.onnx"), providers=["CPUExecutionProvider"]).run(None, {"ids": feeds["ids"]})
    check.end()


main()
