#!/usr/bin/env python3
"""Times the start of a run, from the start of the process to its first step, with the plan in the page cache.

  startup.py --bin build/bin --model gpt2|small --rounds 5 [--rival OTHER/bin]

`start_ms` is what llmc-run writes into its metrics: from main to the first step. `outside_ms` is the whole process less its one step, so an
upper bound that has the linking before and the tidying up after. With --rival another build starts the same plan in turn; on a machine
that others use, quote the ratio and the minimum.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = {"gpt2": ["--preset", "gpt2", "--batch", "4", "--seq", "256"], "small": ["--preset", "small", "--batch", "12", "--seq", "256"]}


def start(folder, plan, binaries, threads):
    """One run of one step."""
    metrics = os.path.join(folder, "m.jsonl")
    begin = time.perf_counter()
    subprocess.run([os.path.join(binaries, "llmc-run"), plan, "--steps", "1", "--clip", "0", "--threads", str(threads), "--metrics", metrics],
                   check=True, stdout=subprocess.DEVNULL)
    process_ms = (time.perf_counter() - begin) * 1e3
    header, step = (json.loads(line) for line in open(metrics))
    return dict(start_ms=header["start_ms"], outside_ms=process_ms - step["step_ms"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rival", default="")
    args = parser.parse_args()
    builds = [args.bin] + ([args.rival] if args.rival else [])
    rounds = {build: [] for build in builds}
    with tempfile.TemporaryDirectory() as folder:
        onnx, plan = os.path.join(folder, "gpt.onnx"), os.path.join(folder, "gpt.plan")
        subprocess.run([os.path.join(args.bin, "llmc-gpt"), *MODELS[args.model], "-o", onnx], check=True, stdout=subprocess.DEVNULL)
        subprocess.run([os.path.join(args.bin, "llmc-compile"), onnx, "-o", plan], check=True, stdout=subprocess.DEVNULL)
        with open(plan, "rb") as file:  # into the page cache
            while file.read(1 << 24):
                pass
        for _ in range(args.rounds):
            for build in builds:
                rounds[build].append(start(folder, plan, build, args.threads))
    for key in ("start_ms", "outside_ms"):
        for build in builds:
            values = [one[key] for one in rounds[build]]
            print(f"{key}: {build}: median {statistics.median(values):.0f}, least {min(values):.0f}, of {args.rounds}")
        if args.rival:
            print(f"{key}: median ratio {statistics.median(a[key] / b[key] for a, b in zip(*rounds.values())):.3f}")


sys.exit(main())
