"""How many threads llmc-run takes and says it takes, by OMP_NUM_THREADS, --threads and the CPUs it may run on (as taskset sets them); and that
it starts no more than those, whatever else it asks libraries to do."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

from Plans import BIN, Check, tool

OTHERS = 2  # threads beside those that compute: the loader's and the watcher of signals


def run(plan, metrics, flags, environment, cpus):
    """Threads that the run says it has, and the most that were seen."""
    env = {key: value for key, value in os.environ.items() if key != "OMP_NUM_THREADS"} | environment
    limit = (lambda: os.sched_setaffinity(0, cpus)) if cpus else None
    process = subprocess.Popen([os.path.join(BIN, "llmc-run"), plan, "--steps", "300", "--metrics", metrics, *flags], env=env, preexec_fn=limit,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    most = 0
    while process.poll() is None:
        most = max(most, len(glob.glob(f"/proc/{process.pid}/task/*")))
        time.sleep(0.005)
    if process.returncode != 0:
        sys.exit(f"{flags} {environment}: ended with {process.returncode}: {process.stdout.read().decode()}")
    with open(metrics) as file:
        return json.loads(file.readline())["threads"], most


def main():
    check = Check()
    allowed = sorted(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        tool("llmc-gpt", *"--layers 2 --heads 2 --width 64 --vocab 256 --context 32 --batch 4".split(), "-o", path("m.onnx"))
        tool("llmc-compile", path("m.onnx"), "-o", path("m.plan"), "--isa", "x86-64-v3")
        cases = [([], {}, {allowed[0]}, 1), ([], {"OMP_NUM_THREADS": "3"}, None, 3), ([], {"OMP_NUM_THREADS": "3"}, {allowed[0]}, 3),
                 (["--threads", "2"], {"OMP_NUM_THREADS": "5"}, None, 2), (["--threads", "1"], {}, None, 1),
                 ([], {"OMP_NUM_THREADS": "2", "OMP_DYNAMIC": "true"}, None, 2)]
        for flags, environment, cpus, expected in cases:
            said, most = run(path("m.plan"), path("m.jsonl"), flags, environment, cpus)
            name = f"{' '.join(flags)} {environment} on {'one CPU' if cpus else 'all CPUs'}"
            check.equal(f"{name}: threads", said, expected)
            check.at_most(f"{name}: threads seen", most, expected + OTHERS)
        # The compiler's own threads change nothing (same-bytes compares what they write); here only that it runs on one CPU.
        subprocess.run([os.path.join(BIN, "llmc-compile"), path("m.onnx"), "-o", path("n.plan"), "--isa", "x86-64-v3"], check=True,
                       stdout=subprocess.DEVNULL, preexec_fn=lambda: os.sched_setaffinity(0, {allowed[0]}))
        check.equal("a plan compiled on one CPU", open(path("n.plan"), "rb").read() == open(path("m.plan"), "rb").read(), True)
    check.end()


main()
