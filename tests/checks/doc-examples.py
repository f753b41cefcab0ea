#!/usr/bin/env python3
"""Every op's documentation shows an example, and the example parses.

The ```mlir block of each op's description is put into a program whose arguments are the values it uses without defining,
with the types that the example states, and llmc-opt reads it. Symbols it names are defined by the variable's example.
Usage: doc-examples.py ROOT TBLGEN LLVM_INCLUDE LLMC_OPT
"""
import pathlib
import re
import subprocess
import sys
import textwrap

sys.dont_write_bytecode = True
from coverage import records  # noqa: E402

BLOCK = re.compile(r"```mlir\n(.*?)```", re.S)
TYPE = re.compile(r"tensor<[^<>]*>")


def statements(code):
    """The example's statements: what stands deeper or closes a region belongs to the statement before."""
    parts = []
    for line in textwrap.dedent(code).strip().splitlines():
        if parts and (line.startswith((" ", "}", "^", ":"))):
            parts[-1] += "\n" + line
        else:
            parts.append(line)
    return parts


def operand_types(statement):
    """(name, type) of each operand: the values before the last top-level colon against the types behind it."""
    header = re.split(r"\{\n", statement, maxsplit=1)[0]
    left, _, right = header.partition(" : ") if "\n" not in header else header.partition("\n  : ")
    while " : " in right and "%" not in right and not right.lstrip().startswith(("(", "tensor")):
        right = right.partition(" : ")[2]  # an attribute's own type, as in {heads = 4 : i64}
    names = re.findall(r"%\w+", left.partition("=")[2] if left.startswith("%") else left)
    stated = TYPE.findall(right.partition("->")[0])
    return list(zip(names, stated * len(names) if len(stated) == 1 else stated))


def as_program(code, variable):
    """The example as a module that llmc-opt can read."""
    defined, arguments = set(), {}
    for statement in statements(code):
        for name, stated in operand_types(statement):
            if name not in defined:
                arguments.setdefault(name, stated)
        if statement.startswith("%"):
            defined |= set(re.findall(r"%\w+", statement.partition("=")[0]))
    parameters = ", ".join(f"{name}: {stated}" for name, stated in arguments.items())
    body = textwrap.indent(textwrap.dedent(code).strip(), "  ")
    symbols = variable if "@wte" in code else ""
    return f'{symbols}\nllmc.program @example "graph" ({parameters}) -> () {{\n{body}\n  llmc.return\n}}\n'


def as_module(code, variable):
    is_module_level = re.match(r"\s*llmc\.(variable|program)\b", code)
    return code if is_module_level else as_program(code, variable)


def main():
    root, tblgen, llvm_include, llmc_opt = pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:5]
    ops = {}
    for file in sorted((root / "ir/ops").glob("*.td")):
        ops |= records(tblgen, [root, llvm_include], file, "Op")
    examples = {op["opName"]: BLOCK.findall(op["description"] or "") for op in ops.values()}
    variable = examples.get("variable", [""])[0]
    failures = 0
    for record in ops.values():
        name = record["opName"]
        if not examples[name]:
            print(f"llmc.{name}: no example in its description")
            failures += 1
        for code in examples[name]:
            if re.match(r"\s*llmc\.(yield|return)\b", code):
                continue  # a terminator parses inside its parent's example only
            module = as_module(code, variable)
            run = subprocess.run([llmc_opt], input=module, capture_output=True, text=True, check=False)
            if run.returncode != 0:
                print(f"llmc.{name}: its example does not parse\n{module}\n{run.stderr}")
                failures += 1
    print(f"{len(ops)} ops' examples read, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
