// Where the time of a run goes, launch by launch: a Chrome/Perfetto trace of the first steps, with a row for the
// network below the launches, and the costliest kernels over all.
#pragma once

#include "runtime/Session.h"

#include <chrono>
#include <map>

namespace llmc {

class Profiler : public LaunchObserver {
public:
  /// At most this many launches, and collectives, go into the trace; all count for the table.
  static constexpr size_t kMaxTraceEvents = 200'000;

  void record(const Program &program, std::span<const double> launchMs) override;
  void recordCollectives(std::span<const CommSpan> spans) override;
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
  /// Sums over what travelled.
  struct Network {
    uint64_t collectives = 0, bytes = 0;
    double ms = 0, meetingMs = 0;
  };
  struct Cost {
    double ms = 0, flops = 0, bytes = 0;
    uint64_t runs = 0;
  };

  static std::string eventText(const Event &event);
  std::string spanText(const CommSpan &span) const;

  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::vector<Event> events;
  std::vector<CommSpan> spans;
  Network network;
  std::map<const Launch *, Cost> costs;
  std::map<const Launch *, const Program *> programs;
};

} // namespace llmc
