// A plan in words for the terminal.
#pragma once

#include "tools/report/PlanView.h"

namespace llmc {

/// "512", "1.5 k", "23.4 M": a count with three or four digits.
std::string countText(double value);
/// Memory of each program at its peak, by category, against the lower bound of its arena. Values whose sizes are no
/// multiple of 64 are padded: that is told apart.
std::string memoryTable(const Plan &plan, const TargetPrograms &target);
/// The whole report; every launch of `program` when `isWhole`, else the costliest.
std::string planText(const std::string &name, const PlanView &view, const Program &program, bool isWhole);

} // namespace llmc
