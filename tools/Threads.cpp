// Half a CPU of a quota counts as a whole one.
#include "tools/Threads.h"

#include "tools/CpuQuota.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <sched.h>
#include <string>
#include <string_view>
#include <thread>

namespace llmc {

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
      return std::min(threads, kMaxThreads);
  }
  double limit = static_cast<double>(allowedCpus().size());
  limit = std::min(limit, std::ceil(cpuQuota("/sys/fs/cgroup", "/proc/self/cgroup")));
  return std::max(1, static_cast<int>(limit) / sharers);
}

} // namespace llmc
