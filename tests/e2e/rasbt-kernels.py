"""The exports of "LLMs from scratch" raise to the ops of a model that has them: their kernels are those of llmc-gpt's fused style in the same shape."""
import collections
import os
import sys
import tempfile

from PlanReader import GENERATED, kernels, read_plan
from Plans import Check, Fixture, tool

MATMUL = 1


def shapes(launches):
    """Kinds in order; of contractions their sizes too. How a weight is stored, which exporters decide, shows in the strides only."""
    return [(kind, ints[:4] if kind == MATMUL else None) for kind, ints, _, _ in launches]


def counts(launches):
    """Launches by kind but for the generated ones: exporters differ in how many parameters they write, so in how many updates there are."""
    return collections.Counter(launch[0] for launch in launches if launch[0] != GENERATED)


def main():
    fixture, check = Fixture(sys.argv[1]), Check()
    config = fixture.ref["config"]
    batch, seq = fixture.tensors["input_ids"].shape
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        tool("llmc-gpt", "--style", "fused", "--layers", config["n_layers"], "--heads", config["n_heads"], "--width", config["emb_dim"], "--vocab",
             config["vocab_size"], "--context", config["context_length"], "--batch", batch, "--seq", seq, "-o", path("gpt.onnx"))
        tool("llmc-compile", path("gpt.onnx"), "-o", path("gpt.plan"), "--isa", "x86-64-v3")
        fixture.compile(path("fixture.plan"), "--dropout", 0, "--isa", "x86-64-v3")
        expected, got = (kernels(read_plan(path(name)).targets[0]) for name in ("gpt.plan", "fixture.plan"))
        check.equal("forward", shapes(got["forward"]), shapes(expected["forward"]))
        for program in ("step-fused", "step", "accumulate"):
            check.equal(program, counts(got[program]), counts(expected[program]))
        print(f"{len(got['forward'])} launches forward, {len(got['step-fused'])} a step")
    check.end()


main()
