// The flags of llmc-run as values.
#pragma once

#include "runtime/Batch.h"
#include "runtime/Schedule.h"
#include "runtime/Session.h"

#include <optional>
#include <string>
#include <vector>

namespace llmc {

struct RunOptions {
  std::string plan;
  std::string data;   ///< token file; empty: none
  std::string inputs; ///< safetensors file with one fixed batch; empty: none
  InputOverrides overrides;
  int threads = 0; ///< 0: defaultThreads()

  std::optional<int64_t> steps;  ///< nothing: one epoch of --data, else kDefaultSteps
  std::optional<int64_t> epochs; ///< only with --data
  int64_t accumulate = 1;
  bool dropLast = false;
  uint64_t seed = 0;

  HyperParameters hyper; ///< lr before --scale-lr
  bool scaleLr = false;
  bool rankTimes = false, verifyRanks = false; ///< nothing in a run of one rank
  ScheduleKind schedule = ScheduleKind::constant;
  int64_t warmup = 0;
  double minLr = 0;

  std::string metrics, profile, plot; ///< files to write; empty: none
  std::string exportOnnx, exportWeights, exportGrads, exportOutputs;
};

/// Steps where neither the flags nor the data say how many.
inline constexpr int64_t kDefaultSteps = 10;

/// Something that all ranks of a run must have alike: a flag, the plan.
struct RunFact {
  std::string name, value;
  bool operator==(const RunFact &) const = default;
};

/// Flags that decide what is computed. Files to write are rank 0's own affair, threads every rank's.
std::vector<RunFact> sharedFlags(const RunOptions &options);

/// "constant", "cosine" or "linear"
const char *scheduleName(ScheduleKind kind);

} // namespace llmc
