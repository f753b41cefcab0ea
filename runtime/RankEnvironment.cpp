// One table row a launcher; two launchers that both speak must say the same.
#include "runtime/RankEnvironment.h"

#include <charconv>
#include <cstdlib>
#include <fmt/format.h>

namespace llmc {

namespace {

struct LauncherNames {
  const char *launcher, *rank, *worldSize, *localRank, *localSize;
  std::initializer_list<const char *> job; ///< all that are set make the job's name
};

const LauncherNames kLaunchers[] = {
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"mpirun",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     {"PMIX_NAMESPACE"}},
    {"srun",
     "SLURM_PROCID",
     "SLURM_NTASKS",
     "SLURM_LOCALID",
     "SLURM_NTASKS_PER_NODE",
     {"SLURM_JOB_ID", "SLURM_STEP_ID"}},
};

Result<int> parseCount(const char *name, const std::string &text) {
  int value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    return Error{fmt::format("{}={}: expected a whole number, 0 or more", name, text)};
  return value;
}

Result<std::optional<RankPlace>> readLauncher(const LauncherNames &names, const Environment &environment) {
  RankPlace place;
  place.launcher = names.launcher;
  auto read = [&](const char *name, int &value) -> Result<bool> {
    std::optional<std::string> text = environment(name);
    if (!text)
      return false;
    Result<int> number = parseCount(name, *text);
    LLMC_RETURN_IF_ERROR(number);
    value = *number;
    return true;
  };
  Result<bool> hasRank = read(names.rank, place.rank);
  LLMC_RETURN_IF_ERROR(hasRank);
  if (!*hasRank)
    return std::optional<RankPlace>();
  Result<bool> hasSize = read(names.worldSize, place.worldSize);
  LLMC_RETURN_IF_ERROR(hasSize);
  if (!*hasSize)
    return Error{fmt::format("{} is set and {} is not", names.rank, names.worldSize)};
  if (place.rank >= place.worldSize)
    return Error{fmt::format("{}={} is no rank of {}={}", names.rank, place.rank, names.worldSize, place.worldSize)};
  LLMC_RETURN_IF_ERROR(read(names.localRank, place.localRank));
  LLMC_RETURN_IF_ERROR(read(names.localSize, place.localSize));
  if (place.localRank >= place.localSize)
    place.localSize = place.localRank + 1; // srun does not always say how many
  for (const char *name : names.job)
    if (std::optional<std::string> part = environment(name))
      place.job += (place.job.empty() ? "" : "-") + *part;
  return std::optional(place);
}

} // namespace

Environment processEnvironment() {
  return [](const char *name) -> std::optional<std::string> {
    const char *value = std::getenv(name);
    return value ? std::optional<std::string>(value) : std::nullopt;
  };
}

Result<RankPlace> readRankEnvironment(const Environment &environment) {
  std::optional<RankPlace> found;
  for (const LauncherNames &names : kLaunchers) {
    Result<std::optional<RankPlace>> place = readLauncher(names, environment);
    LLMC_RETURN_IF_ERROR(place);
    if (!*place)
      continue;
    if (!found)
      found = *place;
    // A job of one task under srun often starts another launcher, which then speaks for itself.
    else if ((*place)->worldSize > 1 && ((*place)->rank != found->rank || (*place)->worldSize != found->worldSize))
      return Error{fmt::format("the environment of {} says rank {} of {}, that of {} rank {} of {}", found->launcher,
                               found->rank, found->worldSize, (*place)->launcher, (*place)->rank, (*place)->worldSize)};
  }
  return found.value_or(RankPlace());
}

} // namespace llmc
