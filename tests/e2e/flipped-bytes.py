"""One bit of each byte of a tiny ONNX model changed in turn, and of every fifth byte of a tiny token file, through the whole tools: every run
ends in exit 0 or 1. (Every bit of a model goes through the importer in tests/frontend, every byte of a token file through its reader in
tests/runtime.)"""
import os
import subprocess
import sys
import tempfile

from Plans import BIN, FIXTURES, tool

LIMIT_S = 20


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


def flip_all(original, target, command, output, stride=1):
    failures = []
    for at in range(0, len(original), stride):
        changed = bytearray(original)
        changed[at] ^= 1 << (at % 8)
        with open(target, "wb") as file:
            file.write(changed)
        if problem := ends_well(command, output):
            failures.append(f"byte {at} of {os.path.basename(target)}: {problem}")
    print(f"{os.path.basename(target)}: {len(original)} bytes, {len(failures)} failures")
    return failures


def main():
    model = open(os.path.join(FIXTURES, "bad", "good_control.onnx"), "rb").read()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        compile_ = [os.path.join(BIN, "llmc-compile"), path("m.onnx"), "-o", path("m.plan"), "--as-exported", "--isa", "x86-64-v3"]
        failures = flip_all(model, path("m.onnx"), compile_, path("m.plan"))

        tool("llmc-gpt", "--layers", 1, "--heads", 1, "--width", 8, "--vocab", 256, "--context", 4, "--seq", 4, "--batch", 1, "-o", path("gpt.onnx"))
        tool("llmc-compile", path("gpt.onnx"), "-o", path("gpt.plan"), "--isa", "x86-64-v3")
        with open(path("text.txt"), "w") as file:
            file.write("In the beginning was the plan.")
        tool("llmc-data", path("text.txt"), "-o", path("t.bin"))
        run = [os.path.join(BIN, "llmc-run"), path("gpt.plan"), "--data", path("t.bin"), "--steps", "2", "--threads", "1"]
        failures += flip_all(open(path("t.bin"), "rb").read(), path("t.bin"), run, "", stride=5)
    if failures:
        sys.exit("\n".join(failures[:40]))


main()
