#!/usr/bin/env python3
"""Ranks under every launcher that is there: llmc-run's own, torchrun, mpirun, srun, its environment, by hand, and between two machines (network
namespaces). The same plan and data must give the same losses however many ranks share a step, and only rank 0 talks."""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unittest

from RankCase import TOOL, RankCase, main


def find_torchrun():
    """torchrun of the tests' Python, or on the path."""
    beside = os.path.join(os.path.dirname(sys.executable), "torchrun")
    return beside if os.path.exists(beside) else shutil.which("torchrun")


class Launchers(RankCase):
    def losses(self, name="m.jsonl"):
        return [line["loss"] for line in self.metrics(name)[1:]]

    def assert_same_losses(self, ranks):
        """The metrics written by that many ranks, against one rank that takes as many micro-batches."""
        self.succeed("--data", "t.bin", "--steps", 6, "--accumulate", ranks, "--metrics", "one.jsonl")
        self.assertEqual(self.metrics()[0]["ranks"], ranks)
        for mine, expected in zip(self.losses(), self.losses("one.jsonl"), strict=True):
            self.assertAlmostEqual(mine, expected, delta=2e-6 * abs(expected))
        self.assertEqual([line["tokens"] for line in self.metrics()[1:]], [line["tokens"] for line in self.metrics("one.jsonl")[1:]])

    def test_own_ranks(self):
        for ranks in (2, 3, 4):
            out = self.succeed("--nproc", ranks, "--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl", "--rank-times", "--verify-ranks",
                               "--scale-lr")
            self.assert_same_losses(ranks)
            self.assertEqual(out.count(f"{ranks} ranks (llmc-run), shared memory"), 1)
            self.assertEqual(out.count("step 6/6"), 1)
            self.assertIn(f"--scale-lr: rate 0.0003 x {ranks} ranks = {0.0003 * ranks:g}", out)
            self.assertEqual(out.count("  slowest"), 1)
            header, *steps = self.metrics()
            self.assertEqual(header["comm"], "shared memory")
            self.assertAlmostEqual(header["lr"], 0.0003 * ranks)
            for step in steps:
                self.assertEqual(len(step["rank_ms"]), ranks)
                self.assertLess(step["slowest_rank"], ranks)
                self.assertEqual(len(step["weights_hash"]), ranks)
                self.assertEqual(len(set(step["weights_hash"])), 1)
                self.assertGreater(step["comm_ms"], 0)
                self.assertGreaterEqual(step["exposed_comm_ms"], 0)

    def test_one_rank_says_nothing_of_ranks(self):
        out = self.succeed("--nproc", 1, "--steps", 2, "--metrics", "m.jsonl", "--verify-ranks", "--rank-times", "--scale-lr")
        self.assertNotIn("shared memory", out)
        self.assertIn("--scale-lr: rate 0.0003 x 1 rank = 0.0003", out)
        self.assertNotIn("rank_ms", self.metrics()[1])

    def test_64_ranks(self):
        self.succeed("--nproc", 64, "--steps", 3, "--metrics", "m.jsonl")
        self.assertEqual(self.metrics()[0]["ranks"], 64)
        self.assertEqual(self.metrics()[1]["tokens"], 64 * 6)

    def test_outputs_are_of_one_rank(self):
        status, _, error = self.run_ranks("--nproc", 2, "--export-outputs", "o.safetensors")
        self.assertEqual((status, error.count("--export-outputs: the outputs of one rank only")), (1, 1), error)

    def test_by_hand(self):
        for place in ({"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": 29871}, {}):
            flags = () if place else ("--rendezvous", "file:" + self.path("meet"))
            ranks = [self.start("--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl", *flags, RANK=rank, WORLD_SIZE=3, **place)
                     for rank in range(3)]
            for rank, (status, out, error) in enumerate(map(self.end, ranks)):
                self.assertEqual((status, error), (0, ""))
                self.assertEqual(out == "", rank != 0, "rank 0 alone talks")
            self.assert_same_losses(3)
            self.assertFalse(os.path.exists(self.path("meet")))

    def test_environment_of_srun(self):
        ranks = [self.start("--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl", "--rendezvous", "file:" + self.path("meet"),
                            SLURM_PROCID=rank, SLURM_NTASKS=2, SLURM_LOCALID=rank, SLURM_JOB_ID=77, SLURM_STEP_ID=0) for rank in range(2)]
        self.assertEqual([self.end(rank)[0] for rank in ranks], [0, 0])
        self.assert_same_losses(2)

    def test_says_where_ranks_could_meet(self):
        status, _, error = self.run_ranks(RANK=0, WORLD_SIZE=2)
        self.assertEqual(status, 1)
        self.assertIn("MASTER_ADDR and MASTER_PORT are not set; or give --rendezvous HOST:PORT", error)

    @unittest.skipUnless(find_torchrun(), "torchrun is not installed")
    def test_torchrun(self):
        prefix = [find_torchrun(), "--standalone", "--nproc-per-node", "3", "--no-python"]
        status, out, error = self.end(self.start("--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl", prefix=prefix), timeout=120)
        self.assertEqual(status, 0, error)
        self.assertEqual(out.count("3 ranks (torchrun), shared memory"), 1)
        self.assert_same_losses(3)
        begin = time.monotonic()
        process = self.start("--steps", 6, "--timeout", "10s", prefix=prefix, LLMC_TEST_FAULT="1:step:9")
        status, _, error = self.end(process, timeout=120)
        self.assertEqual(status, 1)
        self.assertRegex(error, "rank 1 is gone|rank: 1 |Signal 9")
        self.assertLess(time.monotonic() - begin, 60)

    @unittest.skipUnless(shutil.which("mpirun"), "mpirun is not installed")
    def test_mpirun(self):
        prefix = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "3"]
        status, out, error = self.end(self.start("--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl", prefix=prefix))
        self.assertEqual(status, 0, error)
        self.assertEqual(out.count("3 ranks (mpirun), shared memory"), 1)
        self.assert_same_losses(3)
        status, _, error = self.end(self.start("--steps", 6, "--timeout", "10s", prefix=prefix, LLMC_TEST_FAULT="1:step:9"))
        self.assertNotEqual(status, 0)
        self.assertRegex(error, "rank 1 is gone|signal 9")


SLURM_CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
CredType=cred/munge
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/pgid
TaskPlugin=task/none
ReturnToService=2
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES State=UP
"""


class Slurm(RankCase):
    """A cluster of this machine alone, with daemons of its own."""

    @unittest.skipUnless(all(map(shutil.which, ("munged", "slurmctld", "slurmd", "srun"))) and os.geteuid() == 0, "needs Slurm's daemons, as root")
    def setUp(self):
        super().setUp()
        key = self.path("munge.key")
        with open(key, "wb", opener=lambda path, flags: os.open(path, flags, 0o400)) as file:
            file.write(os.urandom(128))
        os.mkdir(self.path("spool"))
        with open(self.path("slurm.conf"), "w") as file:
            file.write(SLURM_CONF.format(host=socket.gethostname().split(".")[0], folder=self.folder, ports=free_ports(2), cpus=os.cpu_count()))
        self.daemon("munged", "--foreground", "--force", *(f"--{name}={self.path('munge.' + end)}" for name, end in (
            ("key-file", "key"), ("socket", "sock"), ("pid-file", "pid"), ("seed-file", "seed"), ("log-file", "log"))))
        self.wait_for(lambda: os.path.exists(self.path("munge.sock")))
        self.daemon("slurmctld", "-D", "-c", "-f", self.path("slurm.conf"))
        self.daemon("slurmd", "-D", "-f", self.path("slurm.conf"))
        self.wait_for(lambda: b"idle" in subprocess.run(["sinfo", "-h"], env=self.environment(), capture_output=True).stdout)

    def environment(self):
        return {**os.environ, "SLURM_CONF": self.path("slurm.conf")}

    def daemon(self, *command):
        with open(self.path("daemons.log"), "ab") as log:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

    @staticmethod
    def wait_for(condition, seconds=30):
        end = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > end:
                raise TimeoutError("Slurm's daemons do not come up")
            time.sleep(0.05)

    def srun(self, *arguments, **environment):
        prefix = ["srun", "-n", "3", "--overcommit"]
        return self.end(self.start(*arguments, "--rendezvous", "file:" + self.path("meet"), prefix=prefix, SLURM_CONF=self.path("slurm.conf"),
                                   **environment))

    def test_srun(self):
        status, out, error = self.srun("--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl")
        self.assertEqual(status, 0, error)
        self.assertEqual(out.count("3 ranks (srun), shared memory"), 1)
        self.succeed("--data", "t.bin", "--steps", 6, "--accumulate", 3, "--metrics", "one.jsonl")
        for mine, expected in zip(self.metrics()[1:], self.metrics("one.jsonl")[1:], strict=True):
            self.assertAlmostEqual(mine["loss"], expected["loss"], delta=2e-6 * abs(expected["loss"]))
        begin = time.monotonic()
        status, _, error = self.srun("--steps", 6, "--timeout", "10s", LLMC_TEST_FAULT="1:step:9")
        self.assertNotEqual(status, 0)
        self.assertRegex(error, r"rank-run: step 3: all_\w+ \d+ '[^']+': rank 1 is gone: its connection closed")
        self.assertLess(time.monotonic() - begin, 10)
        self.assertFalse(os.path.exists(self.path("meet")))
        begin = time.monotonic()  # srun leaves a stopped rank alone, the other ranks do not
        status, _, error = self.srun("--steps", 6, "--timeout", "4s", LLMC_TEST_FAULT=f"1:step:{signal.SIGSTOP.value}")
        self.assertNotEqual(status, 0)
        self.assertIn("rank 1 gave no sign of life for 2.6 s; rank 1 had not arrived", error)
        print(f"  a rank stopped under srun: all ended after {time.monotonic() - begin:.2f} s", file=sys.stderr)
        self.assertLess(time.monotonic() - begin, 6)  # srun's own start and end included


def free_ports(count):
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def can_make_networks():
    """Whether this user and machine allow network namespaces."""
    return shutil.which("ip") and subprocess.run(["ip", "netns", "add", "llmc-probe"], capture_output=True).returncode == 0 \
        and subprocess.run(["ip", "netns", "delete", "llmc-probe"], capture_output=True).returncode == 0


class TwoMachines(RankCase):
    """Two network namespaces with one cable between them: as far as ranks can tell, two machines."""

    @unittest.skipUnless(can_make_networks(), "network namespaces are not allowed here")
    def setUp(self):
        super().setUp()
        self.names = [f"llmc-{os.getpid()}-{side}" for side in "ab"]
        cables = [f"llmc{os.getpid() % 100000}{side}" for side in "ab"]
        for name in self.names:
            self.ip("netns", "add", name)
            self.addCleanup(subprocess.run, ["ip", "netns", "delete", name])
        self.ip("link", "add", cables[0], "netns", self.names[0], "type", "veth", "peer", "name", cables[1], "netns", self.names[1])
        for i, name in enumerate(self.names):
            self.ip("-n", name, "address", "add", f"10.77.0.{i + 1}/24", "dev", cables[i])
            for device in (cables[i], "lo"):
                self.ip("-n", name, "link", "set", device, "up")

    @staticmethod
    def ip(*arguments):
        subprocess.run(["ip", *arguments], check=True)

    def ranks(self, *arguments, **environment):
        """Two ranks on each of the machines."""
        return [self.start("--data", "t.bin", "--steps", 6, "--metrics", "m.jsonl", *arguments, prefix=["ip", "netns", "exec", self.names[rank // 2]],
                           RANK=rank, WORLD_SIZE=4, LOCAL_RANK=rank % 2, LOCAL_WORLD_SIZE=2, MASTER_ADDR="10.77.0.1", MASTER_PORT=29500,
                           **environment) for rank in range(4)]

    def test_train_together(self):
        ends = [self.end(rank) for rank in self.ranks()]
        self.assertEqual([(status, error) for status, _, error in ends], [(0, "")] * 4)
        self.assertIn("4 ranks (torchrun), Gloo 0.5 over TCP", ends[0][1])
        self.succeed("--data", "t.bin", "--steps", 6, "--accumulate", 4, "--metrics", "one.jsonl")
        for mine, expected in zip(self.metrics()[1:], self.metrics("one.jsonl")[1:], strict=True):
            self.assertAlmostEqual(mine["loss"], expected["loss"], delta=2e-6 * abs(expected["loss"]))

    def test_end_when_one_is_killed_or_stopped(self):
        for number, how in ((signal.SIGKILL, "rank 3 is gone"), (signal.SIGSTOP, "rank 3 gave no sign of life for 2.6 s")):
            begin = time.monotonic()
            ranks = self.ranks("--timeout", "4s", LLMC_TEST_FAULT=f"3:step:{number.value}")
            ends = [self.end(rank) for rank in ranks[:3]]
            self.assertEqual([status for status, _, _ in ends], [1, 1, 1])
            self.assertIn(how, ends[0][2])
            self.assertEqual(self.end(ranks[3])[0], -signal.SIGKILL, "a stopped rank is ended by the one beside it")
            self.assertLess(time.monotonic() - begin, 6)


if __name__ == "__main__":
    main()
