# llmc-compile from outside: what it says and writes, and every refusal's exact words.
import json
import os
import resource
import subprocess
import unittest

import onnx

from ToolCase import ToolCase

HELP = "\nRun with --help for more information."
OPTIONAL = ["canonicalize", "cse", "raise-norm", "raise-activation", "raise-attention", "raise-cross-entropy", "flatten-rows",
            "insert-collectives", "overlap-collectives", "fuse-epilogue", "chunk-loss", "assign-precision", "pack-operands", "fuse", "schedule", "recompute"]
REQUIRED = {
    "scale-loss": "a session of several micro-batches or ranks would add up means over unequal numbers of labels",
    "build-gradients": "a training step needs gradients",
    "build-programs": "a plan consists of programs, which this pass makes of the graph and its gradients",
    "decompose": "most ops have no kernel before it",
    "materialize-constants": "kernels read constants from memory, where this pass puts them",
    "plan-memory": "a kernel is given its place in memory by it",
    "verify-plannable": "the plan's emitter relies on what it checks",
}
ISAS = ["x86-64-v3", "x86-64-v4", "x86-64-v4-bf16"]


class LlmcCompile(ToolCase):
    tool = "llmc-compile"

    def setUp(self):
        super().setUp()
        gpt = os.path.join(os.environ["LLMC_BIN"], "llmc-gpt")
        flags = "--layers 1 --heads 2 --width 16 --vocab 11 --context 8 --batch 2 -o m.onnx".split()
        subprocess.run([gpt, *flags], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)

    def test_says_what_it_made(self):
        printed = self.succeed("m.onnx", "-o", "m.plan")
        for text in ["parameters: 16 tensors", "transformer.wte.weight", "input input_ids: tokens\n", "input targets: labels\n",
                     "a step: ", "fusions: ", "FLOPs a token: ", "state: ", "memory at the peak, MiB", "  step-fused ", "  workspace ",
                     "code: x86-64-v3 ", "import 0.", "m.plan: "]:
            self.assertIn(text, printed)
        self.assertEqual(self.files(), ["m.onnx", "m.plan"])

    def test_same_model_same_bytes_and_flags_that_change_them(self):
        self.succeed("m.onnx", "-o", "a.plan")
        self.succeed("m.onnx", "-o", "b.plan", "--fp32", "--target", "cpu", "--isa", ",".join(reversed(ISAS)), "--verbose")
        self.assertEqual(self.read("a.plan"), self.read("b.plan"))
        self.succeed("m.onnx", "-o", "c.plan", "--optimizer", "sgd", "--isa", ISAS[0])
        self.assertLess(len(self.read("c.plan")), len(self.read("a.plan")))

    def test_words_for_what_a_flag_does(self):
        isa = ["--isa", ISAS[0]]
        self.assertIn("dropout is off\n", self.succeed("m.onnx", "-o", "m.plan", "--dropout", "0", *isa))
        self.assertIn("--tf32: a CPU computes in f32\n", self.succeed("m.onnx", "-o", "m.plan", "--tf32", *isa))
        self.assertEqual(self.succeed("m.onnx", "-o", "m.plan", "--decay-rule", "all", "--verbose", *isa).count(" decays "), 16)

    def test_dumps_after_every_pass(self):
        self.succeed("m.onnx", "-o", "m.plan", "--dump-ir", "ir/dumps", "--isa", ISAS[0])
        dumps = sorted(os.listdir(self.path("ir/dumps")))
        self.assertEqual(dumps[:2], ["00-import.mlir", "01-canonicalize.mlir"])
        self.assertEqual([name[3:-5] for name in dumps[-3:]], ["recompute", "plan-memory", "verify-plannable"])
        self.assertIn(b"llmc.buffers", self.read("ir/dumps/" + dumps[-1]))
        for name in dumps:  # what a dump shows can be tried on with llmc-opt
            subprocess.run([os.path.join(os.environ["LLMC_BIN"], "llmc-opt"), self.path("ir/dumps/" + name)], check=True, capture_output=True)
        done = self.run_tool("m.onnx", "-o", "m.plan", "--dump-ir-after", "decompose", "--dump-ir-after", "import", "--isa", ISAS[0])
        text = done.stderr.decode()
        self.assertEqual(done.returncode, 0)
        self.assertEqual(text.count("// -----// after "), 2)
        self.assertLess(text.index("// -----// after import //"), text.index("// -----// after decompose //"))

    def test_remarks_are_json_lines(self):
        self.succeed("m.onnx", "-o", "m.plan", "--remarks", "r.jsonl", "--isa", ISAS[0])
        remarks = [json.loads(line) for line in self.read("r.jsonl").splitlines()]
        for remark in remarks:
            self.assertEqual(list(remark), ["pass", "program", "node", "kind", "message"])
            self.assertIn(remark["kind"], ["applied", "declined", "info"])
        self.assertTrue({"raise-attention", "fuse", "plan-memory", "schedule"} <= {remark["pass"] for remark in remarks})
        self.assertTrue(any(remark["node"].startswith("transformer.h.0") for remark in remarks))
        programs = lambda name: {remark["program"] for remark in remarks if remark["pass"] == name}
        self.assertEqual(programs("raise-attention"), {"graph"})  # the model, before there are programs
        self.assertTrue({"forward", "step-fused", "step", "accumulate"} <= programs("plan-memory"), programs("plan-memory"))

    def test_every_optional_pass_can_be_left_out(self):
        for name in OPTIONAL:
            self.succeed("m.onnx", "-o", "m.plan", "--isa", ISAS[0], "--disable-pass", name)
        flags = [word for name in OPTIONAL for word in ("--disable-pass", name)]
        self.succeed("m.onnx", "-o", "m.plan", "--isa", ISAS[0], *flags)
        for name in REQUIRED:
            self.fail(2, f"llmc-compile: --disable-pass {name}: there is no plan without this pass: {REQUIRED[name]}" + HELP,
                      "m.onnx", "-o", "x.plan", "--disable-pass", name)
    def test_bf16_without_its_pass_is_an_f32_plan(self):
        said = self.succeed("m.onnx", "-o", "m.plan", "--isa", ISAS[0], "--bf16", "--disable-pass", "assign-precision")
        self.assertNotIn("bf16", said)
        self.succeed("m.onnx", "-o", "n.plan", "--isa", ISAS[0])
        self.assertEqual(self.read("m.plan"), self.read("n.plan"))

    def test_a_plan_too_large_for_the_limit_of_files(self):
        tool = os.path.join(os.environ["LLMC_BIN"], self.tool)
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        done = subprocess.run([tool, "m.onnx", "-o", "m.plan", "--isa", ISAS[0]], cwd=self.folder, preexec_fn=limit, capture_output=True)
        self.assertEqual((done.returncode, done.stderr.decode()[:24]), (1, "llmc-compile: m.plan: ca"))
        self.assertIn("File too large", done.stderr.decode())
        self.assertEqual(self.files(), ["m.onnx"])

    def test_wrong_flags(self):
        def refuse(message, *flags):
            self.fail(2, "llmc-compile: " + message + HELP, *flags)

        refuse("MODEL is required")
        refuse("--output is required", "m.onnx")
        refuse("--output: has an empty value", "m.onnx", "-o", "")
        refuse(f"--isa: v9 not in {{{','.join(ISAS)}}}", "m.onnx", "-o", "x", "--isa", "v9")
        refuse("--target: gpu not in {cpu,cuda}", "m.onnx", "-o", "x", "--target", "gpu")
        refuse("--check-numerics runs the step on a CPU: --target cpu,cuda", "m.onnx", "-o", "x", "--target", "cuda", "--check-numerics", "b")
        refuse("--isa names levels of CPUs, and --target has none", "m.onnx", "-o", "x", "--target", "cuda", "--isa", ISAS[0])
        refuse("--optimizer: adam not in {adamw,sgd}", "m.onnx", "-o", "x", "--optimizer", "adam")
        refuse("--dropout: 1 not in {keep,0}", "m.onnx", "-o", "x", "--dropout", "1")
        refuse("--fp32 excludes --tf32", "m.onnx", "-o", "x", "--fp32", "--tf32")
        refuse("--batch: Value 0 not in range 1 to 2147483647", "m.onnx", "-o", "x", "--batch", "0")
        for dim in ["T", "=3", "T=0", "T=x"]:
            refuse(f"--dim {dim}: expected NAME=N with N of 1 or more", "m.onnx", "-o", "x", "--dim", dim)
        for flag in ["--cubin", "--recompute", "--memory", "--mesh", "--zero"]:
            refuse(f"{flag}: not built yet", "m.onnx", "-o", "x", flag)
            self.assertNotIn(flag, self.succeed("--help"))
        refuse("The following argument was not expected: --quick", "m.onnx", "-o", "x", "--quick")
        refuse("--output ./m.onnx and MODEL m.onnx are the same file", "m.onnx", "-o", "./m.onnx")
        refuse("--remarks m.onnx and MODEL m.onnx are the same file", "m.onnx", "-o", "x", "--remarks", "m.onnx")
        refuse("--report x and --output x are the same file", "m.onnx", "-o", "x", "--report", "x")
        refuse("--remarks ./x and --output x are the same file", "m.onnx", "-o", "x", "--remarks", "./x")
        refuse("--output ./b and --check-numerics b are the same file", "m.onnx", "-o", "./b", "--check-numerics", "b")

    def test_no_output_replaces_external_data(self):
        onnx.save_model(onnx.load(self.path("m.onnx")), self.path("e.onnx"), save_as_external_data=True, location="w.bin", size_threshold=64)
        before = self.read("w.bin")
        for flags in [("-o", "w.bin"), ("-o", "x", "--remarks", "./w.bin")]:
            done = self.run_tool("e.onnx", *flags, "--isa", ISAS[0])
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr.decode(), r"w\.bin and the model's external data \S*w\.bin are the same file\n$")
        self.assertEqual(self.read("w.bin"), before)
        self.assertEqual(self.files(), ["e.onnx", "m.onnx", "w.bin"])

    def test_inputs_that_cannot_be_compiled(self):
        def refuse(message, *flags):
            self.fail(1, "llmc-compile: " + message, *flags)

        refuse("no.onnx: cannot be read: No such file or directory", "no.onnx", "-o", "x")
        os.mkfifo(self.path("pipe"))  # nobody writes into it
        for other in ["pipe", "/dev/zero", "."]:
            refuse(f"{other}: not a regular file", other, "-o", "x")
        refuse("no/x.plan: cannot create: No such file or directory", "m.onnx", "-o", "no/x.plan", "--isa", ISAS[0])
        refuse("no/r.html: cannot create: No such file or directory", "m.onnx", "-o", "x", "--report", "no/r.html")
        refuse("no/r: cannot create: No such file or directory", "m.onnx", "-o", "x", "--remarks", "no/r")
        refuse("m.onnx/d/e: cannot create: Not a directory", "m.onnx", "-o", "x", "--dump-ir", "m.onnx/d/e")
        # Before the model is read: what is wrong with the place is said first.
        self.write("broken.onnx", b"x")
        refuse("no/x.plan: cannot create: No such file or directory", "broken.onnx", "-o", "no/x.plan")
        refuse("m.onnx: --loss 'perplexity': there is no such output; there are 'loss', 'logits'",
               "m.onnx", "-o", "x", "--loss", "perplexity")
        refuse("m.onnx: --batch 3: input 'input_ids' has shape [2, 8] in the model", "m.onnx", "-o", "x", "--batch", "3")


if __name__ == "__main__":
    unittest.main()
