#!/usr/bin/env python3
"""Times training against another framework in one spell: the two run in turn, and the medians and their ratio are printed.

  versus.py --bin build/bin --model gpt2|small --rounds 3 --steps 12 --rival 'PYTHON RIVAL.py --model gpt2 --dtype fp32 --compile'

The rival prints one JSON line with tok_s and peak_rss_mb. Ours is the same model by llmc-gpt (gpt2: B=4 T=256; small: B=12 T=256), random
tokens, clipping off, AdamW. Single figures move with the machine; quote the ratios.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

MODELS = {"gpt2": ["--preset", "gpt2", "--batch", "4", "--seq", "256"], "small": ["--preset", "small", "--batch", "12", "--seq", "256"]}


def ours(args, plan, folder):
    metrics = os.path.join(folder, "m.jsonl")
    begin = time.perf_counter()
    subprocess.run([os.path.join(args.bin, "llmc-run"), plan, "--steps", str(args.steps), "--threads", str(args.threads), "--clip", "0", "--metrics", metrics],
                   check=True, stdout=subprocess.DEVNULL)
    process_s = time.perf_counter() - begin
    lines = [json.loads(line) for line in open(metrics)][1:]
    steps = sorted(line["step_ms"] for line in lines[2:])
    tokens = lines[-1]["tokens"]
    return dict(tok_s=tokens / steps[len(steps) // 2] * 1000, peak_mb=lines[-1]["peak_bytes"] / 2**20, process_s=process_s)


def rival(args):
    done = subprocess.run(shlex.split(args.rival) + ["--steps", str(args.steps), "--threads", str(args.threads)], check=True, stdout=subprocess.PIPE)
    result = json.loads(done.stdout.decode().strip().splitlines()[-1])
    return dict(tok_s=result["tok_s"], peak_mb=result["peak_rss_mb"], process_s=result.get("process_s", 0))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--model", choices=MODELS, default="gpt2")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--compile-flags", default="--target cpu")
    parser.add_argument("--rival", default="")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        onnx, plan = os.path.join(folder, "gpt.onnx"), os.path.join(folder, "gpt.plan")
        subprocess.run([os.path.join(args.bin, "llmc-gpt"), *MODELS[args.model], "-o", onnx], check=True, stdout=subprocess.DEVNULL)
        begin = time.perf_counter()
        subprocess.run([os.path.join(args.bin, "llmc-compile"), onnx, "-o", plan, *shlex.split(args.compile_flags)], check=True, stdout=subprocess.DEVNULL)
        print(f"compile: {time.perf_counter() - begin:.2f} s")
        rounds = []
        for i in range(args.rounds):
            rounds.append((ours(args, plan, folder), rival(args) if args.rival else None))
            print(json.dumps(dict(round=i, ours=rounds[-1][0], rival=rounds[-1][1])), flush=True)
    for key in ("tok_s", "peak_mb"):
        mine = statistics.median(r[0][key] for r in rounds)
        if not args.rival:
            print(f"{key}: {mine:.1f}")
            continue
        theirs = statistics.median(r[1][key] for r in rounds)
        ratios = statistics.median(r[0][key] / r[1][key] for r in rounds)
        print(f"{key}: ours {mine:.1f}, rival {theirs:.1f}, median ratio {ratios:.3f}")


sys.exit(main())
