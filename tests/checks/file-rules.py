#!/usr/bin/env python3
"""Rules for every file of the project: at most 600 lines, no path of one machine, no note of work left undone.

Usage: file-rules.py ROOT [--all]     git's files; with --all (or without git) every file below ROOT
"""
import pathlib
import re
import subprocess
import sys

MAX_LINES = 600
SOURCES = {".h", ".cpp", ".cc", ".c", ".cu", ".def", ".td", ".inc", ".py", ".sh", ".mlir", ".cmake", ".proto", ""}
TEXT = SOURCES | {".md", ".txt", ".json", ".in", ".test", ".yml", ".supp"}
# Spelled in two halves so that this file passes its own check.
UNDONE = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b")
MACHINE_PATH = re.compile(r"(?<![\w.}$)])/(?:ro" r"ot|ho" r"me|wo" r"rk|Us" r"ers)/[\w.-]+")


def files(root, all_files):
    # Whoever owns the checkout, git shall list it; nothing is written.
    git = ["git", "-c", "safe.directory=*", "-C", str(root), "ls-files", "-z"]
    if not all_files:
        listed = subprocess.run(git, capture_output=True, check=False)
        if listed.returncode == 0:
            return [root / name for name in listed.stdout.decode().split("\0") if name]
    return [file for file in sorted(root.rglob("*")) if file.is_file()]


def violations(root, all_files):
    for file in files(root, all_files):
        if file.suffix not in TEXT or not file.is_file() or file.is_symlink():
            continue
        path = file.relative_to(root).as_posix()
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue  # data
        if file.suffix in SOURCES and len(lines) > MAX_LINES:
            yield f"{path}: {len(lines)} lines; at most {MAX_LINES}: what is its second subject?"
        for number, line in enumerate(lines, 1):
            if match := UNDONE.search(line):
                yield f"{path}:{number}: {match.group(0)}: finish it or file an issue"
            if match := MACHINE_PATH.search(line):
                yield f"{path}:{number}: {match.group(0)}: a path of one machine"


def main():
    found = list(violations(pathlib.Path(sys.argv[1]).resolve(), "--all" in sys.argv[2:]))
    for line in found:
        print(line)
    print(f"{len(found)} files or lines break a rule" if found else "all files keep the rules")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
