"""Every file of fixtures/bad ends within 20 s in exit 0 or 1, with a message that names the file and no output when it failed."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

from Plans import BIN, FIXTURES

LIMIT_S = 20
MUST_COMPILE = {"good_control", "local_function_valid", "external_valid_unaligned", "nan_weights", "names_need_escaping", "chain_20000_identity"}


def run(command):
    begin = time.monotonic()
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return None, "", LIMIT_S
    return done.returncode, done.stdout.decode(errors="replace"), time.monotonic() - begin


def examine(name, expected, folder):
    """What is wrong with how this file ended; [] when nothing is."""
    plan = os.path.join(folder, name + ".plan")
    code, text, seconds = run([os.path.join(BIN, "llmc-compile"), os.path.join(folder, name + ".onnx"), "-o", plan, "--as-exported"])
    problems = []
    if code not in (0, 1):
        problems.append(f"ended with {code}: {text[-500:]}")
    if code == 1 and os.path.exists(plan):
        problems.append("left an output behind")
    if code == 1 and name not in text:
        problems.append(f"the message does not name the file: {text[-300:]}")
    if code == 1 and name in MUST_COMPILE:
        problems.append(f"is valid but was refused: {text[-300:]}")
    if code == 0 and expected["stage"] in ("parse", "validate", "external"):
        problems.append(f"was accepted, expected: {expected['expect']}")
    if any(".unfinished." in f for f in os.listdir(folder)):
        problems.append("left a temporary file behind")
    if code == 0:
        code, text, more = run([os.path.join(BIN, "llmc-run"), plan, "--steps", "1", "--threads", "1"])
        seconds += more
        if code not in (0, 1):
            problems.append(f"its plan ended with {code}: {text[-500:]}")
    print(f"{name}: {seconds:.1f} s, {'ok' if not problems else problems}; {text.strip().splitlines()[-1][:160] if text.strip() else ''}")
    return [f"{name} {p}" for p in problems]


def main():
    source = os.path.join(FIXTURES, "bad")
    expected = json.load(open(os.path.join(source, "expected.json")))
    failures = []
    with tempfile.TemporaryDirectory() as folder:
        for entry in os.listdir(source):
            shutil.copy(os.path.join(source, entry), folder)
        os.symlink("/etc/hostname", os.path.join(folder, "external_link.bin"))
        for name in sorted(expected):
            failures += examine(name, expected[name], folder)
    if failures:
        sys.exit("\n".join(failures))


main()
