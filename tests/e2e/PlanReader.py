"""A plan's metadata as Protobuf messages, read by runtime/plan.proto itself: tests see what is stored, past every tool of ours."""
import os
import struct
import subprocess
import tempfile

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
PROGRAMS = ["step-fused", "step", "accumulate", "update", "forward", "step-fused-ranks", "step-ranks", "update-ranks"]
GENERATED = 0


def metadata_class():
    """PlanMetadata, from a descriptor that protoc writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.pb")
        subprocess.run(["protoc", f"-I{SOURCE}", f"--descriptor_set_out={path}", os.path.join(SOURCE, "runtime", "plan.proto")], check=True)
        files = descriptor_pb2.FileDescriptorSet.FromString(open(path, "rb").read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("llmc.proto.PlanMetadata"))


def read_plan(path):
    """The Plan message of a file: its header gives the metadata's place (runtime/PlanFormat.h)."""
    with open(path, "rb") as file:
        magic, _, _, _, offset, size = struct.unpack("<8sIIQQQ", file.read(40))
        assert magic == b"LLMCPLAN", path
        file.seek(offset)
        return metadata_class().FromString(file.read(size)).plan


def kernels(target):
    """For each program its launches as (kind, integers, floats, bytes of each operand), in order. The first integer is where the kernel's
    code starts, -1 for one that the device has, so that two plans agree only where they run the same code."""
    lists = {}
    for program in target.programs:
        launches = []
        for launch in program.launches:
            ints = [target.entries[launch.entry - 1].offset if launch.entry else -1, *launch.ints]
            launches.append((launch.kind, tuple(ints), tuple(launch.floats), tuple(operand.bytes for operand in launch.operands)))
        lists[PROGRAMS[program.kind]] = launches
    return lists
