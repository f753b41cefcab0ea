// The quota is that of cgroup v2 (cpu.max) or v1 (cpu.cfs_*), at the root of the mount a container sees and in the
// process's own group; half a CPU counts as a whole one.
#include "tools/Threads.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sched.h>
#include <string>
#include <string_view>
#include <thread>

namespace llmc {

/// CPUs allowed by "quota period" in microseconds; 0 where there is no limit.
static double quotaCpus(double quota, double period) { return quota > 0 && period > 0 ? quota / period : 0; }

static double readCgroupV2(const std::string &folder) {
  std::ifstream file(folder + "/cpu.max");
  std::string quota;
  double period = 0;
  if (!(file >> quota >> period) || quota == "max")
    return 0;
  return quotaCpus(std::strtod(quota.c_str(), nullptr), period);
}

static double readCgroupV1() {
  double quota = 0, period = 0;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_quota_us") >> quota;
  std::ifstream("/sys/fs/cgroup/cpu/cpu.cfs_period_us") >> period;
  return quotaCpus(quota, period);
}

/// The process's own group below the mount, "" where unknown (cgroup v2: the line "0::/group").
static std::string ownGroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("0::"))
      return line.substr(3);
  return "";
}

std::vector<int> allowedCpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cpus;
  bool isKnown = sched_getaffinity(0, sizeof(set), &set) == 0;
  int count = isKnown ? CPU_SETSIZE : static_cast<int>(std::thread::hardware_concurrency());
  for (int cpu = 0; cpu < count; ++cpu)
    if (!isKnown || CPU_ISSET(cpu, &set))
      cpus.push_back(cpu);
  return cpus;
}

std::vector<int> shareOfCpus(const std::vector<int> &cpus, int index, int parts) {
  auto count = static_cast<ptrdiff_t>(cpus.size());
  if (count < parts)
    return cpus;
  return {cpus.begin() + count * index / parts, cpus.begin() + count * (index + 1) / parts};
}

Status useOnlyCpus(const std::vector<int> &cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus)
    CPU_SET(cpu, &set);
  if (sched_setaffinity(0, sizeof(set), &set) != 0)
    return Error{std::string("cannot choose CPUs: ") + std::strerror(errno)};
  return {};
}

int defaultThreads(int sharers) {
  if (const char *text = std::getenv("OMP_NUM_THREADS")) {
    int threads = 0;
    std::string_view value(text); // a list is one number per nesting level: the first is ours
    std::from_chars(value.data(), value.data() + value.size(), threads);
    if (threads > 0)
      return threads;
  }
  double limit = static_cast<double>(allowedCpus().size());
  for (double quota : {readCgroupV2("/sys/fs/cgroup"), readCgroupV2("/sys/fs/cgroup" + ownGroup()), readCgroupV1()})
    if (quota > 0)
      limit = std::min(limit, std::ceil(quota));
  return std::max(1, static_cast<int>(limit) / sharers);
}

} // namespace llmc
