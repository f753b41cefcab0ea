// Which rank this process is, by what a launcher put into its environment: torchrun, mpirun (Open MPI) or srun.
#pragma once

#include "runtime/Status.h"

#include <functional>
#include <optional>
#include <string>

namespace llmc {

/// A process among those of a run.
struct RankPlace {
  int rank = 0, worldSize = 1;
  int localRank = 0, localSize = 1; ///< among those of this machine
  std::string launcher;             ///< "torchrun", "mpirun", "srun", kOwnLauncher; empty: none
  std::string job;                  ///< the same for all ranks of a run and no other run; empty where not known
};

/// The launcher of --nproc.
inline constexpr const char *kOwnLauncher = "llmc-run";

/// Looks up an environment variable.
using Environment = std::function<std::optional<std::string>(const char *name)>;

/// The process's own environment.
Environment processEnvironment();

/// Reads RANK and WORLD_SIZE first, then OMPI_COMM_WORLD_*, then SLURM_* (a batch job has SLURM_NTASKS too, but only
/// what srun starts has SLURM_PROCID). Nothing set: one rank. Fails where they are no numbers, out of range, incomplete
/// or contradict each other.
Result<RankPlace> readRankEnvironment(const Environment &environment);

} // namespace llmc
