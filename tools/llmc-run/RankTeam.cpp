// What happens once a run goes over the hub as text, what happens in every step over the network of the collectives.
#include "tools/llmc-run/RankTeam.h"

#include "backend/comm/Communicator.h"
#include "runtime/RankProcess.h"
#include "tools/Threads.h"

#include <algorithm>
#include <fmt/format.h>

namespace llmc {

Result<std::unique_ptr<RankTeam>> RankTeam::join(Options options, int threads) {
  std::unique_ptr<RankTeam> team(new RankTeam());
  bool *speaks = options.speaks;
  std::chrono::milliseconds timeout = options.timeout;
  auto abandon = std::move(options.abandon);
  Result<std::unique_ptr<Rendezvous>> joined =
      Rendezvous::join({std::move(options.place), std::move(options.meeting), std::move(options.listener),
                        std::move(options.version), options.timeout, options.signal, options.speaks});
  LLMC_RETURN_IF_ERROR(joined);
  team->ranks = std::move(*joined);
  if (Status status = team->connect(threads); !status) {
    team->fail(status.error());
    *speaks = team->isSpeaker();
    return status.error();
  }
  team->guard = std::make_unique<EndGuard>(
      *team->ranks, timeout, [abandon = std::move(abandon), rank = team->rank()](const RankFailure &failure) {
        abandon(failure.speaker == rank ? failure.message : "");
      });
  return team;
}

Status RankTeam::connect(int threads) {
  // Before the network and its threads, which stay on the same CPUs.
  LLMC_RETURN_IF_ERROR(shareCpus(threads));
  Result<std::unique_ptr<CommApi>> connected = makeCommunicator(*ranks);
  LLMC_RETURN_IF_ERROR(connected);
  network = std::move(*connected);
  return {};
}

/// mpirun and srun often give each rank CPUs of its own; others give all ranks of a machine the same ones.
Status RankTeam::shareCpus(int wantedThreads) {
  std::vector<int> cpus = allowedCpus();
  std::string mine = fmt::format("{} {}", machineId(), fmt::join(cpus, ","));
  Result<std::vector<std::string>> all = ranks->exchange(mine, "dividing the CPUs");
  LLMC_RETURN_IF_ERROR(all);
  int sharers = static_cast<int>(std::ranges::count(*all, mine));
  int before = static_cast<int>(std::count(all->begin(), all->begin() + ranks->rank(), mine));
  numThreads = wantedThreads > 0 ? wantedThreads : defaultThreads(sharers);
  std::vector<int> share = shareOfCpus(cpus, before, sharers);
  return share.size() < cpus.size() && numThreads <= static_cast<int>(share.size()) ? useOnlyCpus(share) : Status();
}

std::string RankTeam::describe() const {
  return fmt::format("{} ranks ({}), {}", worldSize(), ranks->place().launcher, network->describe());
}

std::string packFacts(const std::vector<RunFact> &facts) {
  Packer packer;
  packer.put(static_cast<int64_t>(facts.size()));
  for (const RunFact &fact : facts)
    packer.put(fact.name).put(fact.value);
  return packer.bytes();
}

static std::vector<RunFact> unpackFacts(const std::string &packed) {
  Unpacker unpacker(packed);
  std::vector<RunFact> facts;
  for (int64_t left = unpacker.number(); left > 0 && unpacker.isGood(); --left) {
    std::string name = unpacker.text();
    facts.push_back({std::move(name), unpacker.text()});
  }
  return facts;
}

Status compareFacts(const std::vector<std::string> &all) {
  std::vector<RunFact> first = unpackFacts(all.front());
  for (size_t rank = 1; rank < all.size(); ++rank) {
    std::vector<RunFact> other = unpackFacts(all[rank]);
    for (size_t i = 0; i < std::min(first.size(), other.size()); ++i)
      if (other[i] != first[i])
        return Error{fmt::format("rank {} has {} {}, rank 0 has {} {}", rank, other[i].name, other[i].value,
                                 first[i].name, first[i].value)};
    if (other.size() != first.size())
      return Error{fmt::format("rank {} has {} flags to compare, rank 0 has {}", rank, other.size(), first.size())};
  }
  return {};
}

Status RankTeam::requireSame(const std::vector<RunFact> &facts) {
  Result<std::vector<std::string>> all = ranks->exchange(packFacts(facts), "comparing flags");
  return all ? compareFacts(*all) : all.status();
}

Result<std::vector<StepNote>> RankTeam::exchange(const StepNote &mine) {
  std::vector<StepNote> all(static_cast<size_t>(worldSize()));
  LLMC_RETURN_IF_ERROR(comm().allGather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(all)),
                                        "notes of the step"));
  return all;
}

Status requireSameWeights(const std::vector<StepNote> &notes) {
  std::vector<int> others;
  for (size_t rank = 1; rank < notes.size(); ++rank)
    if (notes[rank].weightsHash != notes.front().weightsHash)
      others.push_back(static_cast<int>(rank));
  return others.empty() ? Status() : Status(Error{nameRanks(others) + ": other weights than rank 0"});
}

void RankTimeTable::add(const std::vector<StepNote> &notes) {
  firstMs.resize(notes.size());
  restMs.resize(notes.size());
  for (size_t rank = 0; rank < notes.size(); ++rank)
    (steps == 0 ? firstMs : restMs)[rank] += notes[rank].busyMs;
  ++steps;
}

std::string RankTimeTable::table() const {
  if (steps == 0)
    return "";
  const std::vector<double> &sums = steps == 1 ? firstMs : restMs;
  double count = static_cast<double>(std::max<int64_t>(1, steps - 1));
  auto slowest = std::ranges::max_element(sums);
  std::string text = "busy ms a step, by rank:\n";
  for (auto sum = sums.begin(); sum != sums.end(); ++sum)
    text +=
        fmt::format("  rank {:<4}{:10.1f}{}\n", sum - sums.begin(), *sum / count, sum == slowest ? "  slowest" : "");
  return text;
}

Status RankTeam::finish() { return comm().allGather({}, {}, "end of the run"); }

void RankTeam::fail(const Error &error) {
  speaks = ranks->fail(error.message).speaker == rank();
  network.reset();
}

} // namespace llmc
