"""Outputs that cannot be taken: a file larger than the process may write, for every file that a tool makes (what a full disk gives is the same
error of the same call); a standard output that is full or closed. Never a crash, half a file, or a success that is none."""
import os
import resource
import subprocess
import sys
import tempfile

from Plans import BIN, Check, tool

LIMIT_BYTES = 300


def limit_files():
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))


def run(folder, words, **how):
    command = [os.path.join(BIN, words[0]), *words[1:]]
    done = subprocess.run(command, cwd=folder, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **{"stdout": subprocess.PIPE, **how})
    return done.returncode, done.stderr.decode(errors="replace")


def too_large(check, folder):
    gpt = "llmc-gpt --layers 1 --heads 1 --width 64 --context 4 --batch 1"
    compile_ = "llmc-compile m.onnx --isa x86-64-v3 -o"
    train = "llmc-run m.plan --threads 1 --steps 2"
    commands = [(f"{gpt} -o x", "x"), ("llmc-data text -o x", "x"), ("llmc-data text -o x --val-fraction 0.4", "x"), (f"{compile_} x", "x"),
                (f"{compile_} p --remarks x", "x"),
                (f"{compile_} p --dump-ir d", "d/00-import.mlir"), ("llmc-inspect m.plan --html x", "x"),
                *[(f"{train} {flag} x", "x") for flag in ("--metrics", "--profile", "--plot", "--export-onnx", "--export-weights",
                                                        "--export-grads", "--export-outputs")]]
    for text, path in commands:
        before = sorted(os.listdir(folder))
        code, said = run(folder, text.split(), preexec_fn=limit_files)
        check.equal(f"{text}: status", code, 1)
        check.equal(f"{text}: says", path in said and "File too large" in said or said, True)
        left = set(os.listdir(folder)) - set(before)
        # A log is written as the run goes on, and dumps after every pass.
        check.equal(f"{text}: files", left - {"d"} - ({"x"} if "--metrics" in text else set()), set())
        for name in left:
            subprocess.run(["rm", "-rf", os.path.join(folder, name)], check=True)


def no_room_on_screen(check, folder):
    commands = ["llmc-gpt --layers 1 --heads 1 --width 8 --context 4 -o x", "llmc-data text -o x", "llmc-compile m.onnx --isa x86-64-v3 --verbose -o x",
                "llmc-run m.plan --threads 1 --steps 2 --export-weights x", "llmc-run m.plan --nproc 2 --steps 2 --export-weights x",
                "llmc-inspect m.plan --json", "llmc-run --help", "llmc-compile --version"]
    for text in commands:
        made = []
        for how in ("as usual", "full", "closed"):
            with open("/dev/full" if how == "full" else os.devnull, "w") as stream:
                close = {"preexec_fn": lambda: [os.close(fd) for fd in range(3)]} if how == "closed" else {}
                code, said = run(folder, text.split(), stdout=stream, **close)
            check.equal(f"{text}, standard output {how}: status", code, 1 if how == "full" else 0)
            check.equal(f"{text}, standard output {how}: says", "did not take all that was printed" in said, how == "full")
            if os.path.exists(path := os.path.join(folder, "x")):
                made.append(open(path, "rb").read())
                os.remove(path)
        check.equal(f"{text}: files", len(made) in (0, 3) and all(content == made[0] for content in made), True)
    # An error, where nothing can be said.
    code, _ = run(folder, ["llmc-run", "none.plan"], preexec_fn=lambda: [os.close(fd) for fd in range(3)])
    check.equal("an error without a place to say it: status", code, 1)


def main():
    check = Check()
    with tempfile.TemporaryDirectory() as folder:
        path = lambda name: os.path.join(folder, name)
        tool("llmc-gpt", *"--layers 1 --heads 1 --width 8 --vocab 64 --context 4 --batch 1".split(), "-o", path("m.onnx"))
        tool("llmc-compile", path("m.onnx"), "-o", path("m.plan"), "--isa", "x86-64-v3")
        with open(path("text"), "w") as file:
            file.write("In the beginning was the plan. " * 40)
        too_large(check, folder)
        no_room_on_screen(check, folder)
    check.end()


main()
