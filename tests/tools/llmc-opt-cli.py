# llmc-opt's help has an example, and that example runs.
import os
import unittest

from ToolCase import ToolCase


class LlmcOpt(ToolCase):
    tool = "llmc-opt"

    def test_the_example_of_the_help_runs(self):
        lines = self.succeed("--help").splitlines()
        example = next(line.split() for line in lines if line.startswith("  llmc-opt "))
        os.mkdir(self.path("ir"))
        self.write("ir/00-import.mlir", b"func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {\n  return %x : tensor<2xf32>\n}\n")
        self.assertIn("func.func @f", self.succeed(*example[1:]))


if __name__ == "__main__":
    unittest.main()
