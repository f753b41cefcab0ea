#!/usr/bin/env python3
"""Nothing without its test and its words: every op, pass and importer row against the test tree.

The lists come from the definitions themselves (TableGen's records, the importer's table), never from a second list.
  op            summary, description; used in a file under tests/ir; each rule label (matmul_c2) in a .cpp and a test
  pass          summary, description; tests/passes/<name without llmc->.mlir, which runs it
  importer row  its ONNX op named in a test under tests/frontend
Usage: coverage.py ROOT TBLGEN LLVM_INCLUDE
"""
import json
import pathlib
import re
import subprocess
import sys

IMPORTER_ROW = re.compile(r'\{\s*"(\w+)"\s*,\s*\d+\s*,')  # {"Gelu", 20, kNewestOpset, importGelu}
RULE_LABEL = re.compile(r"\b[a-z][a-z_]*_c\d+\b")


def records(tblgen, includes, file, kind):
    """The records of one class in a .td file, by name."""
    command = [tblgen, "--dump-json", *(f"-I{folder}" for folder in includes), str(file)]
    dump = json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)
    return {name: dump[name] for name in dump["!instanceof"].get(kind, [])}


def text_below(folder, *suffixes):
    files = sorted(file for file in folder.rglob("*") if file.suffix in suffixes) if folder.is_dir() else []
    return "\n".join(file.read_text(encoding="utf-8") for file in files)


def missing_words(label, record):
    for field in ("summary", "description"):
        if not (record.get(field) or "").strip():
            yield f"{label}: no {field}"


def missing_for_ops(root, tblgen, includes):
    tests = text_below(root / "tests/ir", ".mlir")
    bodies = text_below(root / "ir", ".cpp")
    ops = {}
    for file in sorted((root / "ir/ops").glob("*.td")):
        ops |= records(tblgen, includes, file, "Op")
    for record in ops.values():
        mnemonic = record["opName"]
        label = f"op llmc.{mnemonic}"
        yield from missing_words(label, record)
        if not re.search(rf"\bllmc\.{re.escape(mnemonic)}\b(?!\.)", tests):
            yield f"{label}: not in any test under tests/ir"
        for rule in sorted(set(RULE_LABEL.findall(record.get("description") or ""))):
            for where, text in (("ir/*.cpp", bodies), ("tests/ir", tests)):
                if not re.search(rf"\b{rule}\b", text):
                    yield f"{label}: rule {rule} is not named in {where}"
    yield ("count", "ops", len(ops))


def missing_for_passes(root, tblgen, includes):
    file = root / "passes/Passes.td"
    passes = records(tblgen, includes, file, "PassBase") if file.is_file() else {}
    for record in passes.values():
        flag = record["argument"]
        label = f"pass {flag}"
        yield from missing_words(label, record)
        test = root / "tests/passes" / f"{flag.removeprefix('llmc-')}.mlir"
        if not test.is_file():
            yield f"{label}: no {test.relative_to(root)}"
        elif flag not in test.read_text(encoding="utf-8"):
            yield f"{label}: {test.relative_to(root)} does not run it"
    yield ("count", "passes", len(passes))


def missing_for_importer(root):
    table = text_below(root / "frontend", ".cpp", ".def", ".inc")
    names = set(IMPORTER_ROW.findall(table))
    tests = text_below(root / "tests/frontend", ".mlir", ".test", ".cpp", ".py", ".txt", ".onnxtxt")
    for name in sorted(names):
        if not re.search(rf"\b{name}\b", tests):
            yield f"importer row {name}: not in any test under tests/frontend"
    yield ("count", "importer rows", len(names))


def main():
    root, tblgen, llvm_include = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3]
    includes = [root, llvm_include]
    found, counts = [], []
    for check in (missing_for_ops(root, tblgen, includes), missing_for_passes(root, tblgen, includes),
                  missing_for_importer(root)):
        for item in check:
            (counts if isinstance(item, tuple) else found).append(item)
    # A count of zero means that this script no longer understands the definitions, not that all is well.
    found += [f"no {what} found: has their definition moved?" for _, what, number in counts if not number]
    for line in found:
        print(line)
    print(", ".join(f"{number} {what}" for _, what, number in counts) + f" checked, {len(found)} missing")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
