# llmc-inspect from outside: its texts, its JSON against the schema and the memory it describes, and every refusal's exact words.
import json
import os
import subprocess
import unittest

import PlanReport
from ToolCase import ToolCase

HELP = "\nRun with --help for more information."


class LlmcInspect(ToolCase):
    tool = "llmc-inspect"

    def setUp(self):
        super().setUp()
        self.other_tool("llmc-gpt", *"--layers 1 --heads 2 --width 16 --vocab 11 --context 8 --batch 2 -o m.onnx".split())
        self.other_tool("llmc-compile", "m.onnx", "-o", "m.plan")

    def other_tool(self, name, *arguments):
        command = [os.path.join(os.environ["LLMC_BIN"], name), *arguments]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def json(self, *flags):
        return json.loads(self.succeed("m.plan", "--json", "--device", "a100", *flags))

    def test_says_what_is_in_a_plan(self):
        printed = self.succeed("m.plan")
        for text in ["m.plan: m.onnx in fp32 with adamw, 2 x 8 tokens of 11", "file: ", "code: cpu x86-64-v3: ", "device: this machine, ",
                     "memory at the peak, MiB", "  step-fused ", "kernels by kind", " x matmul", "fusions", "costliest launches"]:
            self.assertIn(text, printed)
        everything = self.succeed("m.plan", "--all", "--device", "h200", "--program", "forward", "--isa", "x86-64-v3")
        self.assertIn("forward on x86-64-v3: ", everything)
        self.assertIn("device: NVIDIA H200 SXM", everything)
        self.assertIn("all launches", everything)
        self.assertNotIn("x86-64-v4", everything)

    def test_json_keeps_its_schema_and_its_memory_holds(self):
        plan = self.json()
        self.assertEqual(PlanReport.schema_errors(plan, PlanReport.plan_schema()), [])
        self.assertEqual(PlanReport.memory_errors(plan), [])
        self.assertEqual([target["isa"] for target in plan["targets"]], ["x86-64-v4-bf16", "x86-64-v4", "x86-64-v3"])
        self.assertEqual(plan["device"]["f32_gflops"], 19500)
        self.assertEqual(sum(plan["sections"].values()) < os.path.getsize(self.path("m.plan")), True)
        programs = {program["kind"]: program for program in plan["targets"][0]["programs"]}
        self.assertEqual(sorted(programs), ["accumulate", "forward", "step", "step-fused", "step-fused-ranks",
                                            "step-ranks", "update", "update-ranks"])
        for program in programs.values():
            for launch in program["launches"]:
                self.assertAlmostEqual(launch["bound_ms"], max(launch["flops"] / 19500e6, launch["bytes"] / 2039e6), delta=1e-12)
        matmuls = [launch for launch in programs["step-fused"]["launches"] if launch["kernel"] == "matmul"]
        self.assertTrue(matmuls and all(launch["types"] == "f32" for launch in matmuls))
        self.assertEqual(self.json(), plan)

    def test_the_checker_finds_planted_mistakes(self):
        plan = self.json("--isa", "x86-64-v3")
        program = plan["targets"][0]["programs"][0]
        first = program["values"][0]
        program["values"].append(dict(first))
        errors = PlanReport.memory_errors(plan)
        self.assertTrue(any("share memory while both live" in error for error in errors))
        self.assertTrue(any("the largest live sum is" in error for error in errors))
        program["values"] = [value for value in program["values"] if value["name"] != first["name"]]
        self.assertTrue(any("lies in no live value" in error for error in PlanReport.memory_errors(plan)))
        plan["colour"] = 1
        del plan["state"]
        plan["targets"][0]["isa"] = 3
        plan["format"] = 2
        self.assertEqual(len(PlanReport.schema_errors(plan, PlanReport.plan_schema())), 4)

    def test_measured_times(self):
        self.other_tool("llmc-run", "m.plan", "--steps", "3", "--threads", "1", "--profile", "trace.json")
        printed = self.succeed("m.plan", "--profile", "trace.json")
        self.assertIn("step on ", printed)
        self.assertIn(" ms of it ", printed)
        plan = self.json("--profile", "trace.json")
        self.assertEqual(PlanReport.schema_errors(plan, PlanReport.plan_schema()), [])
        program = next(program for program in plan["targets"][0]["programs"] if program["kind"] == "step")
        self.assertAlmostEqual(sum(launch["share"] for launch in program["launches"]), 1)
        self.assertAlmostEqual(sum(launch["measured_ms"] for launch in program["launches"]), program["measured_ms"])

    def test_measured_times_of_ranks(self):
        self.other_tool("llmc-run", "m.plan", "--steps", "3", "--threads", "1", "--nproc", "2", "--profile", "trace.json")
        program = next(program for program in self.json("--profile", "trace.json")["targets"][0]["programs"] if program["kind"] == "step-ranks")
        self.assertEqual([one["waited_ms"] for one in program["collectives"]],
                         [program["launches"][one["wait_launch"]]["measured_ms"] for one in program["collectives"]])
        with open(self.path("trace.json")) as file:
            network = [event for event in json.load(file)["traceEvents"] if event.get("cat") == "network"]
        for one in program["collectives"]:  # each message beside the launches, once a step; what lies between its parts travels too
            sent = [event["args"]["bytes"] for event in network if event["name"] == one["name"] and event["args"]["operation"] == one["op"]]
            self.assertEqual(len(sent), 3)
            self.assertTrue(all(one["bytes"] <= size < one["bytes"] + 64 * one["parts"] for size in sent))

    def test_difference_of_two_plans(self):
        self.assertEqual(self.succeed("m.plan", "--diff", "m.plan"), "no difference\n")
        self.other_tool("llmc-compile", "m.onnx", "-o", "sgd.plan", "--optimizer", "sgd", "--disable-pass", "fuse", "--isa", "x86-64-v3")
        printed = self.succeed("m.plan", "--diff", "sgd.plan", "--device", "cpu")
        for text in ["optimizer: adamw -> sgd\n", "state transformer.wte.weight/m: f32 11 x 16 -> none\n", "target x86-64-v4: ", "step: launches: ",
                     "step: - 1 x ", "step: + "]:
            self.assertIn(text, printed)

    def test_wrong_flags(self):
        def refuse(text, *flags):
            self.fail(2, "llmc-inspect: " + text + HELP, *flags)

        refuse("PLAN is required")
        refuse("--device: tpu not in {this,h200,h100,a100,l40s,a10,rtx4090,cpu}", "m.plan", "--device", "tpu")
        refuse("--json excludes --diff", "m.plan", "--json", "--diff", "m.plan")
        refuse("The following argument was not expected: --quick", "m.plan", "--quick")

    def test_plans_that_cannot_be_shown(self):
        def refuse(message, *flags):
            self.fail(1, "llmc-inspect: " + message, *flags)

        refuse("no.plan: cannot be opened: No such file or directory", "no.plan")
        # Before the plan is read: what is wrong with the place is said first.
        refuse("no/r.html: cannot create: No such file or directory", "no.plan", "--html", "no/r.html")
        refuse("m.onnx: not a plan: made by llmc-compile it would start with LLMCPLAN", "m.onnx")
        content = bytearray(self.read("m.plan"))
        content[200] ^= 1
        self.write("damaged.plan", content)
        refuse("damaged.plan: damaged plan: the checksum of the metadata section differs", "damaged.plan")
        self.write("short.plan", content[:100])
        refuse("short.plan: not a plan: 100 bytes, a plan has at least 128", "short.plan")
        refuse("m.plan: --isa sm_80: the plan has x86-64-v3, x86-64-v4, x86-64-v4-bf16", "m.plan", "--isa", "sm_80")
        refuse("--program backward: the plan has forward, step-fused, step, accumulate, update, "
               "step-fused-ranks, step-ranks, update-ranks", "m.plan", "--program", "backward")
        refuse("no.json: cannot be opened", "m.plan", "--profile", "no.json")
        self.write("not.json", b"[]")
        refuse("not.json: not a trace: expected JSON with \"traceEvents\", as llmc-run --profile writes it", "m.plan", "--profile", "not.json")
        refuse("no.plan: cannot be opened: No such file or directory", "m.plan", "--diff", "no.plan")


if __name__ == "__main__":
    unittest.main()
