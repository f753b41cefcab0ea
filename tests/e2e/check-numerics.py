"""llmc-compile --check-numerics on exported models: nothing departs in fp32 and bf16, with dropout as exported, and the plan is the one
that is written without the check; a batch that does not fit is refused by name and leaves nothing behind."""
import os
import re
import sys
import tempfile

import numpy as np
from Plans import Check, Fixture, save_file, tool

AGREES = r"numerics: (\d+) results agree with the unfused f32 program \((\d+) launches against (\d+)\), \d+ have no counterpart in it; at most \S+ of the bound, at '.+'"


def check_fixture(check, name, precision):
    fixture = Fixture(name)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda file: os.path.join(folder, file)
        fixture.write_inputs(path("in.safetensors"))
        printed = fixture.compile(path("checked.plan"), precision, "--check-numerics", path("in.safetensors"))
        fixture.compile(path("plain.plan"), precision)
        found = re.search(AGREES, printed)
        check.equal(f"{name} {precision} says that all agree", bool(found), True)
        if found:
            compared, launches, reference = map(int, found.groups())
            print(f"{name} {precision}: {found.group(0)}")
            check.equal(f"{name} {precision}: more results than launches", compared > launches, True)
            check.equal(f"{name} {precision}: the reference is not fused", reference > 2 * launches, True)
        check.equal(f"{name} {precision}: same plan", open(path("checked.plan"), "rb").read() == open(path("plain.plan"), "rb").read(), True)
        check.equal(f"{name} {precision}: files", sorted(os.listdir(folder)), ["checked.plan", "in.safetensors", "plain.plan"])


def check_refusals(check, name):
    fixture = Fixture(name)
    with tempfile.TemporaryDirectory() as folder:
        path = lambda file: os.path.join(folder, file)
        save_file({"other": np.zeros(3, np.float32)}, path("in.safetensors"))
        for batch, message in [("in.safetensors", "has no tensor"), ("missing.safetensors", "cannot be opened: No such file or directory")]:
            printed = tool("llmc-compile", fixture.model, "-o", path("x.plan"), "--as-exported", "--check-numerics", path(batch), code=1)
            check.equal(f"{batch} is named", f"llmc-compile: --check-numerics: {path(batch)}: " in printed and message in printed, True)
        check.equal("nothing is left behind", os.listdir(folder), ["in.safetensors"])


def main():
    check = Check()
    for name in sys.argv[1:]:
        for precision in ("--fp32", "--bf16"):
            check_fixture(check, name, precision)
    check_refusals(check, sys.argv[1])
    check.end()


main()
