// Ranks other than the first print nothing: their output goes to /dev/null, their errors to whoever speaks for all.
#include "tools/llmc-run/RunRanks.h"

#include "runtime/Launcher.h"
#include "tools/llmc-run/RankTeam.h"
#include "tools/llmc-run/StopSignals.h"

#include <charconv>
#include <fmt/format.h>

namespace llmc {

std::optional<std::chrono::milliseconds> parseDuration(const std::string &text) {
  int64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  std::string unit(end, text.data() + text.size());
  int64_t ms = unit == "ms" ? 1 : unit == "s" || unit.empty() ? 1000 : unit == "m" ? 60000 : 0;
  if (error != std::errc() || value <= 0 || value > 1'000'000 || ms == 0)
    return std::nullopt;
  return std::chrono::milliseconds(value * ms);
}

/// Starts the ranks of this machine; `team` is then what this process needs to join the others.
static Result<Launched> startRanks(const RankFlags &flags, RankTeam::Options &team) {
  LaunchOptions wanted{flags.nproc, flags.timeout};
  if (!flags.rendezvous.empty()) {
    Result<MeetingPlace> place = parseMeetingPlace(flags.rendezvous);
    LLMC_RETURN_IF_ERROR(place);
    if (place->kind != MeetingPlace::Kind::address)
      return Error{"--rendezvous file: is for ranks that something else starts; with --nproc they know each other"};
    wanted.host = place->host;
    wanted.port = place->port;
  }
  Result<Launched> launched = launch(wanted);
  LLMC_RETURN_IF_ERROR(launched);
  if (launched->rank) {
    team.place = launched->rank->place;
    team.meeting = {MeetingPlace::Kind::address, wanted.host, launched->rank->port, ""};
    team.listener = std::move(launched->rank->listener);
  }
  return launched;
}

static RunEnd failedWith(const std::string &message) { return {1, {message}}; }

/// One rank of several.
static RunEnd runRank(RankTeam::Options joining, const RunOptions &options, RunSurroundings around) {
  int rank = joining.place.rank;
  std::string who = rank == 0 ? "" : fmt::format("rank {}: ", rank);
  std::unique_ptr<std::FILE, int (*)(std::FILE *)> nowhere(nullptr, &std::fclose);
  if (rank != 0) {
    nowhere.reset(std::fopen("/dev/null", "we"));
    if (!nowhere)
      return failedWith(who + "/dev/null cannot be opened");
    around.out = nowhere.get();
    around.isTerminal = false;
  }
  bool speaks = true;
  joining.speaks = &speaks;
  joining.abandon = [&](const std::string &message) { around.abandon(message.empty() ? "" : who + message); };
  Result<std::unique_ptr<RankTeam>> team = RankTeam::join(std::move(joining), options.threads);
  if (!team && around.signal->load() != 0)
    return {128 + around.signal->load(), {}};
  if (!team)
    return speaks ? failedWith(who + team.error().message) : RunEnd{1, {}};
  around.team = team->get();
  Result<int> done = runPlan(options, around);
  if (done)
    return {*done != 0 ? 128 + *done : 0, {}};
  return (*team)->isSpeaker() ? failedWith(who + done.error().message) : RunEnd{1, {}};
}

RunEnd runRanks(const RankFlags &flags, const RunOptions &options, RunSurroundings around) {
  Environment environment = processEnvironment();
  RankTeam::Options joining;
  joining.version = around.version;
  joining.timeout = flags.timeout;
  Result<RankPlace> place = readRankEnvironment(environment);
  if (!place)
    return failedWith(place.error().message);
  if (place->worldSize > 1) {
    Result<MeetingPlace> meeting = chooseMeetingPlace(flags.rendezvous, *place, environment);
    if (!meeting)
      return failedWith(meeting.error().message);
    joining.place = *place;
    joining.meeting = *meeting;
  } else if (flags.nproc > 1) {
    Result<Launched> launched = startRanks(flags, joining);
    if (!launched)
      return failedWith(launched.error().message);
    if (!launched->rank)
      return {launched->end.exitStatus, launched->end.messages};
  }
  StopSignals stop;
  around.signal = &stop.asked();
  joining.signal = around.signal;
  if (joining.place.worldSize > 1)
    return runRank(std::move(joining), options, around);
  Result<int> done = runPlan(options, around);
  return done ? RunEnd{*done != 0 ? 128 + *done : 0, {}} : failedWith(done.error().message);
}

} // namespace llmc
