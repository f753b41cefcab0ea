// A progress line for work that is counted in bytes: rewritten in place on a terminal, a plain line now and then
// otherwise, and nothing at all when the work takes less than a second.
#pragma once

#include "runtime/Say.h"

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fmt/core.h>
#include <string>
#include <unistd.h>

namespace llmc {

class Progress {
public:
  /// `totalBytes` 0: not known, so neither a share nor the time left is shown.
  Progress(std::string label, uint64_t totalBytes)
      : label(std::move(label)), totalBytes(totalBytes), isTerminal(::isatty(STDERR_FILENO) == 1) {}

  ~Progress() {
    if (isTerminal && shown)
      say(stderr, "\r\033[K");
  }

  /// Call as often as you like; it prints rarely.
  void update(uint64_t doneBytes) {
    double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    if (seconds < next)
      return;
    next = seconds + (isTerminal ? 0.2 : 5.0);
    shown = true;
    std::string line = fmt::format("{}: {:.0f} MB", label, doneBytes / 1e6);
    if (totalBytes > 0 && doneBytes > 0)
      line += fmt::format(" of {:.0f} MB, {:.0f} s left", totalBytes / 1e6,
                          seconds * (static_cast<double>(totalBytes) / doneBytes - 1));
    say(stderr, "{}{}{}", isTerminal ? "\r\033[K" : "", line, isTerminal ? "" : "\n");
    std::fflush(stderr);
  }

private:
  using Clock = std::chrono::steady_clock;
  std::string label;
  uint64_t totalBytes;
  bool isTerminal;
  bool shown = false;
  Clock::time_point start = Clock::now();
  double next = 1.0; ///< seconds since start before which nothing is printed
};

} // namespace llmc
