// The trace that llmc-run --profile writes, brought back to the launches of the plan that it was made with.
#pragma once

#include "runtime/Plan.h"

#include <map>

namespace llmc {

/// Measured time of one launch.
struct LaunchTime {
  double meanMs = 0;
  double leastMs = 0;
  uint64_t runs = 0;
};
/// By program; one entry a launch.
using MeasuredTimes = std::map<ProgramKind, std::vector<LaunchTime>>;

/// Reads a trace and matches its events, in order, with the launches of `target`. Fails where the file is no trace, or
/// one of another plan.
Result<MeasuredTimes> readTrace(const std::string &path, const TargetPrograms &target);

/// Milliseconds of all launches of a program together, by their means; 0 without times.
double totalMs(const MeasuredTimes &times, ProgramKind kind);

} // namespace llmc
