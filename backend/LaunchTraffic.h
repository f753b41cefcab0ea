// How many bytes a launch must move: what its bandwidth and its roofline are computed from.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

/// Bytes read and written when no byte is touched twice: operands that share a buffer count once, a buffer that is
/// added to twice, and of a table only the rows that are looked up.
double trafficBytes(const Launch &launch);

} // namespace llmc
