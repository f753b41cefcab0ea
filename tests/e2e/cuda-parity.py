"""A fixture, trained on the simulated GPU: the CPU backend's losses in fp32, within design.md's bound, in several schedules of its streams.
Usage: cuda-parity.py FIXTURE FOLDER-OF-SIMULATED-LIBRARIES"""
import os
import sys
import tempfile

from Plans import Check, Fixture, losses, tool

LOSS_BOUND = 2e-5  # relative, fp32 against the CPU's fp32
STEPS = 10


def train(path, fixture, name, *flags, seed=1):
    """The losses of a run; for a GPU the simulator is told its seed."""
    os.environ["CUDASIM_SEED"] = str(seed)
    said = tool("llmc-run", path("p.plan"), "--inputs", path("in.safetensors"), "--steps", STEPS, "--metrics", path(name), *flags, *fixture.optimizer_flags())
    return losses(path(name)), said


def compare(check, what, got, expected):
    check.equal(f"{what}: number of losses", len(got), len(expected))
    worst = max(abs(ours - theirs) / abs(theirs) for ours, theirs in zip(got, expected))
    check.at_most(f"{what}: largest distance of a loss", worst, LOSS_BOUND)


def main():
    fixture, check = Fixture(sys.argv[1]), Check()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        for ours, real in ("cudasim_driver", "libcuda.so.1"), ("cudasim_blas", "libcublasLt.so.13"), ("cudasim_nccl", "libnccl.so.2"):
            os.symlink(os.path.join(sys.argv[2], f"lib{ours}.so"), path(real))
        os.environ["LD_LIBRARY_PATH"] = folder
        fixture.compile(path("p.plan"), "--dropout", 0, "--target", "cpu,cuda")
        fixture.write_inputs(path("in.safetensors"))
        expected, _ = train(path, fixture, "cpu.jsonl", "--device", "cpu", "--threads", 2)
        for seed in 1, 2, 3:
            got, said = train(path, fixture, f"cuda{seed}.jsonl", "--device", "cuda", seed=seed)
            check.equal("the device is named", "Simulated GPU, " in said, True)
            compare(check, f"seed {seed}", got, expected)
    check.end()


main()
