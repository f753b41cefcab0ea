// How many threads a run takes when no flag says so.
#pragma once

namespace llmc {

/// OMP_NUM_THREADS where it is set, else the CPUs that affinity and the cgroup's quota leave to this process; at
/// least 1.
int defaultThreads();

} // namespace llmc
