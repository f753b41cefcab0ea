// The files that a run writes: each a file of its own, none an input, and each possible to write before the work
// begins.
#pragma once

#include "runtime/Plan.h"
#include "tools/Outputs.h"
#include "tools/llmc-run/RunOptions.h"

#include <string>

namespace llmc {

/// What is wrong with where the flags send outputs, as far as their paths tell; "" when nothing is.
std::string outputConflict(const RunOptions &options);

/// Whether each output could be made now; makes none.
Status checkOutputs(const RunOptions &options);

/// The same two questions about the file that --export-onnx puts a large model's weights into, which only the plan
/// tells. `modelBytes`: of the model in the plan, without its weights.
Status checkExportedData(const RunOptions &options, const Plan &plan, uint64_t modelBytes);

} // namespace llmc
