// How many CPUs' time the control groups leave to this process.
#pragma once

#include <string>

namespace llmc {

/// The least quota, in CPUs, of the groups from the process's own up to the root of what is mounted; infinity where
/// none has one. Reads cgroup v2 (cpu.max) and v1 (cpu.cfs_*). `mount` is where control groups are mounted,
/// `membership` the file that says which are the process's: "/sys/fs/cgroup" and "/proc/self/cgroup".
double cpuQuota(const std::string &mount, const std::string &membership);

} // namespace llmc
