"""Each fixture's plan, seen by llmc-inspect --json: its form, and its memory recomputed from the numbers alone (tests/tools/PlanReport.py):
the lower bound is the plan's own, no two live values share a byte, the arena stays within 1.02 of the bound (messages between ranks in one piece)."""
import json
import os
import sys
import tempfile

from Plans import Check, Fixture, tool

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "tools"))
import PlanReport  # noqa: E402


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        for name in sys.argv[1:]:
            path = os.path.join(folder, "f.plan")
            Fixture(name).compile(path, "--isa", "x86-64-v3")
            plan = json.loads(tool("llmc-inspect", path, "--json", "--device", "cpu"))
            check.equal(f"{name}: form", PlanReport.schema_errors(plan, PlanReport.plan_schema()), [])
            check.equal(f"{name}: memory", PlanReport.memory_errors(plan), [])
            for program in plan["targets"][0]["programs"]:
                bound = PlanReport.largest_live_sum(PlanReport.with_messages(program), PlanReport.padded)
                check.at_most(f"{name} {program['kind']}: arena over its bound, padding apart", program["arena_bytes"] / bound, 1.02)
    check.end()


main()
