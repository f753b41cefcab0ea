#!/usr/bin/env python3
"""What ranks of this machine are worth, in one spell: one rank with all threads, as many ranks with a share of them each, the same without
overlap, and PyTorch's DistributedDataParallel (torch_ddp.py), all with the same global batch and precision, run in turn.

  ranks.py --bin build/bin --model gpt2|small --nproc 2 --dtype fp32|bf16 --rounds 2 --steps 4 [--rival-python PYTHON] [--rival-flags '--compile']

Random tokens, AdamW, clipping off. A contestant's speed is its fastest step but the first, the median over the rounds; the ratios are those of
one round, since single figures move with the machine. exposed_comm_ms is rank 0's, the least of a round's steps.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile

MODELS = {"gpt2": (4, ["--preset", "gpt2", "--seq", "256"]), "small": (12, ["--preset", "small", "--seq", "256"])}


class Contest:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        batch, self.model = MODELS[args.model]
        self.flags = ["--target", "cpu"] + (["--bf16"] if args.dtype == "bf16" else [])
        # name: (plan, ranks)
        self.plans = {"one rank": (self.compile("one.plan", batch), 1)}
        share = batch // args.nproc
        self.plans["ranks"] = (self.compile("ranks.plan", share), args.nproc)
        self.plans["ranks, no overlap"] = (self.compile("serial.plan", share, "--disable-pass", "overlap-collectives"), args.nproc)

    def compile(self, name, batch, *flags):
        onnx, plan = os.path.join(self.folder, f"{self.args.model}-{batch}.onnx"), os.path.join(self.folder, f"{self.args.model}-{self.args.dtype}-{name}")
        if os.path.exists(plan):
            return plan
        quiet = dict(check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not os.path.exists(onnx):
            subprocess.run([os.path.join(self.args.bin, "llmc-gpt"), *self.model, "--batch", str(batch), "-o", onnx], **quiet)
        subprocess.run([os.path.join(self.args.bin, "llmc-compile"), onnx, "-o", plan, *self.flags, *flags], **quiet)
        return plan

    def ours(self, plan, ranks):
        metrics = os.path.join(self.folder, "m.jsonl")
        subprocess.run([os.path.join(self.args.bin, "llmc-run"), plan, "--steps", str(self.args.steps), "--nproc", str(ranks), "--threads",
                        str(self.args.cpus // ranks), "--clip", "0", "--metrics", metrics], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in open(metrics)][2:]
        return dict(tok_s=max(line["tok_s"] for line in lines), peak_mb=lines[-1]["peak_bytes"] / 2**20, comm_ms=min(line["comm_ms"] for line in lines),
                    exposed_comm_ms=min(line["exposed_comm_ms"] for line in lines))

    def rival(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "torch_ddp.py")
        args = self.args
        done = subprocess.run([args.rival_python, script, "--model", args.model, "--dtype", args.dtype, "--nproc", str(args.nproc), "--threads",
                               str(args.cpus // args.nproc), "--steps", str(args.steps), *shlex.split(args.rival_flags)], check=True,
                              stdout=subprocess.PIPE)
        result = json.loads(done.stdout.decode().strip().splitlines()[-1])
        return dict(tok_s=result["tok_s_best"], peak_mb=result["peak_rss_mb"])

    def round(self):
        results = {name: self.ours(*plan) for name, plan in self.plans.items()}
        if self.args.rival_python:
            results["DDP"] = self.rival()
        return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--dtype", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--nproc", type=int, default=2)
    parser.add_argument("--cpus", type=int, default=os.cpu_count(), help="threads of all ranks together")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rival-python", default="", help="an interpreter that has PyTorch; without it ours alone")
    parser.add_argument("--rival-flags", default="", help="more flags for torch_ddp.py")
    parser.add_argument("--folder", default="", help="keeps models and plans here, for short spells")
    args = parser.parse_args()
    if MODELS[args.model][0] % args.nproc or args.steps < 3:
        parser.error("the ranks must share the batch evenly, and there must be three steps or more")
    with tempfile.TemporaryDirectory() as folder:
        contest = Contest(args, args.folder or folder)
        rounds = []
        for _ in range(args.rounds):
            rounds.append(contest.round())
            print(json.dumps(rounds[-1]), flush=True)
    print("| contestant | tokens/s | peak MiB | communication ms | exposed ms | ranks against it |\n|---|---:|---:|---:|---:|---:|")
    for name in rounds[0]:
        middle = lambda key: statistics.median(one[name][key] for one in rounds) if key in rounds[0][name] else float("nan")
        ratio = statistics.median(one["ranks"]["tok_s"] / one[name]["tok_s"] for one in rounds)
        print(f"| {name} | {middle('tok_s'):.1f} | {middle('peak_mb'):.0f} | {middle('comm_ms'):.1f} | {middle('exposed_comm_ms'):.1f} | {ratio:.3f} |")


sys.exit(main())
