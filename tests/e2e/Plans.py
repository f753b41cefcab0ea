"""What the end-to-end tests share: compile a model, train the plan, read what it wrote. Every command must end as asked, or the test fails
with all it printed."""
import json
import os
import subprocess
import sys

import numpy as np
from safetensors.numpy import load_file, save_file

BIN = os.environ["LLMC_BIN"]
FIXTURES = os.environ["LLMC_FIXTURES"]


def tool(name, *arguments, code=0, timeout=600):
    """Runs one of our tools; returns what it printed (both streams)."""
    command = [os.path.join(BIN, name), *map(str, arguments)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=timeout)
    text = done.stdout.decode(errors="replace")
    if done.returncode != code:
        sys.exit(f"{' '.join(command)}\nended with {done.returncode}, not {code}:\n{text[-8000:]}")
    return text


class Fixture:
    """One exported model with its PyTorch references; `shape` picks one of the further (B, T) of a dynamic model."""

    def __init__(self, name):
        self.name = name
        self.folder = os.path.join(FIXTURES, name)
        self.model = os.path.join(self.folder, "model.onnx")
        self.ref = json.load(open(os.path.join(self.folder, "ref.json")))
        self.tensors = load_file(os.path.join(self.folder, "ref.safetensors"))

    def is_dynamic(self):
        return any(isinstance(size, str) for entry in self.ref["inputs"] for size in entry["shape"])

    def compile(self, plan, *flags):
        if self.is_dynamic():
            batch, seq = self.tensors["input_ids"].shape
            flags = (*flags, "--batch", batch, "--seq", seq)
        return tool("llmc-compile", self.model, "-o", plan, "--as-exported", *flags)

    def write_inputs(self, path):
        feeds = {name: np.ascontiguousarray(self.tensors[source]) for name, source in self.ref["feeds"].items()}
        if self.ref["loss_output"] is None:
            feeds["targets"] = np.ascontiguousarray(self.tensors["targets"])
        save_file(feeds, path)

    def optimizer_flags(self):
        """AdamW as the references used it; clipping off."""
        return ["--lr", 1e-3, "--beta1", 0.9, "--beta2", 0.95, "--eps", 1e-8, "--weight-decay", 0.1, "--clip", 0, "--schedule", "constant"]


def losses(metrics):
    """Loss of each step, from the metrics file."""
    lines = [json.loads(line) for line in open(metrics)]
    return [line["loss"] for line in lines[1:] if "loss" in line]


class Check:
    """Collects what does not hold, says all of it at the end."""

    def __init__(self):
        self.failures = []

    def at_most(self, what, value, bound):
        mark = "ok  " if value <= bound else "FAIL"
        print(f"{mark} {what}: {value:.3g} (at most {bound:.3g})")
        if not value <= bound:
            self.failures.append(what)

    def equal(self, what, value, expected):
        if value != expected:
            print(f"FAIL {what}: {value!r}, expected {expected!r}")
            self.failures.append(what)

    def end(self):
        if self.failures:
            sys.exit(f"{len(self.failures)} of the checks failed: {', '.join(self.failures[:20])}")
