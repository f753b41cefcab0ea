// Where the time of a run goes, launch by launch: a Chrome/Perfetto trace of the first steps, and the costliest kernels
// over all.
#pragma once

#include "runtime/Session.h"

#include <chrono>
#include <map>

namespace llmc {

class Profiler : public LaunchObserver {
public:
  /// At most this many launches go into the trace; all count for the table.
  static constexpr size_t kMaxTraceEvents = 200'000;

  void record(const Program &program, std::span<const double> launchMs) override;
  /// The trace as JSON (the "traceEvents" format), whole or not at all.
  Status writeTrace(const std::string &path) const;
  /// A table for the terminal: first kinds of kernels, then the costliest launches, with share of the time, GFLOP/s and
  /// GB/s.
  std::string table(size_t numLaunches = 15) const;

private:
  struct Event {
    const Launch *launch;
    const Program *program;
    double startUs, durationUs;
  };
  struct Cost {
    double ms = 0, flops = 0, bytes = 0;
    uint64_t runs = 0;
  };

  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::vector<Event> events;
  std::map<const Launch *, Cost> costs;
  std::map<const Launch *, const Program *> programs;
};

} // namespace llmc
