#!/usr/bin/env python3
"""Who may include whom: every #include in the C++ sources against the borders drawn in README.md.

The idea: a folder (or file group) is a layer; RULES names, for each layer, the layers it may use besides itself and
the outside libraries it may not. The first matching row of LAYERS decides a path's layer.
Usage: include-borders.py ROOT
"""
import pathlib
import re
import sys

# (path prefix, layer), first match wins. Paths are relative to the root.
LAYERS = [
    ("runtime/Kernels.def", "kernel-list"),
    ("runtime/WireFormat.h", "wire-format"),
    ("runtime/", "runtime"),
    ("ir/", "ir"),
    ("frontend/", "frontend"),
    ("passes/", "passes"),
    ("backend/cpu/", "cpu"),
    ("backend/cuda/", "cuda"),
    ("backend/comm/", "comm"),
    ("backend/", "emitter"),  # PlanEmitter and codegen
    ("tools/llmc-run/", "run-tools"),
    ("tools/llmc-data/", "run-tools"),
    ("tools/llmc-", "compile-tools"),
    ("tools/", "tool-parts"),  # shared by all tools, hence as strict as llmc-run
    ("tests/", "tests"),
]
DEVICES = {"cpu", "cuda", "comm"}
COMPILER = {"ir", "frontend", "passes", "emitter"}
RULES = {
    "kernel-list": set(),
    "wire-format": set(),
    "runtime": {"kernel-list", "wire-format"},
    "ir": {"kernel-list"},
    "frontend": {"ir", "kernel-list", "wire-format"},
    "passes": {"ir", "kernel-list"},
    "cpu": {"runtime", "kernel-list"},
    "cuda": {"runtime", "kernel-list"},
    "comm": {"runtime", "kernel-list"},
    "emitter": {"ir", "runtime", "kernel-list"},
    "run-tools": {"runtime", "kernel-list", "tool-parts"} | DEVICES,
    "tool-parts": {"runtime", "kernel-list"} | DEVICES,
    "compile-tools": {"runtime", "kernel-list", "tool-parts"} | DEVICES | COMPILER,
    "tests": {"runtime", "kernel-list", "wire-format", "tool-parts", "run-tools", "compile-tools"} | DEVICES | COMPILER,
}
# Outside libraries by their include prefix, and the layers that may use them.
OUTSIDE = [
    (("mlir/", "mlir-c/", "llvm/", "llvm-c/"), COMPILER | {"compile-tools", "tests"}),
    (("onnx/",), {"frontend", "compile-tools", "tests"}),
    (("oneapi/", "dnnl"), {"cpu", "tests"}),
    (("cuda.h", "cuda_", "cublas", "cudnn", "nccl"), {"cuda", "comm", "tests"}),
]
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".h", ".hpp", ".cpp", ".cc", ".c", ".cu", ".inc", ".def"}
TOP_FOLDERS = ("frontend", "ir", "passes", "backend", "runtime", "tools", "tests")


def layer_of(path):
    return next((layer for prefix, layer in LAYERS if path.startswith(prefix)), None)


def check_line(path, layer, quote, target):
    """The reason why this include is not allowed, or None."""
    used = layer_of(target)
    if used is not None:
        return None if used == layer or used in RULES[layer] else f"{layer} may not include {used}"
    for prefixes, users in OUTSIDE:
        if target.startswith(prefixes):
            return None if layer in users else f"{layer} may not use this library"
    if quote == '"' and "/" not in target:
        return "include by path from the root"
    return None


def violations(root):
    for top in TOP_FOLDERS:
        for file in sorted((root / top).rglob("*")):
            if file.suffix not in SUFFIXES or not file.is_file():
                continue
            path = file.relative_to(root).as_posix()
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if match := INCLUDE.match(line):
                    reason = check_line(path, layer_of(path), *match.groups())
                    if reason:
                        yield f"{path}:{number}: {match.group(0).strip()}: {reason}"


def main():
    found = list(violations(pathlib.Path(sys.argv[1])))
    for line in found:
        print(line)
    print(f"{len(found)} includes cross a border" if found else "no include crosses a border")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
