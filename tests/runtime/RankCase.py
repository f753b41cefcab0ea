"""What the tests of ranks share: rank-run with the tiny plan in a folder of its own, and a look at what is left behind."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

BIN = os.environ["LLMC_BIN"]
TOOL = os.path.join(BIN, "rank-run")
LAUNCHER_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_", "MASTER_", "OMPI_", "PMIX_", "SLURM_", "TORCHELASTIC_", "OMP_NUM_THREADS")


def clean_environment(**more):
    """The environment without what a launcher of the tests themselves may have left."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LAUNCHER_VARIABLES)}
    return {**kept, **{name: str(value) for name, value in more.items()}}


def use_default_signals():
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class RankCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.plan = self.path("tiny.plan")
        subprocess.run([TOOL, "--write-plan", self.plan], check=True)
        with open(self.path("t.bin"), "wb") as file:
            file.write(b"".join(bytes([(i * i + i // 7) % 5, 0]) for i in range(3 * 40 + 1)))
        self.addCleanup(self.assert_nothing_left)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, *arguments, prefix=(), plan=None, **environment):
        """A process of rank-run, or of a launcher that starts it; its texts are pipes."""
        command = [*prefix, TOOL, plan or self.plan, *map(str, arguments)]
        process = subprocess.Popen(command, cwd=self.folder, env=clean_environment(**environment), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=use_default_signals)
        self.addCleanup(process.kill)
        return process

    def end(self, process, timeout=60):
        """Waits for it: exit status, what it printed, its errors."""
        out, error = process.communicate(timeout=timeout)
        return process.returncode, out.decode(), error.decode()

    def run_ranks(self, *arguments, **environment):
        start = time.monotonic()
        ended = self.end(self.start(*arguments, **environment))
        self.seconds = time.monotonic() - start
        return ended

    def succeed(self, *arguments, **environment):
        status, out, error = self.run_ranks(*arguments, **environment)
        self.assertEqual((status, error), (0, ""), out)
        return out

    def metrics(self, name="m.jsonl"):
        with open(self.path(name)) as file:
            return [json.loads(line) for line in file]

    def processes(self):
        """Ids of living processes of this test: those that have its folder in their command."""
        found = []
        for entry in os.listdir("/proc"):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as file:
                    if entry.isdigit() and self.folder.encode() in file.read() and int(entry) != os.getpid():
                        found.append(int(entry))
            except OSError:
                continue  # no process, or gone
        return found

    def assert_nothing_left(self):
        end = time.monotonic() + 5
        while self.processes() and time.monotonic() < end:
            time.sleep(0.02)
        left = self.processes()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(left, [], "processes outlived their run")


def main():
    unittest.main(argv=[sys.argv[0], "-v", *sys.argv[1:]])
