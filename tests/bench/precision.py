#!/usr/bin/env python3
"""Does bf16 train as f32 does? The demo's model on the demo's text, in both precisions, on the same batches; the losses must end within 1 %.

  precision.py --bin build/bin --steps 300 -o precision.json

The model, the schedule and the seed are those of tools/demo. The end of a run is the mean of its last `tail` steps, since one batch's loss says as
much of the batch as of the model. Prints a Markdown table along the way and at the end; exits 1 where the two ends are further apart than `within`.
300 steps take some eight minutes on two cores, and other work on the machine changes nothing but the time.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

MODEL = "--preset small --batch 12 --seq 256 --seed 1".split()
SCHEDULE = "--lr 1e-3 --warmup 20 --schedule cosine --min-lr 1e-4 --seed 1".split()


def run(bin_folder, tool, *arguments):
    done = subprocess.run([os.path.join(bin_folder, tool), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode:
        sys.exit(f"{tool} failed:\n{done.stdout.decode()}")


def losses(args, folder, onnx, tokens, precision):
    """The loss of every step."""
    plan, metrics = os.path.join(folder, f"{precision}.plan"), os.path.join(folder, f"{precision}.jsonl")
    run(args.bin, "llmc-compile", onnx, "-o", plan, f"--{precision}")
    run(args.bin, "llmc-run", plan, "--data", tokens, "--steps", args.steps, *SCHEDULE, "--metrics", metrics)
    return [json.loads(line)["loss"] for line in list(open(metrics))[1:]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/bin")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--tail", type=int, default=10)
    parser.add_argument("--within", type=float, default=0.01)
    parser.add_argument("--text", help="a text file; by default what Debian's bible-kjv prints")
    parser.add_argument("-o", "--output", help="both runs' losses as JSON")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        onnx, text, tokens = (os.path.join(folder, name) for name in ("gpt.onnx", "text.txt", "train.bin"))
        run(args.bin, "llmc-gpt", *MODEL, "-o", onnx)
        if not args.text:
            with open(text, "wb") as file:
                subprocess.run(["/usr/bin/bible", "-f", "Gen1:1-Rev22:21"], check=True, stdout=file)
        run(args.bin, "llmc-data", args.text or text, "-o", tokens, "--val-fraction", 0.1, "--tokenizer", "bytes")
        found = {precision: losses(args, folder, onnx, tokens, precision) for precision in ("bf16", "fp32")}
    if args.output:
        with open(args.output, "w") as file:
            json.dump(found, file)
    print("| steps | bf16 | fp32 | bf16 / fp32 |\n|---|---:|---:|---:|")
    ends = [end for end in range(50, args.steps, 50)] + [args.steps]
    for end in ends:
        bf16, fp32 = (sum(found[precision][:end][-args.tail:]) / len(found[precision][:end][-args.tail:]) for precision in ("bf16", "fp32"))
        print(f"| {max(end - args.tail, 0) + 1}–{end} | {bf16:.4f} | {fp32:.4f} | {bf16 / fp32:.4f} |")
    if not abs(bf16 / fp32 - 1) <= args.within:
        sys.exit(f"the losses end {abs(bf16 / fp32 - 1):.2%} apart, at most {args.within:.0%} is allowed")


main()
