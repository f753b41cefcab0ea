# llmc-run from outside, as far as no plan is needed: wrong flags, reserved flags, files that are no plans, and their exact words.
import os
import sys
import unittest
import unittest.mock

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
from ToolCase import ToolCase

HELP = "\nRun with --help for more information."
RESERVED = ["--val", "--checkpoint", "--save-every", "--keep", "--resume", "--eval-every", "--eval-steps", "--tensorboard"]


class LlmcRun(ToolCase):
    tool = "llmc-run"

    def refuse(self, message, *flags):
        self.fail(2, f"llmc-run: {message}" + HELP, "x.plan", *flags)

    def test_reserved_flags_are_refused_and_not_in_the_help(self):
        text = self.succeed("--help")
        for flag in RESERVED:
            self.refuse(f"{flag}: not built yet", flag)
            self.refuse(f"{flag}: not built yet", flag, "2")
            self.assertNotRegex(text, rf"{flag}\b")

    def test_wrong_flags(self):
        self.fail(2, "llmc-run: PLAN is required" + HELP)
        self.refuse("The following argument was not expected: --frob", "--frob")
        self.refuse("--data excludes --inputs", "--data", "a", "--inputs", "b")
        self.refuse("--epochs requires --data", "--epochs", "2")
        self.refuse("--drop-last requires --data", "--drop-last")
        self.refuse("--lr: expected a number, 0 or more, found 'nan'", "--lr", "nan")
        self.refuse("--clip: expected a number, 0 or more, found '-1'", "--clip", "-1")
        self.refuse("--seed: expected a whole number from 0 to 18446744073709551615, found '-1'", "--seed", "-1")
        self.refuse("--seed: expected a whole number from 0 to 18446744073709551615, found '18446744073709551616'",
                    "--seed", "18446744073709551616")
        self.refuse("--eps 0: must be above 0, as a 32-bit float too", "--eps", "0")
        self.refuse("--eps 1e-60: must be above 0, as a 32-bit float too", "--eps", "1e-60")
        self.refuse("--steps: Value -1 not in range 0 to 1073741824", "--steps", "-1")
        self.refuse("--schedule: step not in {constant,cosine,linear}", "--schedule", "step")
        self.refuse("--min-lr 1 is larger than --lr 0.0003", "--min-lr", "1")
        self.refuse("--beta1 and --beta2 must be below 1", "--beta2", "1")
        self.refuse("--device tpu: expected cpu or cuda", "--device", "tpu")
        self.refuse("--nproc: Value 0 not in range 1 to 1024", "--nproc", "0")
        self.refuse("--timeout: expected a time like 30s, found '0s'", "--timeout", "0s")
        self.refuse("--timeout: expected a time like 30s, found '3h'", "--timeout", "3h")
        self.refuse("--rendezvous: expected HOST:PORT or file:PATH, found 'node0'", "--rendezvous", "node0")
        self.refuse("--rendezvous: '0' is no port: expected 1 to 65535", "--rendezvous", "node0:0")
        self.refuse("--data: has an empty value", "--data", "")
        self.refuse("--metrics: has an empty value", "--metrics", "")
        self.fail(2, "llmc-run: PLAN: has an empty value" + HELP, "")

    def test_no_output_is_an_input_or_another_output(self):
        self.write("x.plan", b"a plan")
        os.symlink("x.plan", self.path("link"))
        self.refuse("--metrics x.plan and PLAN x.plan are the same file", "--metrics", "x.plan")
        self.refuse("--export-onnx ./link and PLAN x.plan are the same file", "--export-onnx", "./link")
        self.refuse("--plot t.bin and --data ./t.bin are the same file", "--data", "./t.bin", "--plot", "t.bin")
        self.refuse("--export-outputs b and --inputs b are the same file", "--inputs", "b", "--export-outputs", "b")
        self.refuse("--export-grads ./z and --export-weights z are the same file", "--export-weights", "z", "--export-grads", "./z")
        self.assertEqual(self.read("x.plan"), b"a plan")

    def test_ranks_of_a_launcher(self):
        def refuse(message, **variables):
            with unittest.mock.patch.dict(os.environ, variables):
                self.fail(1, f"llmc-run: {message}", "none.plan")

        nowhere = "2 ranks, and no word where they meet: MASTER_ADDR and MASTER_PORT are not set; or give --rendezvous HOST:PORT or " \
            "--rendezvous file:PATH"
        refuse(nowhere, OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="0")
        refuse(nowhere, SLURM_NTASKS="2", SLURM_PROCID="0")
        refuse("WORLD_SIZE=two: expected a whole number, 0 or more", RANK="0", WORLD_SIZE="two")
        with unittest.mock.patch.dict(os.environ, SLURM_NTASKS="2"):  # a batch script, not started by srun
            self.fail(1, "llmc-run: none.plan: cannot be opened: No such file or directory", "none.plan")
        self.fail(1, "llmc-run: --rendezvous file: is for ranks that something else starts; with --nproc they know each other", "none.plan",
                  "--nproc", "2", "--rendezvous", "file:meet")

    def test_an_error_of_all_ranks_is_said_once(self):
        done = self.run_tool("none.plan", "--nproc", "3")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), r"^llmc-run: [^\n]*none.plan: cannot be opened: No such file or directory\n$")

    def test_what_this_build_cannot_do(self):
        done = self.run_tool("none.plan", "--device", "cuda")
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        self.assertRegex(done.stderr.decode(), r"^llmc-run: (none.plan: cannot be opened: No such file or directory|"
                         r"--device cuda: this build has no CUDA backend; use --device cpu)\n$")

    def test_files_that_are_no_plans(self):
        self.fail(1, "llmc-run: none.plan: cannot be opened: No such file or directory", "none.plan")
        self.write("empty.plan", b"")
        self.fail(1, "llmc-run: empty.plan: not a plan: 0 bytes, a plan has at least 128", "empty.plan")
        self.write("text.plan", b"x" * 1000)
        self.fail(1, "llmc-run: text.plan: not a plan: made by llmc-compile it would start with LLMCPLAN", "text.plan")
        os.mkdir(self.path("folder"))
        self.fail(1, "llmc-run: folder: not a regular file", "folder")
        os.mkfifo(self.path("pipe"))  # nobody writes into it
        self.fail(1, "llmc-run: pipe: not a regular file", "pipe")

    def test_help_and_version(self):
        self.assertIn("llmc-run gpt.plan --data train.bin", self.succeed("--help"))
        self.assertRegex(self.succeed("--version"), r"^llmc-run \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
