// The meeting point of a run's ranks: a thread in rank 0's process that all ranks (rank 0 too) are connected to from
// start to end. It lets a run begin when all have come, hands small texts round, hears each rank's heartbeat, and tells
// everybody the first cause when one of them fails, is gone or falls silent. Data goes elsewhere (backend/comm).
#pragma once

#include "runtime/Socket.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

namespace llmc {

/// Why a run ends, the same on all ranks.
struct RankFailure {
  /// said: a rank told its own error. lost: ranks are gone, silent or never came. unequal: ranks disagree.
  enum class Kind : uint8_t { said, lost, unequal };
  Kind kind = Kind::said;
  std::vector<int> ranks; ///< whose fault it is
  int speaker = 0;        ///< the rank that prints it: one that can
  std::string message;    ///< names the ranks
};

/// "rank 3" or "ranks 1, 3"
std::string nameRanks(const std::vector<int> &ranks);

/// What the ranks and the hub say to each other; payloads by Packer.
enum class HubMessage : uint8_t {
  hello = 1,   ///< to the hub: kHubMagic, world size, rank, job, version, process (RankProcess.h)
  refused = 2, ///< to one process that is no rank of this run: text
  welcome = 3, ///< to all: every rank has come; the process of rank 0, of rank 1, ...
  beat = 4,    ///< both ways, every so often: I live
  share = 5,   ///< to the hub: text
  shared = 6,  ///< to all, when every rank has shared: text of rank 0, of rank 1, ...
  abort = 7,   ///< both ways: a RankFailure
  bye = 8,     ///< both ways: I leave because all is done
  here = 9,    ///< to one that said hello: the process of rank 0
};
inline constexpr int64_t kHubMagic = 0x324275486D4C4C; // "LLmHuB2"; another protocol, another number

std::string packFailure(const RankFailure &failure);
std::optional<RankFailure> unpackFailure(std::string_view bytes);

/// How long things may take, all from the one number that the user gives: silence, two beats until it is noticed and
/// told, and the grace come to less than that.
struct RankTimes {
  using Milliseconds = std::chrono::milliseconds;
  explicit RankTimes(Milliseconds timeout)
      : arrival(timeout * 17 / 20), beat(std::clamp(timeout / 20, Milliseconds(20), Milliseconds(1000))),
        grace(std::max(timeout / 10, std::min(timeout / 5, Milliseconds(1000)))), silence(timeout - grace - 3 * beat) {}
  Milliseconds arrival; ///< for all to come
  Milliseconds beat;    ///< between two heartbeats
  Milliseconds grace;   ///< for a rank to end, once it has heard that the run has failed
  Milliseconds silence; ///< without a heartbeat
};

struct HubOptions {
  int worldSize = 1;
  std::string job;     ///< a process of another job is refused
  std::string version; ///< all must have rank 0's
  std::chrono::milliseconds timeout{30000};
};

class RankHub {
public:
  /// Starts at once on a socket that listens.
  RankHub(Fd listener, HubOptions options);
  /// Says goodbye to the ranks still there and frees the port.
  ~RankHub();
  RankHub(const RankHub &) = delete;
  RankHub &operator=(const RankHub &) = delete;

private:
  using Clock = std::chrono::steady_clock;
  struct Peer {
    Fd socket;
    FrameReader reader;
    int rank = -1; ///< -1 before its hello
    std::string process;
    bool hasLeft = false;
    Clock::time_point heard;
    std::optional<std::string> share;
  };
  void serve();
  void serveOnce(std::chrono::milliseconds most);
  void listenTo(Peer &peer);
  void handle(Peer &peer, const Frame &frame);
  void handleHello(Peer &peer, const Frame &frame);
  void lose(const std::vector<int> &ranks, const std::string &how);
  void fail(RankFailure cause);
  void sendAll(HubMessage kind, const std::string &payload);
  void send(Peer &peer, HubMessage kind, const std::string &payload);
  void shareIfComplete();
  void tick(Clock::time_point now);
  void drain();
  Peer *find(int rank);
  size_t numRanks() const;

  Fd listener, wake;
  HubOptions options;
  RankTimes times;
  std::vector<std::unique_ptr<Peer>> peers;
  bool isComplete = false;
  int numSeen = 0;                    ///< ranks that said hello
  std::optional<RankFailure> failure; ///< the first
  Clock::time_point start, lastTick, lastBeat;
  std::atomic<bool> isStopped{false};
  std::thread thread; ///< last: starts when everything else is ready
};

} // namespace llmc
