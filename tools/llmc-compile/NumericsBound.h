// How far two programs' numbers may lie apart. Bounds are relative to the largest entry of a tensor, because that is
// what rounding in sums leaves; a small part of the largest gradient is added for tensors that are zero in exact
// arithmetic, such as gradients of key biases.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace llmc {

/// The bound of a tensor is relative * its largest entry + floor.
struct Tolerance {
  double relative = 0;
  double floor = 0;
};

/// Both programs sum in f32 and in different orders: twice what design.md allows a gradient against f64. bf16 keeps 8
/// bits, and a step is a chain of roundings.
Tolerance toleranceOf(bool isBf16);

/// Where two tensors differ most, in parts of the bound.
struct Difference {
  double share = 0; ///< of the bound; above 1 they depart
  size_t index = 0;
  double expected = 0, found = 0, bound = 0;
};

/// The largest finite magnitude.
double largestEntry(std::span<const float> values);
/// Element by element. Equal infinities and NaN on both sides are no difference; NaN on one side is an endless one.
Difference difference(std::span<const float> expected, std::span<const float> found, double bound);
/// With a bound for each element.
Difference difference(std::span<const float> expected, std::span<const float> found, std::span<const double> bounds);

} // namespace llmc
