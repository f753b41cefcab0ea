"""Fixtures, trained on the simulated GPU in several schedules of its streams: in fp32 the CPU backend's losses, in bf16 within design.md's bound
of the exact ones (f64), as bf16-losses.py counts it. ctest runs it on six fixtures, ctest -C all on all GPTs.
Usage: cuda-parity.py FOLDER-OF-SIMULATED-LIBRARIES FIXTURE SCHEDULES-IN-F32 SCHEDULES-IN-BF16"""
import os
import sys
import tempfile
import time

import numpy as np
from Plans import Check, Fixture, losses, tool
from Simulated import simulate, train_simulated

LOSS_BOUND = 2e-5  # relative, fp32 against the CPU's fp32
STEPS = 11


class Runs:
    """One fixture's inputs and its plans, which are trained in one schedule after the other."""

    def __init__(self, fixture, folder):
        self.fixture, self.folder = fixture, folder
        fixture.write_inputs(self.path("in.safetensors"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, *flags):
        self.fixture.compile(self.path("p.plan"), "--dropout", 0, *flags)

    def on_cpu(self):
        tool("llmc-run", self.path("p.plan"), "--inputs", self.path("in.safetensors"), "--steps", STEPS, "--metrics", self.path("m.jsonl"), "--device",
             "cpu", "--threads", 2, *self.fixture.optimizer_flags())
        return np.array(losses(self.path("m.jsonl")))

    def on_gpu(self, check, seed):
        got, said = train_simulated(self.path("p.plan"), self.path("in.safetensors"), self.path("m.jsonl"), "--steps", STEPS,
                                    *self.fixture.optimizer_flags(), seed=seed)
        check.equal("the device is named", "Simulated GPU, " in said, True)
        check.equal(f"schedule {seed}: number of losses", len(got), STEPS)
        return np.array(got)


def f32(check, runs, schedules):
    runs.compile("--target", "cpu,cuda")
    expected = runs.on_cpu()
    for seed in range(1, schedules + 1):
        got = runs.on_gpu(check, seed)
        check.at_most(f"f32, schedule {seed}: largest distance of a loss", (np.abs(got - expected) / np.abs(expected)).max(), LOSS_BOUND)


def bf16(check, runs, schedules):
    runs.compile("--target", "cuda", "--bf16")
    exact, torch = (runs.fixture.tensors[name] for name in ("losses_f64", "losses_bf16_autocast"))
    for seed in range(1, schedules + 1):
        error = np.abs(runs.on_gpu(check, seed) - exact).max()
        check.at_most(f"bf16, schedule {seed}: largest error of eleven losses", error, 2 * np.abs(torch - exact).max() + 2e-4)


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        simulate(folder, sys.argv[1])
        runs = Runs(Fixture(sys.argv[2]), folder)
        for train, schedules in (f32, int(sys.argv[3])), (bf16, int(sys.argv[4])):
            begin = time.monotonic()
            train(check, runs, schedules)
            print(f"{train.__name__}: {time.monotonic() - begin:.1f} s")
    check.end()


main()
