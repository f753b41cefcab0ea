"""Training that is asked to stop by a signal, at several moments: the step is finished, the files are whole, the exit status says why. No
thread may run a handler: in oneDNN's GEMM kernels its frame would overwrite the heap (tools/llmc-run/StopSignals.h)."""
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import onnx
from safetensors.numpy import load_file

from Plans import BIN, Check, tool

BOTH = 1 << (signal.SIGINT - 1) | 1 << (signal.SIGTERM - 1)


def use_default_signals():
    """Whatever started the tests may have had them ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


def thread_masks(process, field):
    """What of the two signals each thread of a process has in a mask of its own, by /proc: SigBlk (blocked) or SigCgt (handled)."""
    folder = f"/proc/{process.pid}/task"
    masks = {}
    for thread in os.listdir(folder):
        with open(f"{folder}/{thread}/status") as status:
            masks[int(thread)] = BOTH & int(re.search(rf"^{field}:\s*(\w+)$", status.read(), re.MULTILINE).group(1), 16)
    return masks


def wait_until(process, holds, what):
    end = time.monotonic() + 120
    while not holds():
        if process.poll() is not None or time.monotonic() > end:
            process.kill()
            sys.exit(f"no {what} before the end: {process.communicate()}")
        time.sleep(0.002)


class Run:
    """One run of a plan, its files in a folder of its own, on a heap whose damage ends the process."""

    def __init__(self, plan, folder):
        os.mkdir(folder)
        self.metrics, self.weights, self.model = (os.path.join(folder, name) for name in ("m.jsonl", "w.safetensors", "trained.onnx"))
        self.folder = folder
        self.process = subprocess.Popen([os.path.join(BIN, "llmc-run"), plan, "--steps", "1000000", "--threads", "2", "--metrics", self.metrics,
                                         "--export-weights", self.weights, "--export-onnx", self.model],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, preexec_fn=use_default_signals,
                                        env=dict(os.environ, MALLOC_CHECK_="3", MALLOC_PERTURB_="165"))

    def num_lines(self):
        return open(self.metrics).read().count("\n") if os.path.exists(self.metrics) else 0

    def wait_for_steps(self, count):
        wait_until(self.process, lambda: self.num_lines() > count, f"step {count}")

    def wait_for_mask(self):
        wait_until(self.process, lambda: any(thread_masks(self.process, "SigBlk").values()), "blocked signals")

    def end(self):
        """Exit status and what was printed."""
        out, errors = self.process.communicate(timeout=300)
        return self.process.returncode, out.decode(), errors.decode()


def stop_once(check, run, number, what):
    """Sends one signal to a run and looks at all it leaves."""
    run.process.send_signal(number)
    status, out, errors = run.end()
    check.equal(f"{what}: errors", errors, "")
    check.equal(f"{what}: exit status", status, 128 + number)
    said = re.search(r"stopped by signal (\d+) after (\d+) of 1000000 steps", out)
    check.equal(f"{what}: the signal said", said and int(said.group(1)), int(number))
    steps = int(said.group(2)) if said else -1
    lines = [json.loads(line) for line in open(run.metrics)] if os.path.exists(run.metrics) else []
    check.equal(f"{what}: metrics", [line["step"] for line in lines[1:]], list(range(1, steps + 1)))
    check.equal(f"{what}: files", sorted(os.listdir(run.folder)), (["m.jsonl"] if lines else []) + ["trained.onnx", "w.safetensors"])
    trained = {tensor.name for tensor in onnx.load(run.model).graph.initializer}
    weights = load_file(run.weights)
    check.equal(f"{what}: weights", len(weights) > 20 and set(weights) <= trained, True)
    print(f"{what}: stopped after {steps} steps")


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        tool("llmc-gpt", "--preset", "small", "--batch", 2, "--seq", 64, "-o", path("gpt.onnx"))
        tool("llmc-compile", path("gpt.onnx"), "-o", path("any.plan"))
        tool("llmc-compile", path("gpt.onnx"), "--isa", "x86-64-v3", "-o", path("v3.plan"))

        for plan in ("any", "v3"):
            run = Run(path(f"{plan}.plan"), path(f"{plan}-threads"))
            run.wait_for_steps(1)
            open_to = [thread for thread, mask in thread_masks(run.process, "SigBlk").items() if mask != BOTH]
            check.equal(f"{plan}: one thread waits for signals, not the first", len(open_to) == 1 and run.process.pid not in open_to, True)
            check.equal(f"{plan}: threads with a handler", [thread for thread, mask in thread_masks(run.process, "SigCgt").items() if mask], [])
            stop_once(check, run, signal.SIGTERM, f"{plan}, its threads seen")
            for i, number in enumerate([signal.SIGINT, signal.SIGTERM] * 2):
                run = Run(path(f"{plan}.plan"), path(f"{plan}-{i}"))
                if i == 0:
                    run.wait_for_mask()
                else:
                    run.wait_for_steps(1)
                    time.sleep(0.023 * i)
                stop_once(check, run, number, f"{plan}, moment {i}")

        run = Run(path("v3.plan"), path("twice"))
        run.wait_for_steps(1)
        for number in (signal.SIGSTOP, signal.SIGINT, signal.SIGTERM, signal.SIGCONT):  # so that no time passes between the two
            run.process.send_signal(number)
        check.equal("two signals: exit status", run.end()[0], -signal.SIGTERM)
        check.equal("two signals: files", os.listdir(run.folder), ["m.jsonl"])
    check.end()


main()
