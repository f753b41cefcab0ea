"""The simulated GPU for llmc-run: its libraries where the loader looks for the driver's, its seed and number of devices in the environment."""
import os

from Plans import losses, tool

LIBRARIES = {"cudasim_driver": "libcuda.so.1", "cudasim_blas": "libcublasLt.so.13", "cudasim_nccl": "libnccl.so.2"}


def simulate(folder, libraries):
    """From here on llmc-run finds the simulated driver; `folder` holds the links while it does."""
    for ours, real in LIBRARIES.items():
        os.symlink(os.path.join(os.path.abspath(libraries), f"lib{ours}.so"), os.path.join(folder, real))
    os.environ["LD_LIBRARY_PATH"] = folder


def train_simulated(plan, inputs, metrics, *flags, seed=1, devices=1):
    """The losses of a run on the simulated GPU, and what it printed."""
    os.environ["CUDASIM_SEED"], os.environ["CUDASIM_DEVICES"] = str(seed), str(devices)
    said = tool("llmc-run", plan, "--inputs", inputs, "--metrics", metrics, "--device", "cuda", *flags)
    return losses(metrics), said
