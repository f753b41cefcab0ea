"""One global batch, dealt to ranks and micro-batches in every way by llmc-run: the same losses and gradient norms for 20 steps, and after
every step the same bits of weights on all ranks. By --data with a last step that is not full, and by --inputs with uneven ignored labels.

  rank-splits.py tiny|small
"""
import json
import os
import sys
import tempfile

import numpy as np
from Plans import Check, save_file, tool

BOUND = 2e-6  # relative
STEPS, ROWS = 20, 4  # rows of a step
MODELS = {"tiny": ["--layers", 2, "--heads", 2, "--width", 32, "--vocab", 61, "--context", 16, "--seq", 16],
          "small": ["--preset", "small", "--seq", 64]}
# ranks, micro-batches, clip; each against one rank with the whole batch.
SPLITS = [(4, 1, 1), (2, 2, 1), (1, 4, 1), (2, 1, 0), (2, 1, 1), (1, 2, 1), (4, 1, 0), (2, 2, 0)]
WINDOWS = (STEPS - 1) * ROWS + 1  # the last step has one row
# A batch that is learnt by heart makes the steps so sensitive that they enlarge rounding a hundredfold: low rates, and no window twice.
RATES = {"--data": 1e-4, "--inputs": 1e-5}
# At the default rate the same batch is taken for twenty steps by one rank whose rounding is another, since nothing is fused: how far it comes from
# the fused plan says what rounding alone does there, and ranks may be no farther than a few times that.
DEFAULT_RATE, TIMES = 3e-4, 10


class Model:
    def __init__(self, name, folder):
        self.name, self.folder = name, folder
        self.vocabulary, self.length = (61, 16) if name == "tiny" else (256, 64)
        rng = np.random.default_rng(7)
        tokens = rng.integers(0, self.vocabulary, WINDOWS * self.length + 1).astype(np.uint16)
        tokens.tofile(self.path("t.bin"))
        ids, labels = (rng.integers(0, self.vocabulary, (ROWS, self.length)) for _ in range(2))
        for row, kept in enumerate((1.0, 0.0, 0.5, 0.9)):  # row 1 keeps one label
            ignored = rng.random(self.length) >= kept
            ignored[3] = False
            labels[row][ignored] = -100
        save_file({"input_ids": ids, "targets": labels}, self.path("in.safetensors"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def plan(self, batch, *flags):
        plan = self.path(f"{batch}{''.join(flags)}.plan")
        if not os.path.exists(plan):
            tool("llmc-gpt", *MODELS[self.name], "--batch", batch, "-o", self.path("gpt.onnx"))
            tool("llmc-compile", self.path("gpt.onnx"), "-o", plan, "--isa", "x86-64-v3", *flags)
        return plan

    def train(self, source, ranks, accumulate, clip, rate=None, plan=None):
        flags = ["--nproc", ranks, "--verify-ranks"] if ranks > 1 else []
        tool("llmc-run", plan or self.plan(ROWS // ranks // accumulate), *source, "--steps", STEPS, "--accumulate", accumulate, "--clip", clip,
             "--threads", 1, "--lr", rate or RATES[source[0]], "--metrics", self.path("m.jsonl"), *flags)
        header, *steps = [json.loads(line) for line in open(self.path("m.jsonl"))]
        return header, steps


def worst(key, steps, others):
    return max(abs(step[key] - other[key]) / abs(other[key]) for step, other in zip(steps, others, strict=True))


def check_by_heart(check, model):
    source = ["--inputs", model.path("in.safetensors")]
    whole = model.train(source, 1, 1, 1, DEFAULT_RATE)[1]
    check.at_most("by heart: the last loss", whole[-1]["loss"], whole[0]["loss"] * (0.95 if model.name == "tiny" else 0.1))
    unfused = model.train(source, 1, 1, 1, DEFAULT_RATE, model.plan(ROWS, "--disable-pass", "fuse"))[1]
    for ranks, accumulate in ((2, 1), (4, 1), (2, 2)):
        steps = model.train(source, ranks, accumulate, 1, DEFAULT_RATE)[1]
        for key in ("loss", "grad_norm"):
            what = f"by heart, {ranks} ranks x {accumulate} micro-batches: {key}"
            check.at_most(f"{what} of the first step", worst(key, steps[:1], whole[:1]), 3e-7)
            check.at_most(f"{what}, rounding alone makes {worst(key, unfused, whole):.1e}", worst(key, steps, whole),
                          TIMES * max(worst(key, unfused, whole), 2e-7))


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        model = Model(sys.argv[1], folder)
        for source in (["--data", model.path("t.bin")], ["--inputs", model.path("in.safetensors")]):
            whole = {clip: model.train(source, 1, 1, clip)[1] for clip in (0, 1)}
            check.at_most(f"{source[0]}: the weights move", 1e-3, abs(whole[1][-1]["loss"] - whole[1][0]["loss"]))
            for ranks, accumulate, clip in SPLITS:
                what = f"{source[0]}, {ranks} ranks x {accumulate} micro-batches, clip {clip}"
                header, steps = model.train(source, ranks, accumulate, clip)
                check.equal(f"{what}: ranks", header["ranks"], ranks)
                check.equal(f"{what}: tokens", [step["tokens"] for step in steps], [step["tokens"] for step in whole[clip]])
                for key in ("loss", "grad_norm"):
                    check.at_most(f"{what}: {key}", worst(key, steps, whole[clip]), BOUND)
                if ranks > 1:
                    check.equal(f"{what}: different weights", [len(set(step["weights_hash"])) for step in steps], [1] * STEPS)
        check_by_heart(check, model)
    check.end()


main()
