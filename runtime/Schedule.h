// The learning rate of each step.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>

namespace llmc {

enum class ScheduleKind { constant, cosine, linear };

/// Rises linearly over `warmup` steps (step t takes lr * t / warmup), then stays, or falls to minLr at step `total`
/// along half a cosine or a line.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 3e-4;
  double minLr = 0;
  int64_t warmup = 0;
  int64_t total = 0; ///< steps of the whole run

  /// The rate of step t, counted from 1.
  double at(int64_t t) const {
    if (t <= warmup)
      return lr * static_cast<double>(t) / static_cast<double>(warmup);
    if (kind == ScheduleKind::constant)
      return lr;
    double share = total > warmup ? static_cast<double>(t - warmup) / static_cast<double>(total - warmup) : 1.0;
    share = std::min(share, 1.0);
    double rest = kind == ScheduleKind::linear ? 1 - share : 0.5 * (1 + std::cos(std::numbers::pi * share));
    return minLr + (lr - minLr) * rest;
  }
};

} // namespace llmc
