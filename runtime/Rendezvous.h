// One rank's membership in a run: it meets the others at rank 0's hub, shares small texts with them, and learns at once
// when the run cannot go on. How the ranks find the hub: a port that the launcher opened, the store of torchrun's
// agent, MASTER_ADDR and MASTER_PORT, or a file.
#pragma once

#include "runtime/MeetingPlace.h"
#include "runtime/RankHub.h"

#include <condition_variable>
#include <functional>
#include <mutex>

namespace llmc {

struct RendezvousOptions {
  RankPlace place;
  MeetingPlace meeting;
  Fd listener; ///< rank 0: already listens at the meeting place; else join() opens it
  std::string version;
  std::chrono::milliseconds timeout{30000};
  const std::atomic<int> *signal = nullptr; ///< join() gives up once it is not 0
  bool *speaks = nullptr;                   ///< set to false by a join() that fails where another rank says why
};

class Rendezvous {
public:
  /// Returns when all ranks have come. Errors: who is missing, who disagrees about the run, whose port it is.
  static Result<std::unique_ptr<Rendezvous>> join(RendezvousOptions options);
  /// Leaves: the others take it for done, unless fail() was called before.
  ~Rendezvous();
  Rendezvous(const Rendezvous &) = delete;
  Rendezvous &operator=(const Rendezvous &) = delete;

  int rank() const { return options.place.rank; }
  int worldSize() const { return options.place.worldSize; }
  const RankPlace &place() const { return options.place; }
  /// What a rank may wait for another that lives: a bound for what should never happen.
  std::chrono::milliseconds patience() const { return options.timeout * 20; }
  /// Between two signs of life.
  std::chrono::milliseconds beat() const { return times.beat; }
  /// The address under which the other ranks see this one.
  std::string address() const { return localAddress(socket); }

  /// Every rank's text, in rank order; `what` names the exchange in errors. All ranks must call it.
  Result<std::vector<std::string>> exchange(std::string_view mine, const char *what);
  /// The first cause why the run ends, once there is one. Any thread.
  std::optional<RankFailure> failure() const;
  /// Waits a moment for a first cause that is on its way.
  std::optional<RankFailure> awaitFailure(std::chrono::milliseconds most) const;
  /// Tells all ranks that this one ends with an error, unless the run has failed already; returns the first cause.
  RankFailure fail(const std::string &message);
  /// Called once, on a background thread, when the run fails; at once where it has. Empty: none, and none is running
  /// any more.
  void onFailure(std::function<void()> call);

private:
  explicit Rendezvous(RendezvousOptions given) : options(std::move(given)), times(options.timeout) {}
  Status openHub();
  Status meet();
  Status sayHello();
  Status waitForWelcome();
  bool isAskedToStop() const { return options.signal && options.signal->load() != 0; }
  void serve();
  void endStopped();
  bool handle(const Frame &frame);
  void setFailure(const RankFailure &failure);
  Status statusOfFailure() const;

  RendezvousOptions options;
  RankTimes times;
  std::unique_ptr<RankHub> hub; ///< of rank 0
  std::string writtenFile;      ///< of rank 0: removed at the end
  Fd socket, wake;
  FrameReader reader;
  std::mutex sendMutex, alarmMutex; ///< alarmMutex: held while the alarm runs; before mutex
  mutable std::mutex mutex;
  mutable std::condition_variable changed;
  bool isWelcome = false, isStopped = false;
  std::optional<RankFailure> cause;
  std::optional<std::string> refusal;
  std::optional<std::string> sharedTexts;
  std::function<void()> alarm;
  std::vector<std::string> processes; ///< of rank 0, of the others once all have come; of serve()
  std::thread thread;                 ///< of serve()
};

} // namespace llmc
