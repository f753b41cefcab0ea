#!/usr/bin/env python3
"""When ranks break: each fault on each rank, with real processes. All ranks end in time, with status 1, the first cause said once, and
nothing is left: no process, no port, no half file."""
import os
import re
import signal
import socket
import subprocess
import sys
import time

from RankCase import TOOL, RankCase, main

TIMEOUT = 4  # seconds


class Faults(RankCase):
    def end_with_cause(self, fault, expected, *arguments, killed_by=None, ranks=3):
        weights = self.path("w.safetensors")
        status, _, error = self.run_ranks("--nproc", ranks, "--timeout", f"{TIMEOUT}s", "--steps", 6, "--export-weights", weights,
                                          *arguments, LLMC_TEST_FAULT=fault)
        lines = error.splitlines()
        if killed_by is not None:
            self.assertIn(f"rank-run: rank {fault.split(':')[0]} was killed by signal {killed_by} (Killed)", lines)
            lines = [line for line in lines if "was killed by" not in line]
        self.assertEqual(len(lines), 1, error)
        self.assertRegex(lines[0], expected)
        self.assertEqual(status, 1)
        self.took(f"fault {fault}", self.seconds, self.START)
        self.assertFalse(os.path.exists(weights))
        self.assert_nothing_left()

    START = 1.5  # seconds that a busy machine may take to start all ranks, where that is measured too

    def took(self, what, seconds, start=0):
        print(f"  {what}: all ended after {seconds:.2f} s", file=sys.stderr)
        self.assertLess(seconds, TIMEOUT + start)

    def test_killed_in_a_step(self):
        for rank in range(3):
            speaker = "rank 1: " if rank == 0 else ""
            self.end_with_cause(f"{rank}:step:9", rf"^rank-run: {speaker}step 3: all_\w+ \d+ '[^']+': rank {rank} is gone: its connection closed"
                                rf"(; rank {rank} had not arrived)?$", killed_by=9)
            self.assertLess(self.seconds, 2, "a death is seen at once")

    def test_stopped_in_a_step(self):
        for rank in range(3):
            speaker = "rank 1: " if rank == 0 else ""
            self.end_with_cause(f"{rank}:step:{signal.SIGSTOP.value}",
                                rf"^rank-run: {speaker}step 3: all_\w+ \d+ '[^']+': rank {rank} gave no sign of life for 2.6 s"
                                rf"; rank {rank} had not arrived$")

    def test_killed_or_stopped_in_a_sum(self):
        """While 128 MB are on their way: all have come (on a busy machine not always), one falls out."""
        for rank in range(3):
            late = f"(; rank {rank} had not arrived)?"
            speaker = "rank 1: " if rank == 0 else ""
            self.end_with_cause(f"{rank}:reduce:9", rf"^rank-run: {speaker}step 3: all_reduce \d+ 'large': rank {rank} is gone: its connection closed{late}$",
                                killed_by=9)
            self.end_with_cause(f"{rank}:reduce:{signal.SIGSTOP.value}",
                                rf"^rank-run: {speaker}step 3: all_reduce \d+ 'large': rank {rank} gave no sign of life for 2.6 s{late}$")

    def hit(self, process, rank, number):
        """Sends one rank a signal and waits for the end of all: the errors, without the parent's own line about a kill."""
        os.kill(self.children(process.pid)[rank], number)
        begin = time.monotonic()
        status, _, error = self.end(process)
        self.assertEqual(status, 1, error)
        lines = error.splitlines()
        if number == signal.SIGKILL:
            self.assertIn(f"rank-run: rank {rank} was killed by signal 9 (Killed)", lines)
        self.assert_nothing_left()
        return time.monotonic() - begin, [line for line in lines if "was killed by" not in line]

    def test_killed_or_stopped_while_weights_are_written(self):
        """Rank 0 writes, the others wait for it. What it has begun it finishes, unless it is the one."""
        weights = self.path("w.safetensors")
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for rank in range(3):
                process = self.start("--nproc", 3, "--timeout", f"{TIMEOUT}s", "--steps", 3, "--export-weights", weights, LLMC_TEST_EXPORT_MS=200)
                while not process.stdout.readline().startswith(b"step 3/3"):
                    pass
                time.sleep(0.1)
                seconds, lines = self.hit(process, rank, number)
                self.took(f"{signal.Signals(number).name} of rank {rank} in an export", seconds)
                if rank == 0:
                    how = "is gone: its connection closed" if number == signal.SIGKILL else "gave no sign of life for 2.6 s"
                    self.assertEqual(len(lines), 1, lines)
                    self.assertRegex(lines[0], rf"^rank-run: rank 1: all_gather \d+ 'end of the run': rank 0 {how}; rank 0 had not arrived$")
                elif number == signal.SIGSTOP:  # it had come to the end of the run, and the others go home
                    self.assertEqual(lines, [f"rank-run: rank {rank} was stopped and is still there 2.6 s after the first that ended"])
                self.assertEqual(os.path.exists(weights), rank != 0)
                if rank != 0:
                    os.remove(weights)

    def test_killed_or_stopped_while_metrics_are_written(self):
        """Rank 0 sits in a write, to a pipe that nobody empties."""
        pipe = self.path("m.jsonl")
        os.mkfifo(pipe)
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for rank in range(3):
                reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
                process = self.start("--nproc", 3, "--timeout", f"{TIMEOUT}s", "--steps", 100000, "--metrics", pipe)
                process.stdout.readline()
                self.wait_for_write(process, reader)
                seconds, lines = self.hit(process, rank, number)
                os.close(reader)
                self.took(f"{signal.Signals(number).name} of rank {rank} in a metrics write", seconds)
                how = "is gone: its connection closed" if number == signal.SIGKILL else "gave no sign of life for 2.6 s"
                self.assertEqual(len(lines), 1, lines)
                self.assertRegex(lines[0], rf"^rank-run: (rank 1: step \d+: .*)?rank {rank} {how}(; rank {rank} had not arrived)?$")

    def wait_for_write(self, process, reader):
        """Until rank 0 sleeps in the kernel's pipe_write, with the pipe full."""
        first = self.children(process.pid)[0]
        while True:
            with open(f"/proc/{first}/wchan") as file:
                if "pipe" in file.read():
                    return
            time.sleep(0.01)

    def test_killed_or_stopped_in_rendezvous(self):
        """Two ranks wait for the third when one of them is hit; for a stopped one to be noticed all must have come."""
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for victim in range(3):
                late = 2 if victim < 2 else 1
                place = {"WORLD_SIZE": 3, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": self.free_port()}
                ranks = {rank: self.start("--timeout", f"{TIMEOUT}s", "--steps", 100000, RANK=rank, LLMC_TEST_STEP_MS=5, **place)
                         for rank in range(3) if rank != late}
                time.sleep(0.3)
                os.kill(ranks[victim].pid, number)
                begin = time.monotonic()
                if number == signal.SIGSTOP:
                    ranks[late] = self.start("--timeout", f"{TIMEOUT}s", "--steps", 100000, RANK=late, LLMC_TEST_STEP_MS=5, **place)
                ends = [self.end(process) for rank, process in ranks.items() if rank != victim]
                self.assertEqual(self.end(ranks[victim])[0], -signal.SIGKILL, "a stopped rank is ended by the others")
                self.took(f"{signal.Signals(number).name} of rank {victim} in rendezvous", time.monotonic() - begin)
                self.assertEqual([(status, out) for status, out, _ in ends if status != 1], [])
                how = "is gone: its connection closed" if number == signal.SIGKILL else "gave no sign of life for 2.6 s"
                errors = "".join(error for _, _, error in ends)
                self.assertRegex(errors, rf"rank {victim} {how}")
                self.assertEqual(len(errors.splitlines()), 1, errors)

    def test_a_ranks_own_error_is_said_once(self):
        self.end_with_cause("0:error:0", r"^rank-run: step 3: kernel failed$")
        self.end_with_cause("2:error:0", r"^rank-run: step 3: all_\w+ \d+ '[^']+': rank 2: step 3: kernel failed$")

    def test_every_rank_at_its_start(self):
        """kill -9 and SIGSTOP as soon as a rank exists, wherever it then is."""
        for number in (signal.SIGKILL, signal.SIGSTOP):
            for rank in range(3):
                process = self.start("--nproc", 3, "--timeout", f"{TIMEOUT}s", "--steps", 100000, LLMC_TEST_STEP_MS=5)
                begin = time.monotonic()
                while len(children := self.children(process.pid)) < 3:
                    time.sleep(0.0005)
                os.kill(children[rank], number)
                status, _, error = self.end(process)
                self.assertEqual(status, 1, error)
                self.assertRegex(error, rf"rank {rank} (is gone|gave no sign of life|did not arrive|was killed by signal 9)")
                self.took(f"{signal.Signals(number).name} of rank {rank} at its start", time.monotonic() - begin, self.START)
                self.assert_nothing_left()

    @staticmethod
    def children(pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            return [int(child) for child in file.read().split()]

    def test_ranks_do_not_outlive_their_parent(self):
        process = self.start("--nproc", 3, "--steps", 100000, LLMC_TEST_STEP_MS=5)
        process.stdout.readline()
        process.kill()
        self.end(process)
        self.assert_nothing_left()

    def test_a_missing_or_contradicting_rank(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        here = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        begin = time.monotonic()
        only = self.start("--timeout", f"{TIMEOUT}s", RANK=0, WORLD_SIZE=2, **here)
        status, _, error = self.end(only)
        self.assertEqual((status, error), (1, f"rank-run: rendezvous at 127.0.0.1:{port}: rank 1 did not arrive in 3.4 s; 1 of 2 ranks did\n"))
        self.took("a rank that never comes", time.monotonic() - begin)
        begin = time.monotonic()
        two = [self.start("--timeout", f"{TIMEOUT}s", RANK=rank, WORLD_SIZE=2 + rank, **here) for rank in (0, 1)]
        ends = [self.end(process) for process in two]
        self.took("wrong WORLD_SIZE on one rank", time.monotonic() - begin)
        self.assertEqual([status for status, _, _ in ends], [1, 1])
        self.assertIn("rank 1 was told that there are 3 ranks, rank 0 that there are 2", ends[0][2] + ends[1][2])

    def test_ranks_that_were_told_different_things(self):
        port = self.free_port()
        other = self.path("other.plan")
        subprocess.run([TOOL, "--write-plan", other, "another model"], check=True)
        for flag, values, said in (("--lr", ("0.25", "0.5"), r"rank 1 has --lr 0\.5, rank 0 has --lr 0\.25"),
                                   ("--steps", (6, 7), r"rank 1 has the data .* 7 steps.*, rank 0 has the data .* 6 steps"),
                                   ("--version-is", (8, 9), r"rank 1 runs version 9, rank 0 version 8"),
                                   ("plan", (self.plan, other), r"rank 1 has the plan \w{16}, rank 0 has the plan \w{16}$")):
            begin = time.monotonic()
            flags = lambda rank: {"plan": values[rank]} if flag == "plan" else {}
            words = lambda rank: () if flag == "plan" else (flag, values[rank])
            processes = [self.start("--data", "t.bin", "--timeout", "5s", *words(rank), **flags(rank), RANK=rank, WORLD_SIZE=2,
                                    MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in (0, 1)]
            ends = [self.end(process) for process in processes]
            self.took(f"another {flag} on one rank", time.monotonic() - begin)
            self.assertEqual([status for status, _, _ in ends], [1, 1])
            self.assertRegex("".join(error for _, _, error in ends), said)
            self.assertEqual(len("".join(error for _, _, error in ends).splitlines()), 1)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            status, out, error = self.run_ranks("--nproc", 2, "--rendezvous", f"127.0.0.1:{port}")
            self.took("a port that is taken", self.seconds)
            self.assertEqual((status, out, error), (1, "", f"rank-run: port {port} is taken by another process\n"))
        self.succeed("--nproc", 2, "--rendezvous", f"127.0.0.1:{port}", "--steps", 2)  # and free again afterwards
        self.succeed("--nproc", 2, "--rendezvous", f"127.0.0.1:{port}", "--steps", 2)

    def test_signals_end_all_ranks_at_the_same_step(self):
        for number, victim in ((signal.SIGINT, None), (signal.SIGTERM, None), (signal.SIGTERM, 0), (signal.SIGINT, 2)):
            process = self.start("--nproc", 3, "--steps", 100000, "--metrics", "m.jsonl", "--export-weights", "w.safetensors",
                                 LLMC_TEST_STEP_MS=5)
            while not os.path.exists(self.path("m.jsonl")) or len(self.metrics()) < 3:
                time.sleep(0.01)
            os.kill(process.pid if victim is None else self.children(process.pid)[victim], number)
            status, out, error = self.end(process)
            self.assertEqual((status, error), (128 + number, ""))
            steps = int(re.search(rf"stopped by signal {number.value} after (\d+) of 100000 steps", out).group(1))
            self.assertEqual(len(self.metrics()), steps + 1)
            self.assertTrue(os.path.exists(self.path("w.safetensors")), "exports are written as for a run of that many steps")
            self.assert_nothing_left()
            os.remove(self.path("m.jsonl"))

    def test_a_second_signal_ends_all_at_once(self):
        process = self.start("--nproc", 2, "--steps", 100000, "--metrics", "m.jsonl", LLMC_TEST_STEP_MS=3000)
        process.stdout.readline()
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        time.sleep(0.3)
        begin = time.monotonic()
        process.send_signal(signal.SIGINT)
        status, _, _ = self.end(process)
        self.assertEqual(status, 128 + signal.SIGINT)
        self.assertLess(time.monotonic() - begin, 2)

    def test_a_signal_ends_the_wait_for_a_rank(self):
        process = self.start("--timeout", "60s", RANK=0, WORLD_SIZE=2, MASTER_ADDR="127.0.0.1", MASTER_PORT=self.free_port())
        time.sleep(0.5)
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.end(process, timeout=5), (128 + signal.SIGTERM, "", ""))

    @staticmethod
    def free_port():
        with socket.create_server(("127.0.0.1", 0)) as probe:
            return probe.getsockname()[1]


if __name__ == "__main__":
    main()
