// Which rank a process is and where it meets the others, from environments and flags; shares of CPUs.
#include "runtime/MeetingFile.h"
#include "runtime/MeetingPlace.h"
#include "tools/Threads.h"

#include <gmock/gmock.h>
#include <map>

namespace llmc::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Environment environment(std::map<std::string, std::string> values) {
  return [values](const char *name) -> std::optional<std::string> {
    auto found = values.find(name);
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
}

TEST(RankEnvironment, NothingSetIsOneRank) {
  auto place = readRankEnvironment(environment({{"SLURM_NTASKS", "4"}}));
  ASSERT_TRUE(place.ok()) << "a batch job's own shell is no rank";
  EXPECT_EQ(place->worldSize, 1);
  EXPECT_EQ(place->launcher, "");
}

TEST(RankEnvironment, ReadsEachLauncher) {
  auto torch = readRankEnvironment(environment({{"RANK", "3"},
                                                {"WORLD_SIZE", "4"},
                                                {"LOCAL_RANK", "1"},
                                                {"LOCAL_WORLD_SIZE", "2"},
                                                {"TORCHELASTIC_RUN_ID", "abc"},
                                                {"TORCHELASTIC_RESTART_COUNT", "2"}}));
  ASSERT_TRUE(torch.ok());
  EXPECT_EQ(torch->rank, 3);
  EXPECT_EQ(torch->worldSize, 4);
  EXPECT_EQ(torch->localRank, 1);
  EXPECT_EQ(torch->localSize, 2);
  EXPECT_EQ(torch->launcher, "torchrun");
  EXPECT_EQ(torch->job, "abc-2");
  auto mpi = readRankEnvironment(environment({{"OMPI_COMM_WORLD_RANK", "1"},
                                              {"OMPI_COMM_WORLD_SIZE", "2"},
                                              {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                              {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                                              {"PMIX_NAMESPACE", "1234"}}));
  ASSERT_TRUE(mpi.ok());
  EXPECT_EQ(mpi->rank, 1);
  EXPECT_EQ(mpi->launcher, "mpirun");
  EXPECT_EQ(mpi->job, "1234");
  auto slurm = readRankEnvironment(
      environment({{"SLURM_PROCID", "5"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURM_JOB_ID", "77"}}));
  ASSERT_TRUE(slurm.ok());
  EXPECT_EQ(slurm->rank, 5);
  EXPECT_EQ(slurm->worldSize, 8);
  EXPECT_EQ(slurm->localSize, 2) << "at least";
  EXPECT_EQ(slurm->launcher, "srun");
}

TEST(RankEnvironment, OneTaskOfSrunMayStartTorchrun) {
  auto place = readRankEnvironment(
      environment({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"RANK", "1"}, {"WORLD_SIZE", "2"}}));
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->rank, 1);
}

TEST(RankEnvironment, RefusesWhatCannotBe) {
  auto message = [](std::map<std::string, std::string> values) {
    auto place = readRankEnvironment(environment(std::move(values)));
    return place ? "" : place.error().message;
  };
  EXPECT_EQ(message({{"RANK", "2"}, {"WORLD_SIZE", "2"}}), "RANK=2 is no rank of WORLD_SIZE=2");
  EXPECT_EQ(message({{"RANK", "0"}}), "RANK is set and WORLD_SIZE is not");
  EXPECT_EQ(message({{"RANK", "-1"}, {"WORLD_SIZE", "2"}}), "RANK=-1: expected a whole number, 0 or more");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "two"}}), "WORLD_SIZE=two: expected a whole number, 0 or more");
  EXPECT_EQ(message({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}}),
            "the environment of torchrun says rank 0 of 2, that of mpirun rank 1 of 2");
}

RankPlace placeOf(int worldSize, int localSize, std::string job) {
  RankPlace place;
  place.worldSize = worldSize;
  place.localSize = localSize;
  place.job = std::move(job);
  return place;
}

TEST(MeetingPlace, TheFlagSpeaksFirst) {
  Environment masters = environment({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}});
  EXPECT_EQ(chooseMeetingPlace("10.0.0.1:77", placeOf(2, 2, ""), masters)->describe(), "10.0.0.1:77");
  EXPECT_EQ(chooseMeetingPlace("[::1]:77", placeOf(2, 2, ""), masters)->host, "::1");
  EXPECT_EQ(chooseMeetingPlace("file:/shared/meet", placeOf(2, 2, ""), masters)->describe(), "file:/shared/meet");
  EXPECT_EQ(chooseMeetingPlace("", placeOf(2, 2, ""), masters)->describe(), "node0:29500");
}

TEST(MeetingPlace, TorchrunsAgentKeepsTheStore) {
  auto place = chooseMeetingPlace(
      "", placeOf(2, 2, "x"),
      environment({{"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}, {"TORCHELASTIC_USE_AGENT_STORE", "True"}}));
  EXPECT_EQ(place->kind, MeetingPlace::Kind::torchStore);
  EXPECT_EQ(place->describe(), "torchrun's store at node0:29500");
}

TEST(MeetingPlace, RanksOfOneMachineMeetByTheirJob) {
  auto place = chooseMeetingPlace("", placeOf(2, 2, "prterun/1"), environment({}));
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->kind, MeetingPlace::Kind::file);
  EXPECT_THAT(place->path, testing::EndsWith("-prterun_1"));
}

TEST(MeetingPlace, SaysWhatIsMissingOrWrong) {
  auto message = [](const char *flag, std::map<std::string, std::string> values) {
    auto place = chooseMeetingPlace(flag, placeOf(4, 2, "job"), environment(std::move(values)));
    return place ? "" : place.error().message;
  };
  EXPECT_EQ(message("", {}), "4 ranks, and no word where they meet: MASTER_ADDR and MASTER_PORT are not set; or give "
                             "--rendezvous HOST:PORT or --rendezvous file:PATH");
  EXPECT_THAT(message("", {{"MASTER_ADDR", "a"}}), HasSubstr(": MASTER_PORT is not set;"));
  EXPECT_THAT(message("", {{"MASTER_PORT", "1"}}), HasSubstr(": MASTER_ADDR is not set;"));
  EXPECT_EQ(message("", {{"MASTER_ADDR", "a"}, {"MASTER_PORT", "0"}}),
            "MASTER_PORT: '0' is no port: expected 1 to 65535");
  EXPECT_EQ(message("host", {}), "expected HOST:PORT or file:PATH, found 'host'");
  EXPECT_EQ(message("host:99999", {}), "'99999' is no port: expected 1 to 65535");
}

TEST(MeetingFile, LinesGoThereAndBack) {
  auto address = parseHubAddress(formatHubAddress({"10.0.0.1", 1234, "job with spaces"}));
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(address->host, "10.0.0.1");
  EXPECT_EQ(address->port, 1234);
  EXPECT_EQ(address->job, "job with spaces");
  for (const char *broken : {"", "host", "host 12", "host 12 job", "host 123456 job\n", "host x job\n"})
    EXPECT_EQ(parseHubAddress(broken).error().message, "it does not say where rank 0 is") << broken;
}

TEST(Threads, ShareCpusEvenlyNeighboursTogether) {
  std::vector<int> cpus = {0, 1, 4, 5, 6};
  EXPECT_THAT(shareOfCpus(cpus, 0, 2), ElementsAre(0, 1));
  EXPECT_THAT(shareOfCpus(cpus, 1, 2), ElementsAre(4, 5, 6));
  EXPECT_THAT(shareOfCpus(cpus, 4, 5), ElementsAre(6));
  EXPECT_THAT(shareOfCpus(cpus, 3, 8), ElementsAre(0, 1, 4, 5, 6)) << "more ranks than CPUs: all may use all";
}

} // namespace
} // namespace llmc::test
