"""The textbook model (separate Q, K and V; norms, GELU and attention spelled out) compiles to the kernels of the fused one, gives the same
losses, gradients and weights, and goes back to ONNX under its own names."""
import collections
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from PlanReader import kernels, read_plan
from Plans import Check, load_file, losses, save_file, tool

SHAPE = ["--layers", 2, "--heads", 4, "--width", 64, "--vocab", 101, "--context", 40, "--seq", 33, "--batch", 3, "--seed", 7]


def whole(tensors, name):
    """A fused model's tensor of this name, from a textbook model's: Q, K and V side by side."""
    if ".c_attn." not in name:
        return tensors[name]
    return np.concatenate([tensors[name.replace("c_attn", part)] for part in ("query", "key", "value")], axis=-1)


def same_kernels(check, fused, textbook):
    check.equal("number of targets", len(textbook.targets), len(fused.targets))
    for ours, theirs in zip(textbook.targets, fused.targets):
        first, second = kernels(theirs), kernels(ours)
        for program in sorted(first):
            counts = [collections.Counter(launch[0] for launch in lists[program]) for lists in (first, second)]
            check.equal(f"{ours.isa} {program}: launches by kind", counts[1], counts[0])
            check.equal(f"{ours.isa} {program}: launches in order", second[program], first[program])
        check.equal(f"{ours.isa}: bytes of code", ours.code_bytes, theirs.code_bytes)
        check.equal(f"{ours.isa}: arenas", [p.arena_bytes for p in ours.programs], [p.arena_bytes for p in theirs.programs])


def same_numbers(check, path):
    """The same kernels on the same numbers: losses, gradients of the first step and weights after the last agree to the bit."""
    results = {}
    for style in ("fused", "textbook"):
        run = lambda *flags: tool("llmc-run", path(f"{style}.plan"), "--inputs", path("in.safetensors"), "--threads", 2, "--lr", 1e-3, "--steps", 5,
                                  *flags)
        run("--clip", 0, "--metrics", path("m.jsonl"), "--export-grads", path("g.safetensors"), "--export-weights", path("w.safetensors"),
            "--export-onnx", path(f"{style}-trained.onnx"))
        results[style] = losses(path("m.jsonl")), load_file(path("g.safetensors")), load_file(path("w.safetensors"))
    check.equal("losses, bit for bit", results["textbook"][0], results["fused"][0])
    check.at_most("the loss falls", results["fused"][0][-1], results["fused"][0][0] - 0.1)
    for kind, index in (("gradient", 1), ("weight", 2)):
        fused, textbook = results["fused"][index], results["textbook"][index]
        check.equal(f"{kind}s of Q, K and V", sum(".attn.query." in name for name in textbook), 4)
        for name in fused:
            expected, got = fused[name], whole(textbook, name)
            check.equal(f"shape of {kind} {name}", got.shape, expected.shape)
            check.equal(f"{kind} {name}, bit for bit", bool(np.array_equal(got, expected)), True)


def way_back(check, path):
    """The trained textbook model in onnxruntime and compiled again."""
    source, trained = onnx.load(path("textbook.onnx")), onnx.load(path("textbook-trained.onnx"))
    check.equal("initializers", [t.name for t in trained.graph.initializer], [t.name for t in source.graph.initializer])
    feeds = load_file(path("in.safetensors"))
    theirs = onnxruntime.InferenceSession(path("textbook-trained.onnx"), providers=["CPUExecutionProvider"]).run(["logits"], feeds)[0]
    tool("llmc-compile", path("textbook-trained.onnx"), "-o", path("again.plan"), "--isa", "x86-64-v3")
    tool("llmc-run", path("again.plan"), "--inputs", path("in.safetensors"), "--steps", 0, "--threads", 2, "--export-outputs", path("o.safetensors"))
    check.at_most("logits against onnxruntime", np.abs(load_file(path("o.safetensors"))["logits"] - theirs).max(), 1e-5)


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        rng = np.random.default_rng(1)
        save_file({name: rng.integers(0, 101, (3, 33)) for name in ("input_ids", "targets")}, path("in.safetensors"))
        for style in ("fused", "textbook"):
            tool("llmc-gpt", *SHAPE, "--style", style, "-o", path(f"{style}.onnx"))
            tool("llmc-compile", path(f"{style}.onnx"), "-o", path(f"{style}.plan"))
        fused, textbook = read_plan(path("fused.plan")), read_plan(path("textbook.plan"))
        same_kernels(check, fused, textbook)
        same_numbers(check, path)
        way_back(check, path)
    check.end()


main()
