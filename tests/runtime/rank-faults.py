#!/usr/bin/env python3
"""When ranks break: each fault on each rank, with real processes. All ranks end in time, with status 1, the first cause said once, and
nothing is left: no process, no port, no half file."""
import os
import re
import signal
import socket
import time

from RankCase import RankCase, main

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
        self.assertLess(self.seconds, TIMEOUT + 1)
        self.assertFalse(os.path.exists(weights))
        self.assert_nothing_left()

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
                                rf"^rank-run: {speaker}step 3: all_\w+ \d+ '[^']+': rank {rank} gave no sign of life for 3.2 s"
                                rf"; rank {rank} had not arrived$")

    def test_killed_or_stopped_while_it_writes(self):
        self.end_with_cause("0:export:9", r"^rank-run: rank 1: all_gather \d+ 'end of the run': rank 0 is gone: its connection closed"
                            r"; rank 0 had not arrived$", killed_by=9)
        self.end_with_cause(f"0:export:{signal.SIGSTOP.value}", r"^rank-run: rank 1: all_gather \d+ 'end of the run': rank 0 gave no sign of "
                            r"life for 3.2 s; rank 0 had not arrived$")

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
                self.assertLess(time.monotonic() - begin, TIMEOUT + 1)
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
        self.assertEqual((status, error), (1, f"rank-run: rendezvous at 127.0.0.1:{port}: rank 1 did not arrive in 3.6 s; 1 of 2 ranks did\n"))
        self.assertLess(time.monotonic() - begin, TIMEOUT + 1)
        two = [self.start("--timeout", f"{TIMEOUT}s", RANK=rank, WORLD_SIZE=2 + rank, **here) for rank in (0, 1)]
        ends = [self.end(process) for process in two]
        self.assertEqual([status for status, _, _ in ends], [1, 1])
        self.assertIn("rank 1 was told that there are 3 ranks, rank 0 that there are 2", ends[0][2] + ends[1][2])

    def test_ranks_that_were_told_different_things(self):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        for flag, values, said in (("--lr", ("0.25", "0.5"), r"rank 1 has --lr 0\.5, rank 0 has --lr 0\.25"),
                                   ("--steps", (6, 7), r"rank 1 has the data .* 7 steps.*, rank 0 has the data .* 6 steps"),
                                   ("--version-is", (8, 9), r"rank 1 runs version 9, rank 0 version 8")):
            processes = [self.start("--data", "t.bin", "--timeout", "5s", flag, values[rank], RANK=rank, WORLD_SIZE=2,
                                    MASTER_ADDR="127.0.0.1", MASTER_PORT=port) for rank in (0, 1)]
            ends = [self.end(process) for process in processes]
            self.assertEqual([status for status, _, _ in ends], [1, 1])
            self.assertRegex("".join(error for _, _, error in ends), said)
            self.assertEqual(len("".join(error for _, _, error in ends).splitlines()), 1)

    def test_a_port_that_is_taken(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            port = taken.getsockname()[1]
            status, out, error = self.run_ranks("--nproc", 2, "--rendezvous", f"127.0.0.1:{port}")
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
