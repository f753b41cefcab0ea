// How many threads a run takes when no flag says so, and on which CPUs.
#pragma once

#include "runtime/Status.h"

#include <vector>

namespace llmc {

/// No more threads than these are taken, whatever is asked for.
inline constexpr int kMaxThreads = 4096;

/// OMP_NUM_THREADS where it is set, else the CPUs that affinity and the cgroup's quota leave to this process, divided
/// by the number of processes that share them; at least 1.
int defaultThreads(int sharers = 1);

/// The CPUs that this process may use.
std::vector<int> allowedCpus();
/// The CPUs of part `index` of `parts`: as even as can be, neighbours together. All of them where there are fewer CPUs
/// than parts.
std::vector<int> shareOfCpus(const std::vector<int> &cpus, int index, int parts);
/// Keeps this thread, and those that it starts from now on, on these CPUs.
Status useOnlyCpus(const std::vector<int> &cpus);

} // namespace llmc
