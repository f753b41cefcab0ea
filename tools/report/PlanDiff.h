// What one plan does otherwise than another.
#pragma once

#include "tools/report/PlanView.h"

namespace llmc {

/// Lines of what differs, from `before` to `after`: facts of the plan, parameters, memory and kernels of each program.
/// Kernels are compared by what they compute on which sizes, not by their place. "" where nothing differs.
std::string planDiff(const PlanView &before, const PlanView &after);

} // namespace llmc
