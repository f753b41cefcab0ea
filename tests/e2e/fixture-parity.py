"""A fixture, trained as exported: ten AdamW steps give PyTorch's losses, the first step its gradients, within design.md's bounds."""
import os
import sys
import tempfile

import numpy as np
from Plans import Check, Fixture, load_file, losses, tool

LOSS_BOUND = 2e-5  # relative, fp32 against PyTorch's fp32


def gradient_errors(check, exported, fixture):
    """|g - g64| <= 1e-4 max|g64| of the tensor + 1e-6 of the model's largest entry."""
    names = [p["initializer"] for p in fixture.ref["params"]]
    check.equal("gradients are of the parameters", sorted(exported), sorted(names))
    largest = max(np.abs(fixture.tensors[f"grad/{n}"]).max() for n in names)
    for name in names:
        expected = fixture.tensors[f"grad/{name}"].astype(np.float64)
        got = exported[name].astype(np.float64)
        check.equal(f"shape of gradient {name}", got.shape, expected.shape)
        if got.shape == expected.shape:
            check.at_most(f"gradient {name}", np.abs(got - expected).max(), 1e-4 * np.abs(expected).max() + 1e-6 * largest)


def final_weights(check, exported, fixture):
    """After ten steps: l2, sum and a dot product of each parameter."""
    for p in fixture.ref["params"]:
        weights = exported[p["initializer"]].astype(np.float64).ravel()
        scale = p["after10"]["l2"] + 1e-6
        check.at_most(f"l2 of {p['initializer']} after 10 steps", abs(np.linalg.norm(weights) - p["after10"]["l2"]) / scale, 2e-4)


def main():
    fixture, check = Fixture(sys.argv[1]), Check()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        fixture.compile(path("p.plan"), "--dropout", 0)
        fixture.write_inputs(path("in.safetensors"))
        tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", 11, "--threads", 2, "--metrics", path("m.jsonl"),
             "--export-grads", path("g.safetensors"), "--export-outputs", path("o.safetensors"), *fixture.optimizer_flags())
        got = losses(path("m.jsonl"))
        check.equal("number of losses", len(got), 11)
        for i, (ours, torch) in enumerate(zip(got, fixture.tensors["losses"])):
            check.at_most(f"loss {i}", abs(ours - torch) / abs(torch), LOSS_BOUND)
        gradient_errors(check, load_file(path("g.safetensors")), fixture)
        outputs = load_file(path("o.safetensors"))
        logits = outputs[fixture.ref["logits_output"]]
        # A model stored in fp16 or bf16 has rounded constants: there the distance of onnxruntime from torch is the measure.
        check.at_most("logits", np.abs(logits - fixture.tensors["logits"]).max(), max(1e-5, 2 * fixture.ref["checks"]["ort_logits_maxabs"]))
        tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", 10, "--threads", 2, "--export-weights", path("w.safetensors"),
             *fixture.optimizer_flags())
        final_weights(check, load_file(path("w.safetensors")), fixture)
    check.end()


main()
