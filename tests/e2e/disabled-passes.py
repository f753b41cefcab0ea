"""A pass that is switched off by name changes the speed, not the losses beyond rounding: each optional pass alone, then all of them."""
import os
import subprocess
import sys
import tempfile

import numpy as np
from Plans import BIN, Check, Fixture, losses, save_file, tool

LOSS_BOUND = 2e-6  # relative: sixteen units in the last place of f32, for another order of the same sums
STEPS = 5


class TextbookModel:
    """A tiny GPT of llmc-gpt in everything a fixture is asked for here."""

    def __init__(self, folder):
        self.model = os.path.join(folder, "gpt.onnx")
        tool("llmc-gpt", "--layers", 2, "--heads", 4, "--width", 32, "--vocab", 67, "--context", 24, "--seq", 17, "--batch", 2, "--style", "textbook", "-o",
             self.model)

    def compile(self, plan, *flags):
        return tool("llmc-compile", self.model, "-o", plan, *flags)

    def write_inputs(self, path):
        rng = np.random.default_rng(3)
        save_file({name: rng.integers(0, 67, (2, 17)) for name in ("input_ids", "targets")}, path)

    def optimizer_flags(self):
        return ["--lr", 1e-3, "--clip", 0]


def train(model, folder, disabled):
    path = lambda name: os.path.join(folder, name)
    flags = [word for name in disabled for word in ("--disable-pass", name)]
    model.compile(path("p.plan"), "--isa", "x86-64-v3", *flags)
    tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", STEPS, "--threads", 2, "--metrics", path("m.jsonl"),
         *model.optimizer_flags())
    return losses(path("m.jsonl"))


def optional_passes(model, folder):
    """Names of the pipeline, from a dump of it, less those that llmc-compile refuses to leave out."""
    dump = os.path.join(folder, "ir")
    model.compile(os.path.join(folder, "p.plan"), "--isa", "x86-64-v3", "--dump-ir", dump)
    names = dict.fromkeys(file.split("-", 1)[1].removesuffix(".mlir") for file in sorted(os.listdir(dump)))
    del names["import"]
    command = lambda name: [os.path.join(BIN, "llmc-compile"), model.model, "-o", os.path.join(folder, "no.plan"), "--disable-pass", name]
    refused = lambda name: b"there is no plan without this pass" in subprocess.run(command(name), capture_output=True).stderr
    return [name for name in names if not refused(name)]


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        model = Fixture(sys.argv[1]) if len(sys.argv) > 1 else TextbookModel(folder)
        model.write_inputs(os.path.join(folder, "in.safetensors"))
        passes = optional_passes(model, folder)
        check.at_most("optional passes are found", 10, len(passes))
        expected = train(model, folder, [])
        check.equal("number of losses", len(expected), STEPS)
        check.at_most("the loss falls", expected[-1], expected[0] - 1e-3)
        for disabled in [*([name] for name in passes), passes]:
            got = train(model, folder, disabled)
            difference = max(abs(ours - loss) / abs(loss) for ours, loss in zip(got, expected)) if None not in got else np.inf
            check.at_most(f"losses without {' '.join(disabled)}", difference, LOSS_BOUND)
    check.end()


main()
