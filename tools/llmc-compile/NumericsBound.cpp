// Differences are taken in f64.
#include "tools/llmc-compile/NumericsBound.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace llmc {

Tolerance toleranceOf(bool isBf16) {
  if (isBf16)
    return {0x1p-8 * 8, 0x1p-8};
  return {2e-4, 2e-6};
}

double largestEntry(std::span<const float> values) {
  double largest = 0;
  for (float value : values)
    if (std::isfinite(value))
      largest = std::max(largest, std::abs(double(value)));
  return largest;
}

static double shareOf(float expected, float found, double bound) {
  if (expected == found || (std::isnan(expected) && std::isnan(found)))
    return 0;
  double apart = std::abs(double(expected) - double(found));
  return std::isfinite(apart) && bound > 0 ? apart / bound : std::numeric_limits<double>::infinity();
}

template <typename BoundAt>
static Difference largestDifference(std::span<const float> expected, std::span<const float> found, BoundAt boundAt) {
  assert(expected.size() == found.size());
  Difference worst;
  for (size_t i = 0; i < expected.size(); ++i)
    if (double share = shareOf(expected[i], found[i], boundAt(i)); share > worst.share)
      worst = {share, i, expected[i], found[i], boundAt(i)};
  return worst;
}

Difference difference(std::span<const float> expected, std::span<const float> found, double bound) {
  return largestDifference(expected, found, [=](size_t) { return bound; });
}

Difference difference(std::span<const float> expected, std::span<const float> found, std::span<const double> bounds) {
  assert(bounds.size() == expected.size());
  return largestDifference(expected, found, [=](size_t i) { return bounds[i]; });
}

} // namespace llmc
