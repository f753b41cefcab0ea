"""Training with the graph's own dropout: the mean first loss over 50 seeds lies within three standard errors of PyTorch's."""
import os
import sys
import tempfile

import numpy as np
from Plans import Check, Fixture, losses, tool

SEEDS = 50


def main():
    fixture, check = Fixture(sys.argv[1]), Check()
    reference = fixture.ref["dropout_train_stats"]
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        fixture.compile(path("p.plan"), "--dropout", "keep")
        fixture.write_inputs(path("in.safetensors"))
        first = []
        for seed in range(SEEDS):
            tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", 1, "--threads", 1, "--seed", seed, "--metrics", path("m.jsonl"))
            first.append(losses(path("m.jsonl"))[0])
    mean, deviation = np.mean(first), np.std(first, ddof=1)
    print(f"mean {mean:.5f}, deviation {deviation:.5f} over {SEEDS} seeds")
    error = np.hypot(deviation / np.sqrt(SEEDS), reference["loss0_std"] / np.sqrt(200))
    check.at_most("distance of the means", abs(mean - reference["loss0_mean_200seeds"]), 3 * error)
    check.at_most("different seeds give different losses", 1e-6, deviation)
    check.end()


main()
