"""The way back: a fixture is trained, the trained model comes out as ONNX, runs in onnxruntime, compiles again, and all agree."""
import os
import sys
import tempfile

import numpy as np
import onnxruntime
from Plans import Check, Fixture, load_file, tool


def main():
    fixture, check = Fixture(sys.argv[1]), Check()
    logits_name = fixture.ref["logits_output"]
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        fixture.compile(path("p.plan"), "--dropout", 0)
        fixture.write_inputs(path("in.safetensors"))
        tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", 5, "--threads", 2, "--export-onnx", path("trained.onnx"),
             "--export-weights", path("w.safetensors"), *fixture.optimizer_flags())
        # Nothing but the weights may differ from the model that came in.
        session = onnxruntime.InferenceSession(path("trained.onnx"), providers=["CPUExecutionProvider"])
        feeds = {name: fixture.tensors[source] for name, source in fixture.ref["feeds"].items()}
        theirs = session.run([logits_name], {i.name: feeds[i.name] for i in session.get_inputs()})[0]

        fixture.model = path("trained.onnx")
        fixture.compile(path("again.plan"), "--dropout", 0)
        tool("llmc-run", path("again.plan"), "--inputs", path("in.safetensors"), "--steps", 0, "--threads", 2, "--export-outputs", path("o.safetensors"),
             "--export-weights", path("w2.safetensors"))
        ours = load_file(path("o.safetensors"))[logits_name]
        check.at_most("logits against onnxruntime", np.abs(ours - theirs).max(), 1e-5)
        check.at_most("training moved the logits", 1e-3, np.abs(ours - fixture.tensors["logits"]).max())
        first, second = load_file(path("w.safetensors")), load_file(path("w2.safetensors"))
        check.equal("weights by name", sorted(first), sorted(second))
        for name in first:
            check.equal(f"{name} comes back bit for bit", bool(np.array_equal(first[name], second[name])), True)
    check.end()


main()
