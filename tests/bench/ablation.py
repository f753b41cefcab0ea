#!/usr/bin/env python3
"""What each pass is worth: all optional passes off, then each switched on in turn, in the pipeline's order, on the textbook model.

  ablation.py --bin build/bin --model small --rounds 2 --steps 3

Prints a Markdown table: tokens a second, the process's peak memory and the launches of a step. The rungs are run in turn, `rounds` times; a
rung's time is its fastest step, since other work on the machine only adds. Every plan is for this machine's ISA level alone; random tokens,
AdamW, clipping off. Where the build takes --bf16, that is the last rung. The model `small` (B=12 T=256) takes some three minutes on two cores.
"""
import argparse
import json
import os
import re
import subprocess
import sys
import tempfile

MODELS = {"gpt2": ["--preset", "gpt2", "--batch", "4", "--seq", "256"], "small": ["--preset", "small", "--batch", "12", "--seq", "256"]}


def run(*command):
    """What a command printed; None where it ended with an error."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.stdout.decode() if done.returncode == 0 else None


class Ladder:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.onnx = self.path("gpt.onnx")
        if run(os.path.join(args.bin, "llmc-gpt"), *MODELS[args.model], "--style", "textbook", "-o", self.onnx) is None:
            sys.exit("llmc-gpt failed")
        self.isa = []

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, plan, *flags):
        return run(os.path.join(self.args.bin, "llmc-compile"), self.onnx, "-o", self.path(plan), *self.isa, *flags)

    def train(self, plan, steps):
        """The metrics' header and lines."""
        text = run(os.path.join(self.args.bin, "llmc-run"), self.path(plan), "--steps", steps, "--threads", self.args.threads, "--clip", 0, "--metrics",
                   self.path("m.jsonl"))
        if text is None:
            sys.exit(f"llmc-run failed on {plan}")
        header, *lines = [json.loads(line) for line in open(self.path("m.jsonl"))]
        return header, lines

    def optional_passes(self):
        """The pipeline's names from a dump, less those that llmc-compile refuses to leave out."""
        self.compile("all.plan", "--dump-ir", self.path("ir"))
        names = dict.fromkeys(file.split("-", 1)[1].removesuffix(".mlir") for file in sorted(os.listdir(self.path("ir"))))
        del names["import"]
        return [name for name in names if self.compile("probe.plan", "--isa", "x86-64-v3", "--disable-pass", name) is not None]

    def rungs(self):
        """(what is new, its plan, launches of a step), each compiled."""
        passes = self.optional_passes()
        self.isa = ["--isa", self.train("all.plan", 1)[0]["isa"]]
        rungs = []
        for on in range(len(passes) + 1):
            off = [word for name in passes[on:] for word in ("--disable-pass", name)]
            rungs.append((f"+ {passes[on - 1]}" if on else "no optional pass", off))
        rungs.append(("+ --bf16", ["--bf16"]))
        compiled = []
        for i, (label, flags) in enumerate(rungs):
            text = self.compile(f"{i}.plan", *flags)
            if text is None and flags == ["--bf16"]:
                continue  # a build without it
            if text is None:
                sys.exit(f"llmc-compile failed at {label}")
            compiled.append((label, f"{i}.plan", int(re.search(r"a step: (\d+) launches", text).group(1))))
        return compiled


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--model", choices=MODELS, default="small")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ladder = Ladder(args, folder)
        rungs = ladder.rungs()
        best, peak = [0.0] * len(rungs), [0] * len(rungs)
        for _ in range(args.rounds):
            for i, (_, plan, _) in enumerate(rungs):
                _, lines = ladder.train(plan, args.steps)
                best[i] = max(best[i], *(line["tokens"] / line["step_ms"] * 1000 for line in lines[1:]))
                peak[i] = max(peak[i], lines[-1]["peak_bytes"])
    print("| passes | tokens/s | against the first | peak MiB | launches a step |\n|---|---:|---:|---:|---:|")
    for i, (label, _, launches) in enumerate(rungs):
        print(f"| {label} | {best[i]:,.0f} | {best[i] / best[0]:.2f}x | {peak[i] / 2**20:,.0f} | {launches} |")


main()
