// The loss curve as a picture: one SVG file, readable on light and dark ground.
#pragma once

#include "runtime/Status.h"

#include <span>
#include <string>

namespace llmc {

/// A curve of losses, one a step from step 1 on. Values that are not finite are left out.
struct LossPlot {
  std::string title;
  std::span<const double> losses;
};

/// The SVG's text: axes with round numbers, each step's loss faint, a smoothed line on top.
std::string renderLossPlot(const LossPlot &plot);
/// Writes it whole or not at all.
Status writeLossPlot(const std::string &path, const LossPlot &plot);

} // namespace llmc
