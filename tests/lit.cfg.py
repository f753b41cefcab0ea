# How lit runs the .mlir and .test files under tests/. One file by hand, from the root:
#   /usr/lib/llvm-19/build/utils/lit/lit.py -v build/tests/passes/fuse.mlir
import os

import lit.formats

config.name = "llmc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)

# Our tools by name (llmc-opt, llmc-compile, llmc-run, llmc-inspect, ...), then LLVM's FileCheck, not, count, split-file.
config.environment["PATH"] = os.pathsep.join([config.llmc_bin, config.llvm_bin, os.environ["PATH"]])
for name in ("HOME", "LSAN_OPTIONS", "TSAN_OPTIONS", "UBSAN_OPTIONS", "ASAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["FILECHECK_OPTS"] = "--enable-var-scope --dump-input=fail"

config.substitutions.append(("%fixtures", config.llmc_fixtures))
config.substitutions.append(("%python", config.llmc_python))
config.substitutions.append(("%source", config.llmc_source))
