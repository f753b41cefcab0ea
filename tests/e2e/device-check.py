"""tools/device-check, packed and run on the simulated GPU: what it measures there means nothing, that it says so does.
Usage: device-check.py FOLDER-OF-SIMULATED-LIBRARIES"""
import json
import os
import subprocess
import sys
import tempfile

from Plans import BIN, Check
from Simulated import simulate

SCRIPT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/device-check")


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda *names: os.path.join(folder, *names)
        subprocess.run([SCRIPT, "pack", "-o", path("pack"), "--build", os.path.dirname(BIN), "--no-build", "--batch", "0"], check=True)
        os.mkdir(path("libraries"))
        simulate(path("libraries"), sys.argv[1])
        run = lambda: subprocess.run([SCRIPT, "run", path("pack"), "-o", path("out")]).returncode
        check.equal("exit code", run(), 0)
        stages = json.load(open(path("out", "report.json")))["stages"]
        check.equal("parity", stages["parity"]["state"], "passed")
        check.equal("six plans were trained", sum(isinstance(value, dict) for value in stages["parity"].values()), 6)
        check.equal("speed needs the large model", stages["speed"]["state"], "skipped")
        # A reference that is not what the device computes must be noticed.
        contents = json.load(open(path("pack", "contents.json")))
        contents["fixtures"][0]["losses"][3] *= 1.01
        json.dump(contents, open(path("pack", "contents.json"), "w"))
        check.equal("exit code with another reference", run(), 1)
        report = open(path("out", "report.txt")).read()
        check.equal("the report says so", "parity: FAILED" in report, True)
    check.end()


main()
