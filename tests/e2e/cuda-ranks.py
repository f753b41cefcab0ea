"""Ranks with a simulated GPU each: the same rows dealt to two and to four ranks, and to micro-batches of one, give the losses and gradient norms of
one rank with all rows, and after each step the same bits of weights on all ranks.
Usage: cuda-ranks.py FOLDER-OF-SIMULATED-LIBRARIES"""
import json
import os
import sys
import tempfile

import numpy as np
from Plans import Check, save_file, tool
from Simulated import simulate, train_simulated

BOUND = 2e-6  # relative; rank-splits.py has the same for CPUs
STEPS, ROWS, LENGTH, VOCABULARY = 8, 4, 16, 61
MODEL = ["--layers", 2, "--heads", 2, "--width", 32, "--vocab", VOCABULARY, "--context", LENGTH, "--seq", LENGTH]
SPLITS = [(2, 1, 1), (4, 1, 1), (2, 2, 1), (2, 1, 2)]  # ranks, micro-batches of a rank, schedule
RATE = ["--lr", 1e-3]  # enough for the losses to move


class Model:
    def __init__(self, folder):
        self.folder = folder
        rng = np.random.default_rng(7)
        ids, labels = (rng.integers(0, VOCABULARY, (ROWS, LENGTH)) for _ in range(2))
        labels[1, 3:] = -100  # ranks count unlike numbers of labels
        save_file({"input_ids": ids, "targets": labels}, self.path("in.safetensors"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def train(self, ranks, accumulate, seed):
        plan = self.path(f"{ROWS // ranks // accumulate}.plan")
        if not os.path.exists(plan):
            tool("llmc-gpt", *MODEL, "--batch", ROWS // ranks // accumulate, "-o", self.path("gpt.onnx"))
            tool("llmc-compile", self.path("gpt.onnx"), "-o", plan, "--target", "cuda")
        flags = ["--nproc", ranks, "--verify-ranks", "--threads", 1] if ranks > 1 else []
        metrics = self.path("m.jsonl")
        train_simulated(plan, self.path("in.safetensors"), metrics, "--steps", STEPS, "--accumulate", accumulate, *RATE, *flags, seed=seed, devices=ranks)
        return [json.loads(line) for line in open(metrics)]


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        simulate(folder, sys.argv[1])
        model = Model(folder)
        _, *whole = model.train(1, 1, 1)
        check.at_most("the weights move", 1e-2, whole[0]["loss"] - whole[-1]["loss"])
        for ranks, accumulate, seed in SPLITS:
            what = f"{ranks} ranks x {accumulate} micro-batches, schedule {seed}"
            header, *steps = model.train(ranks, accumulate, seed)
            check.equal(f"{what}: ranks", header["ranks"], ranks)
            check.equal(f"{what}: steps", len(steps), STEPS)
            for key in ("loss", "grad_norm"):
                worst = max(abs(step[key] - one[key]) / abs(one[key]) for step, one in zip(steps, whole))
                check.at_most(f"{what}: {key}", worst, BOUND)
            check.equal(f"{what}: different weights", [len(set(step["weights_hash"])) for step in steps], [1] * STEPS)
    check.end()


main()
