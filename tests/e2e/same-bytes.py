"""The same input, flags and build give the same plan, in any folder and with any number of threads; two runs of a plan give the same bits."""
import filecmp
import json
import os
import shutil
import sys
import tempfile

from Plans import tool


def numbers(metrics):
    """What a run computed: everything but times and measured memory."""
    lines = [json.loads(line) for line in open(metrics)][1:]
    return [{key: line[key] for key in ("step", "loss", "grad_norm", "tokens", "lr")} for line in lines]


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        os.mkdir(path("elsewhere"))
        tool("llmc-gpt", "--layers", 2, "--heads", 3, "--width", 48, "--vocab", 101, "--context", 40, "--seq", 33, "--batch", 3, "-o", path("gpt.onnx"))
        shutil.copy(path("gpt.onnx"), path("elsewhere/gpt.onnx"))
        os.environ["OMP_NUM_THREADS"] = "1"
        tool("llmc-compile", path("gpt.onnx"), "-o", path("a.plan"))
        os.environ["OMP_NUM_THREADS"] = "2"
        os.chdir(path("elsewhere"))
        tool("llmc-compile", "gpt.onnx", "-o", "b.plan")
        if not filecmp.cmp(path("a.plan"), path("elsewhere/b.plan"), shallow=False):
            sys.exit("the plan depends on the folder or the number of threads")
        for clip in (0, 1):
            runs = []
            for run in range(2):
                tool("llmc-run", path("a.plan"), "--steps", 8, "--threads", 2, "--clip", clip, "--seed", 5, "--metrics", path(f"{run}.jsonl"))
                runs.append(numbers(path(f"{run}.jsonl")))
            if runs[0] != runs[1]:
                sys.exit(f"two runs with clip {clip} differ:\n{runs[0]}\n{runs[1]}")
            print(f"clip {clip}: {runs[0][-1]}")


main()
