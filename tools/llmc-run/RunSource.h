// Where a run's batches come from: a token file, one fixed batch, or random tokens.
#pragma once

#include "runtime/DataLoader.h"
#include "tools/llmc-run/RunOptions.h"

#include <memory>

namespace llmc {

struct RunSource {
  std::unique_ptr<BatchSource> batches;
  std::string text; ///< for the person at the terminal: what it is, and how long the run takes with it
  int64_t numSteps = 0;
};

/// Opens what the flags name for one rank's share of each step. Fails where it does not fit the plan's inputs.
Result<RunSource> openSource(const RunOptions &options, const InputMap &inputs, RankShare ranks);

} // namespace llmc
