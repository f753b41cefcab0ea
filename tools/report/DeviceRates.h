// How fast a device computes and reads at best: what a kernel's roofline is drawn from. Named devices come from a
// table; "this" is the machine itself, measured.
#pragma once

#include "runtime/Status.h"

#include <optional>
#include <string>
#include <vector>

namespace llmc {

/// What well-tuned kernels reach of a device's limits: what a step is expected to take, not the least it can.
struct ReachedRates {
  double bf16Gflops = 0;              ///< contractions of bf16 operands at the sizes of a GPT's blocks
  double largeBf16Gflops = 0;         ///< those with a dimension of kLargeDimension or more: the vocabulary's
  double attentionGflops = 0;         ///< causal flash attention, bf16
  double attentionGradientGflops = 0; ///< its gradient
  double memoryGbs = 0;               ///< everything else moves its bytes at this rate
};
inline constexpr int64_t kLargeDimension = 16384;

/// The limits of a device. All are what its maker states for dense operands, or what was measured.
struct DeviceRates {
  std::string name;
  std::string description;
  double f32Gflops = 0;  ///< multiply-adds in f32, two operations each
  double tf32Gflops = 0; ///< contractions in tf32; as f32 where there is no such unit
  double bf16Gflops = 0; ///< contractions of bf16 operands, summed in f32
  double memoryGbs = 0;  ///< main memory, GB/s
  bool isMeasured = false;
  std::optional<ReachedRates> reached = {};
};

/// Names that findDevice takes, "this" first.
std::vector<std::string> deviceNames();
/// The device of a name; "this" is measured with `threads` threads, in about a quarter of a second.
Result<DeviceRates> findDevice(const std::string &name, int threads);

} // namespace llmc
