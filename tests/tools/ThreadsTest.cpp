// How many threads a tool takes: the environment, the CPUs it may run on, and the quotas of control groups, in a tree
// of files like the kernel's.
#include "tools/Threads.h"
#include "tools/CpuQuota.h"

#include "tests/runtime/TinyPlan.h"

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

TEST(Threads, FollowTheEnvironment) {
  setenv("OMP_NUM_THREADS", "3,2", 1);
  EXPECT_EQ(defaultThreads(), 3);
  unsetenv("OMP_NUM_THREADS");
  int usual = defaultThreads();
  EXPECT_GE(usual, 1);
  EXPECT_LE(usual, static_cast<int>(allowedCpus().size()));
  for (const char *useless : {"many", "", "0", "-2", "99999999999"}) {
    setenv("OMP_NUM_THREADS", useless, 1);
    EXPECT_EQ(defaultThreads(), usual) << useless;
  }
  setenv("OMP_NUM_THREADS", "1000000", 1); // so many stacks fit into no memory
  EXPECT_EQ(defaultThreads(), kMaxThreads);
  unsetenv("OMP_NUM_THREADS");
  EXPECT_EQ(defaultThreads(1000), 1) << "sharers more than CPUs";
}

TEST(Threads, FollowTheCpusAllowed) {
  std::vector<int> cpus = allowedCpus();
  ASSERT_TRUE(useOnlyCpus({cpus.back()}));
  EXPECT_EQ(allowedCpus(), std::vector{cpus.back()});
  EXPECT_EQ(defaultThreads(), 1);
  ASSERT_TRUE(useOnlyCpus(cpus));
  EXPECT_EQ(allowedCpus(), cpus);
}

class CpuQuotas : public ::testing::Test {
protected:
  void write(const std::string &name, const std::string &text) {
    std::filesystem::create_directories(std::filesystem::path(folder.path(name)).parent_path());
    folder.write(name, text);
  }
  double quota(const std::string &membership) {
    return cpuQuota(folder.path(""), folder.write("membership", membership));
  }
  TestFolder folder;
};

TEST_F(CpuQuotas, AreThoseOfEveryGroupAbove) {
  write("a/b/c/cpu.max", "max 100000\n");
  EXPECT_TRUE(std::isinf(quota("0::/a/b/c\n")));
  write("a/b/cpu.max", "150000 100000\n"); // neither the root nor the own group
  EXPECT_EQ(quota("0::/a/b/c\n"), 1.5);
  EXPECT_EQ(quota("0::/a/b\n"), 1.5);
  EXPECT_TRUE(std::isinf(quota("0::/a\n")));
  EXPECT_TRUE(std::isinf(quota("0::/\n")));
  write("a/cpu.max", "300000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 1.5);
  write("a/b/c/cpu.max", "50000 100000\n");
  EXPECT_EQ(quota("0::/a/b/c\n"), 0.5);
  write("cpu.max", "20000 100000\n"); // the root of what a container sees
  EXPECT_EQ(quota("0::/a/b/c\n"), 0.2);
  EXPECT_EQ(quota("0::/not/mounted\n"), 0.2);
}

TEST_F(CpuQuotas, OfTheFirstVersionAreTheCpuControllers) {
  write("cpu/a/b/cpu.cfs_quota_us", "-1\n");
  write("cpu/a/b/cpu.cfs_period_us", "100000\n");
  write("cpu/a/cpu.cfs_quota_us", "250000\n");
  write("cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("5:memory:/x\n4:cpu,cpuacct:/a/b\n0::/\n"), 2.5);
  EXPECT_EQ(quota("4:cpuacct,cpu:/a\n"), 2.5);
  EXPECT_TRUE(std::isinf(quota("3:cpuset:/a/b\n2:cpuacct:/a/b\n")));
  write("cpu/cpu.cfs_quota_us", "100000\n");
  write("cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(quota("4:cpu,cpuacct:/docker/1234\n"), 1);
}

TEST_F(CpuQuotas, AreNotReadFromWhatIsNoQuota) {
  write("a/cpu.max", "many\n");
  for (const char *membership : {"", "0::/a\n", "0::/../a\n", "0::", "::", "0:", "cpu\n", ":cpu:a\n", "4:cpu:\n"})
    EXPECT_TRUE(std::isinf(quota(membership))) << membership;
  write("a/cpu.max", "100000 0\n");
  EXPECT_TRUE(std::isinf(quota("0::/a\n")));
  EXPECT_TRUE(std::isinf(cpuQuota(folder.path("none"), folder.path("none"))));
}

} // namespace
} // namespace llmc::test
