// One fusion, its random inputs, and the comparison of its generated code with its own evaluation in f64.
#pragma once

#include "backend/codegen/Codegen.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>
#include <vector>

namespace llmc {

/// A fusion in parts. Arguments are %a0, %a1, …; `body` ends in llmc.yield. Types are written without `tensor<>`.
struct FusionSpec {
  std::vector<int64_t> space = {};
  std::vector<std::string> inputs = {}; ///< types of the arguments, such as "6x8xf32"
  std::string body = {};
  std::vector<std::string> outputs = {};
  int64_t rowBlock = 4, colBlock = 1 << 30;
  std::vector<int> inPlace = {};           ///< for each output: the input in whose buffer it lies, -1 for its own
  double low = -3, high = 3;               ///< of the float inputs
  int64_t integerLow = 0, integerHigh = 9; ///< of the integer inputs
  double tolerance = 4e-6;                 ///< of f32 results, relative to the largest of the result …
  double leastScale = 1e-30;               ///< … or this, where terms cancel
};

/// The module that holds a spec's fusion; null, with a diagnostic, when it does not parse.
mlir::OwningOpRef<mlir::ModuleOp> parseFusion(const FusionSpec &spec);
/// The one fusion of a module.
FusionOp fusionIn(mlir::ModuleOp module);

/// The context all tests share: the dialect is loaded.
mlir::MLIRContext &testContext();

/// Random values of a type, rounded to it; the same for the same seed.
HostTensor randomTensor(mlir::RankedTensorType type, const FusionSpec &spec, unsigned seed);
/// As a buffer holds it, and back.
std::vector<std::byte> toBytes(const HostTensor &tensor);
HostTensor fromBytes(mlir::RankedTensorType type, const std::byte *bytes);

/// Runs a fusion's code on inputs, block by block; the results in the order of the fusion.
std::vector<HostTensor> runFusion(FusionOp fusion, const FusionSpec &spec, GeneratedKernel kernel,
                                  const std::vector<HostTensor> &inputs);

/// Compiles a fusion for each ISA level and calls `run` with the code of those that this machine has.
void forEachIsa(FusionOp fusion, llvm::function_ref<void(const CpuIsa &, GeneratedKernel)> run);

/// Compiles and runs a spec on each ISA level of this machine and on the simulated GPU and expects the f64 values, to
/// the type's rounding.
void expectMatchesHost(const FusionSpec &spec);

} // namespace llmc
