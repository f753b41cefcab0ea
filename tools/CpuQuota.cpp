// In a container the mount may begin at the process's own group, which is then not found below it by the path that the
// membership names: the root counts in any case.
#include "tools/CpuQuota.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <limits>

namespace llmc {

static constexpr double kNoQuota = std::numeric_limits<double>::infinity();

static double inCpus(double quota, double period) { return quota > 0 && period > 0 ? quota / period : kNoQuota; }

static double readV2(const std::string &group) {
  std::ifstream file(group + "/cpu.max");
  std::string quota; // microseconds a period, or "max"
  double period = 0;
  return file >> quota >> period ? inCpus(std::strtod(quota.c_str(), nullptr), period) : kNoQuota;
}

static double readV1(const std::string &group) {
  double quota = 0, period = 0; // a quota of -1 is none
  std::ifstream(group + "/cpu.cfs_quota_us") >> quota;
  std::ifstream(group + "/cpu.cfs_period_us") >> period;
  return inCpus(quota, period);
}

/// The least of a group ("/a/b") and all above it.
template <typename Read> static double leastUpwards(const std::string &mount, std::string group, Read read) {
  double least = read(mount);
  for (; group.size() > 1; group.erase(group.rfind('/')))
    if (group.find("/..") == std::string::npos) // outside of what this process may see
      least = std::min(least, read(mount + group));
  return least;
}

double cpuQuota(const std::string &mount, const std::string &membership) {
  // Lines "0::/group" (v2) and "4:cpu,cpuacct:/group" (v1).
  std::ifstream file(membership);
  double least = std::min(readV2(mount), readV1(mount + "/cpu"));
  for (std::string line; std::getline(file, line);) {
    size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos || line.size() <= second + 1 || line[second + 1] != '/')
      continue;
    std::string controllers = line.substr(first + 1, second - first - 1), group = line.substr(second + 1);
    if (controllers.empty())
      least = std::min(least, leastUpwards(mount, group, readV2));
    else if (("," + controllers + ",").find(",cpu,") != std::string::npos)
      least = std::min(least, leastUpwards(mount + "/cpu", group, readV1));
  }
  return least;
}

} // namespace llmc
