// What one launch is, in words and numbers: its sizes, its element types, and the least time it can take on a device.
#pragma once

#include "runtime/Plan.h"
#include "tools/report/DeviceRates.h"

#include <optional>

namespace llmc {

/// The sizes of a launch by the names of Kernels.def: "m 1024, n 2304, k 768, transposeRhs". Strides, offsets, blocks
/// and element types are left out, so are zeros and a batch of one.
std::string shapeText(const Launch &launch);
/// The element types among its arguments, each once: "f32", "bf16 f32"; "" for kernels that have none.
std::string typesText(const Launch &launch);
/// Operations per byte of memory traffic.
double intensity(const Launch &launch);

struct Roofline {
  double ms = 0; ///< no kernel can be faster
  bool isByMemory = false;
};
/// The larger of operations over the device's rate and bytes over its bandwidth. Contractions of bf16 operands are
/// held against the bf16 rate, those of a tf32 plan against the tf32 rate.
Roofline roofline(const Launch &launch, const std::string &precision, const DeviceRates &device);

/// What a launch is expected to take by the rates that well-tuned kernels reach, in milliseconds; none where the device
/// has no such rates, or none for contractions and attention of these element types.
std::optional<double> expectedMs(const Launch &launch, const DeviceRates &device);
/// The sum over a program's launches, one after the other; none where one launch has none.
std::optional<double> expectedMs(const Program &program, const DeviceRates &device);

} // namespace llmc
