"""One bit of each byte of a small file changed in turn, through the whole tools: every run ends in exit 0 or 1, and writes no half output. A
model and its external data (model); a token file of each kind, a batch, a trace, all that a run or llmc-inspect reads (files). Every bit of a
model goes through the importer in tests/frontend, every byte of a plan, a token file and a safetensors file through its reader in tests/runtime.

  flipped-bytes.py model|files
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx

from Plans import BIN, FIXTURES, save_file, tool

LIMIT_S = 300
ISA = ["--isa", "x86-64-v3"]


def ends_well(command, output):
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode not in (0, 1):
        return f"ends with {done.returncode}: {done.stdout.decode(errors='replace')[-400:]}"
    if output and done.returncode == 1 and os.path.exists(output):
        return "leaves half an output"
    if output and os.path.exists(output):
        os.remove(output)
    return ""


def flip_all(target, command, output="", stride=1):
    with open(target, "rb") as file:
        original = file.read()
    if problem := ends_well(command, output):
        return [f"{os.path.basename(target)} as it is: {problem}"]
    failures = []
    for at in range(0, len(original), stride):
        changed = bytearray(original)
        changed[at] ^= 1 << (at // stride % 8)
        with open(target, "wb") as file:
            file.write(changed)
        if problem := ends_well(command, output):
            failures.append(f"byte {at} of {os.path.basename(target)}: {problem}")
    print(f"{os.path.basename(target)}: every {stride}. of {len(original)} bytes, {len(failures)} failures")
    return failures


def flip_model(path):
    compile_ = [os.path.join(BIN, "llmc-compile"), path("m.onnx"), "-o", path("m.plan"), "--as-exported", *ISA]
    model = onnx.load(os.path.join(FIXTURES, "bad", "good_control.onnx"))
    onnx.save(model, path("m.onnx"))
    failures = flip_all(path("m.onnx"), compile_, path("m.plan"))
    onnx.save_model(model, path("m.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    return failures + flip_all(path("m.onnx"), compile_, path("m.plan"), stride=7) + flip_all(path("w.bin"), compile_, path("m.plan"), stride=97)


def flip_files(path):
    tool("llmc-gpt", *"--layers 1 --heads 1 --width 8 --vocab 256 --context 4 --seq 4 --batch 1".split(), "-o", path("gpt.onnx"))
    tool("llmc-compile", path("gpt.onnx"), "-o", path("gpt.plan"), *ISA)
    with open(path("text.txt"), "w") as file:
        file.write("In the beginning was the plan.")
    tool("llmc-data", path("text.txt"), "-o", path("t.bin"))
    np.save(path("t.npy"), np.arange(30, dtype=np.uint16))
    ids = np.array([[1, 2, 3, 4]], dtype=np.int64)
    save_file({"input_ids": ids, "targets": ids}, path("in.safetensors"))
    tool("llmc-run", path("gpt.plan"), "--steps", 1, "--threads", 1, "--profile", path("trace.json"))
    run = [os.path.join(BIN, "llmc-run"), path("gpt.plan"), "--steps", "2", "--threads", "1"]
    failures = flip_all(path("t.bin"), [*run, "--data", path("t.bin")], stride=11)
    failures += flip_all(path("t.npy"), [*run, "--data", path("t.npy")])
    failures += flip_all(path("in.safetensors"), [*run, "--inputs", path("in.safetensors")], stride=2)
    inspect = [os.path.join(BIN, "llmc-inspect"), path("gpt.plan")]
    failures += flip_all(path("trace.json"), [*inspect, "--profile", path("trace.json")], stride=max(1, os.path.getsize(path("trace.json")) // 150))
    tool("llmc-compile", path("gpt.onnx"), "-o", path("other.plan"), *ISA)
    stride = os.path.getsize(path("other.plan")) // 100
    return failures + flip_all(path("other.plan"), [*inspect, "--diff", path("other.plan")], stride=stride)


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        failures = {"model": flip_model, "files": flip_files}[sys.argv[1]](path)
    if failures:
        sys.exit("\n".join(failures[:40]))


main()
