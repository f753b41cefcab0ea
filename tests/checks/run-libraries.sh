#!/usr/bin/env bash
# llmc-run executes plans with no compiler in the process: no MLIR, LLVM, ONNX or CUDA library may be linked.
# Usage: run-libraries.sh PROGRAM
set -euo pipefail

libraries="$(ldd "$1")"
if grep -qF 'not found' <<<"$libraries"; then
  echo "a library of $1 is missing:"
  grep -F 'not found' <<<"$libraries"
  exit 1
fi
if grep -iE '^[[:space:]]*lib[^ ]*(mlir|llvm|onnx|cuda|cublas|cudnn|nvrtc|nccl)' <<<"$libraries"; then
  echo "$1 links what only the compiler or a driver loaded at run time may use (above)"
  exit 1
fi
echo "$(wc -l <<<"$libraries") libraries, none of MLIR, LLVM, ONNX or CUDA"
