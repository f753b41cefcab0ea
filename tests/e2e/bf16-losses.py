"""bf16 plans of all fixtures: ten AdamW steps stay as near to the exact losses (f64) as PyTorch's autocast does, within design.md's bound:
each loss within twice PyTorch's own largest error on that fixture + 2e-4, and the median error over all fixtures within twice PyTorch's."""
import os
import re
import sys
import tempfile

import numpy as np
from Plans import FIXTURES, Check, Fixture, losses, tool

GPTS = re.compile(r"nanogpt_|rasbt_gpt_|hf_gpt2_")


def errors(fixture, folder, *compile_flags):
    """Our and PyTorch's bf16 losses against f64, one per step; and what llmc-run printed."""
    path = lambda name: os.path.join(folder, name)
    fixture.compile(path("p.plan"), "--dropout", 0, "--bf16", *compile_flags)
    fixture.write_inputs(path("in.safetensors"))
    printed = tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", 11, "--threads", 2, "--metrics", path("m.jsonl"),
                   *fixture.optimizer_flags())
    exact = fixture.tensors["losses_f64"]
    return np.abs(np.array(losses(path("m.jsonl"))) - exact), np.abs(fixture.tensors["losses_bf16_autocast"] - exact), printed


def older_levels(check, name):
    """Levels without bf16 instructions keep the bound, and say what they do."""
    for isa in ("x86-64-v3", "x86-64-v4"):
        with tempfile.TemporaryDirectory() as folder:
            mine, theirs, printed = errors(Fixture(name), folder, "--isa", isa)
        check.equal(f"{isa} says that it multiplies in f32", f"bf16: {isa} has no bf16 instructions" in printed, True)
        check.at_most(f"{name} at {isa}: largest error of eleven losses", mine.max(), 2 * theirs.max() + 2e-4)


def main():
    check = Check()
    ours, torch = [], []
    names = sorted(name for name in os.listdir(FIXTURES) if GPTS.match(name))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            mine, theirs, _ = errors(Fixture(name), folder)
        check.equal(f"{name}: number of losses", len(mine), 11)
        check.at_most(f"{name}: largest error of eleven losses", mine.max(), 2 * theirs.max() + 2e-4)
        ours.extend(mine)
        torch.extend(theirs)
    check.equal("there are fixtures", bool(names), True)
    older_levels(check, names[-1])
    check.at_most(f"median error over {len(names)} fixtures", np.median(ours), 2 * np.median(torch))
    check.end()


main()
