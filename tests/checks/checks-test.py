#!/usr/bin/env python3
"""The checks themselves: each must find a planted violation, name it, and be silent on a clean tree.

Usage: checks-test.py TBLGEN LLVM_INCLUDE
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
TBLGEN, LLVM_INCLUDE = sys.argv.pop(1), sys.argv.pop(1)

OP_BASE = """
include "mlir/IR/OpBase.td"
def Llmc_Dialect : Dialect { let name = "llmc"; }
def AddOp : Op<Llmc_Dialect, "add"> { let summary = "sum"; let description = "a + b; add_c1: equal shapes"; }
"""
PASSES = """
include "mlir/Pass/PassBase.td"
def Fuse : Pass<"llmc-fuse", "ModuleOp"> { let summary = "fuses"; let description = "before, after"; }
"""


class Tree(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.root = pathlib.Path(self.folder.name)

    def plant(self, path, text):
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def check(self, script, *arguments):
        command = [sys.executable, str(HERE / script), str(self.root), *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        self.assertEqual(run.stderr, "")
        return run.returncode, run.stdout


class IncludeBorders(Tree):
    def borders(self):
        return self.check("include-borders.py")

    def test_allowed(self):
        self.plant("ir/Dialect.cpp", '#include "ir/Dialect.h"\n#include "runtime/Kernels.def"\n#include <mlir/IR/X.h>\n')
        self.plant("backend/PlanEmitter.cpp", '#include "backend/codegen/Lower.h"\n#include "runtime/Plan.h"\n')
        self.plant("backend/cpu/Gemm.cpp", '#include <oneapi/dnnl/dnnl.hpp>\n#include "runtime/Device.h"\n')
        self.plant("frontend/OnnxImporter.cpp", '#include "ir/Dialect.h"\n#include "runtime/WireFormat.h"\n')
        self.plant("tools/llmc-run/Main.cpp", '#include "backend/cpu/Cpu.h"\n#include "tools/Flags.h"\n')
        self.plant("tests/e2e/All.cpp", '#include "frontend/OnnxImporter.h"\n#include "onnx/onnx_pb.h"\n')
        self.assertEqual(self.borders(), (0, "no include crosses a border\n"))

    def test_each_crossing_is_named(self):
        planted = {
            "runtime/Plan.cpp": "ir/Dialect.h",
            "runtime/Session.cpp": "backend/cpu/Cpu.h",
            "ir/Dialect.cpp": "runtime/Plan.h",
            "frontend/OnnxImporter.cpp": "passes/Passes.h",
            "passes/Fuse.cpp": "frontend/OnnxImporter.h",
            "passes/Layout.cpp": "runtime/WireFormat.h",
            "runtime/WireFormat.h": "runtime/Plan.h",
            "backend/cpu/Gemm.cpp": "ir/Dialect.h",
            "backend/cuda/Launch.cpp": "backend/cpu/Cpu.h",
            "backend/codegen/Lower.cpp": "passes/Passes.h",
            "tools/llmc-run/Main.cpp": "passes/Passes.h",
            "tools/llmc-data/Main.cpp": "tools/llmc-gpt/Gpt.h",
            "tools/Flags.h": "ir/Dialect.h",
        }
        for path, target in planted.items():
            self.plant(path, f'// one\n  #  include "{target}"\n')
        self.plant("runtime/Other.cpp", "#include <mlir/IR/Builders.h>\n")
        self.plant("passes/Other.cpp", '#include "onnx/onnx_pb.h"\n#include "Near.h"\n')
        status, output = self.borders()
        self.assertEqual(status, 1)
        for path in planted:
            self.assertIn(f"{path}:2: ", output)
        self.assertIn("runtime/Other.cpp:1: ", output)
        self.assertIn("passes/Other.cpp:1: ", output)
        self.assertIn('passes/Other.cpp:2: #include "Near.h": include by path from the root', output)
        self.assertIn(f"{len(planted) + 3} includes cross a border", output)


class FileRules(Tree):
    def test_clean(self):
        self.plant("ir/Short.cpp", "int x;\n" * 600)
        self.assertEqual(self.check("file-rules.py", "--all"), (0, "all files keep the rules\n"))

    def test_each_break_is_named(self):
        self.plant("ir/Long.cpp", "int x;\n" * 601)
        self.plant("passes/Undone.cpp", "int x;\n// TO" "DO: later\n")
        self.plant("tools/where", "cd /ho" "me/someone/llmc\n")
        status, output = self.check("file-rules.py", "--all")
        self.assertEqual(status, 1)
        for expected in ("ir/Long.cpp: 601 lines", "passes/Undone.cpp:2: ", "tools/where:1: /ho" "me/someone",
                         "3 files or lines break a rule"):
            self.assertIn(expected, output)


class Coverage(Tree):
    def setUp(self):
        super().setUp()
        self.plant("ir/ops/Elementwise.td", OP_BASE)
        self.plant("ir/ops/Elementwise.cpp", "// add_c1\n")
        self.plant("tests/ir/elementwise.mlir", "llmc.add // add_c1\n")
        self.plant("passes/Passes.td", PASSES)
        self.plant("tests/passes/fuse.mlir", "// RUN: llmc-opt --llmc-fuse %s\n")
        self.plant("frontend/OnnxOps.cpp", '  {"Gelu", 20, kNewestOpset, importGelu},\n')
        self.plant("tests/frontend/ops.test", "Gelu\n")

    def coverage(self):
        return self.check("coverage.py", TBLGEN, LLVM_INCLUDE)

    def test_complete(self):
        self.assertEqual(self.coverage(), (0, "1 ops, 1 passes, 1 importer rows checked, 0 missing\n"))

    def test_each_gap_is_named(self):
        self.plant("ir/ops/Elementwise.td", OP_BASE.replace('let summary = "sum";', ""))
        self.plant("tests/ir/elementwise.mlir", "llmc.add_bias\n")
        (self.root / "tests/passes/fuse.mlir").unlink()
        (self.root / "tests/frontend/ops.test").unlink()
        status, output = self.coverage()
        self.assertEqual(status, 1)
        for expected in ("op llmc.add: no summary", "op llmc.add: not in any test", "rule add_c1 is not named in tests/ir",
                         "pass llmc-fuse: no tests/passes/fuse.mlir", "importer row Gelu: not in any test"):
            self.assertIn(expected, output)

    def test_a_table_that_cannot_be_read_is_no_success(self):
        (self.root / "frontend/OnnxOps.cpp").unlink()
        status, output = self.coverage()
        self.assertEqual(status, 1)
        self.assertIn("no importer rows found", output)


if __name__ == "__main__":
    unittest.main()
