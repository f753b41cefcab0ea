// What a session and a device ask of the network between ranks. Collectives are issued in one order on all ranks (the
// plan's order), run one after another in the background, and sum in f32.
#pragma once

#include "runtime/Plan.h"

#include <chrono>
#include <span>
#include <string>
#include <string_view>

namespace llmc {

/// One collective on its way, as this rank saw it.
struct CommSpan {
  using Time = std::chrono::steady_clock::time_point;
  const char *operation = ""; ///< "all_reduce", ...
  std::string label;
  uint64_t bytes = 0;   ///< that a rank brings
  Time start, met, end; ///< the network turned to it; all ranks had come; it was done
};

/// Milliseconds of a span of time.
struct CommTimes {
  double busyMs = 0;                     ///< collectives ran: from the moment that all ranks had come to them
  double exposedMs = 0;                  ///< the caller waited for them, and for ranks that had not come
  std::span<const CommSpan> collectives; ///< in their order, the first few thousand; until the next one starts
};

/// The ranks of a run, seen from one of them. Every call may fail with the first cause: which rank, which collective,
/// which op of the model it belongs to, and who had not arrived. After a failure only destruction is allowed. Not
/// thread-safe: one thread issues and waits.
class CommApi {
public:
  virtual ~CommApi() = default;
  /// 0 to worldSize() - 1.
  virtual int rank() const = 0;
  virtual int worldSize() const = 0;
  /// "Gloo 0.5 over TCP", for the metrics' first line.
  virtual std::string describe() const = 0;
  /// Starts summing `buffer` (elements of `type`: f32 or bf16) over all ranks in place, in the background; `label`
  /// names the model's op for errors. The buffer belongs to the collective until wait() returns. Tickets count from 0.
  virtual Result<uint64_t> startAllReduce(std::span<std::byte> buffer, ElementType type, std::string_view label) = 0;
  /// Returns when the collective of `ticket` and all before it are done.
  virtual Status wait(uint64_t ticket) = 0;
  /// Copies root's bytes to every rank's `buffer`; returns when done.
  virtual Status broadcast(std::span<std::byte> buffer, int root, std::string_view label) = 0;
  /// all (worldSize x mine.size() bytes) = every rank's `mine`, in rank order; returns when done. With no bytes: a
  /// barrier.
  virtual Status allGather(std::span<const std::byte> mine, std::span<std::byte> all, std::string_view label) = 0;
  /// Since the last call. Only with nothing on its way.
  virtual CommTimes takeTimes() = 0;
};

} // namespace llmc
