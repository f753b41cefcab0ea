// What this machine reaches at best: multiply-adds in registers, and a sum of two arrays in memory.
#pragma once

#include "tools/report/DeviceRates.h"

namespace llmc {

/// Measures with `threads` threads, the best of several short runs by the threads' own time.
DeviceRates measureCpu(int threads);

} // namespace llmc
