// One thread and poll(): it never waits for one peer, so that a stopped rank cannot hold up the others.
#include "runtime/RankHub.h"

#include "runtime/RankProcess.h"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace llmc {

constexpr std::chrono::milliseconds kDrain{500}, kLateComers{2000};

std::string nameRanks(const std::vector<int> &ranks) {
  return fmt::format("{} {}", ranks.size() == 1 ? "rank" : "ranks", fmt::join(ranks, ", "));
}

std::string packFailure(const RankFailure &failure) {
  Packer packer;
  packer.put(static_cast<int64_t>(failure.kind)).put(failure.speaker).put(failure.message);
  packer.put(static_cast<int64_t>(failure.ranks.size()));
  for (int rank : failure.ranks)
    packer.put(rank);
  return packer.bytes();
}

std::optional<RankFailure> unpackFailure(std::string_view bytes) {
  Unpacker unpacker(bytes);
  RankFailure failure;
  failure.kind = static_cast<RankFailure::Kind>(unpacker.number());
  failure.speaker = static_cast<int>(unpacker.number());
  failure.message = unpacker.text();
  for (int64_t left = unpacker.number(); left > 0 && unpacker.isGood(); --left)
    failure.ranks.push_back(static_cast<int>(unpacker.number()));
  return unpacker.isGood() ? std::optional(std::move(failure)) : std::nullopt;
}

RankHub::RankHub(Fd listener, HubOptions options)
    : listener(std::move(listener)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), options(std::move(options)),
      times(this->options.timeout), start(Clock::now()), lastTick(start), lastBeat(start) {
  thread = std::thread([this] { serve(); });
}

RankHub::~RankHub() {
  isStopped = true;
  uint64_t one = 1;
  (void)!::write(wake.get(), &one, sizeof(one));
  thread.join();
}

RankHub::Peer *RankHub::find(int rank) {
  auto found = std::ranges::find_if(peers, [&](const auto &peer) { return peer->rank == rank; });
  return found == peers.end() ? nullptr : found->get();
}

size_t RankHub::numRanks() const {
  return static_cast<size_t>(std::ranges::count_if(peers, [](const auto &peer) { return peer->rank >= 0; }));
}

void RankHub::send(Peer &peer, HubMessage kind, const std::string &payload) {
  // A peer that cannot be reached is found by its closed connection or its silence.
  if (peer.socket)
    (void)sendFrame(peer.socket, static_cast<uint8_t>(kind), payload).ok();
}

void RankHub::sendAll(HubMessage kind, const std::string &payload) {
  for (auto &peer : peers)
    if (peer->rank >= 0)
      send(*peer, kind, payload);
}

void RankHub::fail(RankFailure cause) {
  if (failure)
    return;
  failure = std::move(cause);
  sendAll(HubMessage::abort, packFailure(*failure));
}

void RankHub::lose(const std::vector<int> &ranks, const std::string &how) {
  fail({RankFailure::Kind::lost, ranks, 0, nameRanks(ranks) + " " + how});
}

void RankHub::handleHello(Peer &peer, const Frame &frame) {
  Unpacker unpacker(frame.payload);
  int64_t magic = unpacker.number(), worldSize = unpacker.number(), rank = unpacker.number();
  std::string job = unpacker.text(), version = unpacker.text(), process = unpacker.text();
  if (!unpacker.isGood() || magic != kHubMagic) {
    peer.socket = Fd();
    return;
  }
  if (job != options.job || isComplete) {
    send(peer, HubMessage::refused, job != options.job ? "another run meets there" : "the run there has all its ranks");
    peer.socket = Fd();
    return;
  }
  ++numSeen;
  if (failure) {
    send(peer, HubMessage::abort, packFailure(*failure));
    return;
  }
  if (worldSize != options.worldSize || rank < 0 || rank >= worldSize || find(static_cast<int>(rank))) {
    peer.rank = options.worldSize; // so that it hears why, and counts as nobody
    fail({RankFailure::Kind::unequal,
          {static_cast<int>(rank)},
          0,
          worldSize != options.worldSize
              ? fmt::format("rank {} was told that there are {} ranks, rank 0 that there are {}", rank, worldSize,
                            options.worldSize)
              : fmt::format("two processes say that they are rank {}", rank)});
    return;
  }
  peer.rank = static_cast<int>(rank);
  peer.process = std::move(process);
  if (version != options.version)
    return fail({RankFailure::Kind::unequal,
                 {peer.rank},
                 0,
                 fmt::format("rank {} runs version {}, rank 0 version {}", rank, version, options.version)});
  send(peer, HubMessage::here, describeProcess());
  if (static_cast<int>(numRanks()) == options.worldSize) {
    isComplete = true;
    std::ranges::sort(peers, {}, [](const auto &one) { return one->rank < 0 ? INT32_MAX : one->rank; });
    Packer processes;
    for (auto &one : peers)
      if (one->rank >= 0)
        processes.put(one->process);
    sendAll(HubMessage::welcome, processes.bytes());
  }
}

void RankHub::shareIfComplete() {
  if (!isComplete || failure ||
      !std::ranges::all_of(peers, [](const auto &peer) { return peer->rank < 0 || peer->share.has_value(); }))
    return;
  Packer all;
  for (auto &peer : peers)
    if (peer->rank >= 0) {
      all.put(*peer->share);
      peer->share.reset();
    }
  sendAll(HubMessage::shared, all.bytes());
}

void RankHub::handle(Peer &peer, const Frame &frame) {
  peer.heard = Clock::now();
  switch (static_cast<HubMessage>(frame.kind)) {
  case HubMessage::hello:
    return handleHello(peer, frame);
  case HubMessage::share:
    peer.share = frame.payload;
    return shareIfComplete();
  case HubMessage::abort:
    if (std::optional<RankFailure> told = unpackFailure(frame.payload))
      fail(std::move(*told));
    return;
  case HubMessage::bye:
    peer.hasLeft = true;
    return;
  default:
    return;
  }
}

void RankHub::listenTo(Peer &peer) {
  std::vector<Frame> frames;
  Status status = peer.reader.read(peer.socket, frames);
  for (const Frame &frame : frames)
    if (peer.socket)
      handle(peer, frame);
  if (status || !peer.socket)
    return;
  peer.socket = Fd();
  if (peer.rank >= 0 && peer.rank < options.worldSize && !peer.hasLeft)
    lose({peer.rank}, "is gone: " + status.error().message);
}

/// What time alone brings: heartbeats, ranks that did not come or fell silent.
void RankHub::tick(Clock::time_point now) {
  // Stopped and continued as a whole (a debugger, Ctrl-Z): the ranks were not silent, nobody listened.
  if (now - lastTick > times.silence / 2)
    for (auto &peer : peers)
      peer->heard += now - lastTick;
  lastTick = now;
  if (now - lastBeat >= times.beat) {
    lastBeat = now;
    sendAll(HubMessage::beat, "");
  }
  if (failure)
    return;
  std::vector<int> missing;
  for (int rank = 0; rank < options.worldSize; ++rank) {
    Peer *peer = find(rank);
    if (isComplete ? peer && !peer->hasLeft && now - peer->heard > times.silence : !peer)
      missing.push_back(rank);
  }
  if (missing.empty())
    return;
  auto seconds = [](RankTimes::Milliseconds time) { return static_cast<double>(time.count()) / 1e3; };
  if (isComplete)
    lose(missing, fmt::format("gave no sign of life for {:g} s", seconds(times.silence)));
  else if (now - start > times.arrival)
    lose(missing, fmt::format("did not arrive in {:g} s; {} of {} ranks did", seconds(times.arrival), numRanks(),
                              options.worldSize));
}

void RankHub::serveOnce(std::chrono::milliseconds most) {
  std::vector<pollfd> entries = {{wake.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
  for (auto &peer : peers)
    entries.push_back({peer->socket.get(), POLLIN, 0}); // poll() skips -1
  ::poll(entries.data(), entries.size(), static_cast<int>(most.count()));
  size_t known = peers.size();
  for (size_t i = 0; i < known; ++i)
    if (entries[i + 2].revents)
      listenTo(*peers[i]);
  if (entries[1].revents)
    while (Fd socket = acceptFrom(listener)) {
      peers.push_back(std::make_unique<Peer>());
      peers.back()->socket = std::move(socket);
      peers.back()->heard = Clock::now();
    }
  std::erase_if(peers, [](const auto &peer) { return peer->rank < 0 && !peer->socket; });
  tick(Clock::now());
}

void RankHub::serve() {
  while (!isStopped)
    serveOnce(times.beat);
  uint64_t count = 0;
  (void)!::read(wake.get(), &count, sizeof(count));
  // Ranks still on their way to a run that failed before they came shall hear why.
  Clock::time_point end = start + std::min<Clock::duration>(kLateComers, times.arrival);
  while (failure && !isComplete && Clock::now() < end && numSeen < options.worldSize)
    serveOnce(std::chrono::milliseconds(20));
  drain();
}

/// Closing with bytes unread would reset the connection and take the last message from the peer: wait for its end.
void RankHub::drain() {
  sendAll(HubMessage::bye, "");
  for (auto &peer : peers)
    if (peer->socket)
      ::shutdown(peer->socket.get(), SHUT_WR);
  Clock::time_point end = Clock::now() + kDrain;
  std::vector<pollfd> entries;
  while (Clock::now() < end) {
    entries.clear();
    for (auto &peer : peers)
      if (peer->socket)
        entries.push_back({peer->socket.get(), POLLIN, 0});
    if (entries.empty())
      return;
    ::poll(entries.data(), entries.size(), 20);
    for (auto &peer : peers) {
      std::vector<Frame> ignored;
      if (peer->socket && !peer->reader.read(peer->socket, ignored))
        peer->socket = Fd();
    }
  }
}

} // namespace llmc
