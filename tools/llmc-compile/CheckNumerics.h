// llmc-compile --check-numerics: does the optimized step compute what the model says? The same model is compiled once
// more in f32 with every optional pass left out, one kernel an op; both programs run on one batch, launch by launch,
// and what they compute is compared under the names of the ONNX nodes.
#pragma once

#include "backend/PlanEmitter.h"
#include "tools/llmc-compile/NumericsBlame.h"

#include <optional>

namespace llmc {

struct NumericsReport {
  size_t numCompared = 0;  ///< float results with a counterpart, and what the step leaves in variables and outputs
  size_t numUnchecked = 0; ///< float results without one
  size_t numLaunches = 0, numReferenceLaunches = 0;
  double largestShare = 0; ///< of the bound, where all is well
  std::string largestAt;
  std::optional<NumericsDeparture> departure;

  /// One line when all is well; else what departs, where and by how much.
  std::string text() const;
};

struct NumericsInput {
  mlir::ModuleOp optimized;   ///< in plan form, and
  const EmittedPlan &emitted; ///< what was emitted from it
  mlir::ModuleOp imported;    ///< before any pass; changed into the reference's plan form
  bool isBf16 = false;        ///< how `optimized` was compiled
  std::string optimizer;      ///< of both
  std::string batch;          ///< a safetensors file: a tensor for each input of the graph
  std::string temporary;      ///< path for plans that are removed again at once
};

/// Runs both on this machine's CPU. Fails when they cannot be run: a batch that does not fit, a level that this machine
/// lacks.
Result<NumericsReport> checkNumerics(const NumericsInput &input);

} // namespace llmc
