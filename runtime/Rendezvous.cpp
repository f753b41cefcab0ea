// The main thread sends and waits; one background thread receives, beats, and watches the hub.
#include "runtime/Rendezvous.h"

#include "runtime/MeetingFile.h"
#include "runtime/RankProcess.h"
#include "runtime/TorchStore.h"

#include <algorithm>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

namespace llmc {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kRetry{50};
static const Error kAsked{"asked to stop"};

Result<std::unique_ptr<Rendezvous>> Rendezvous::join(RendezvousOptions options) {
  std::unique_ptr<Rendezvous> made(new Rendezvous(std::move(options)));
  Status status = made->rank() == 0 ? made->openHub() : Status();
  if (status)
    status = made->meet();
  if (status)
    return made;
  if (std::optional<RankFailure> cause = made->failure(); cause && made->options.speaks)
    *made->options.speaks = cause->speaker == made->rank();
  return inContext("rendezvous at " + made->options.meeting.describe(), status.error());
}

/// Rank 0: listens, and tells the others where, if they cannot know.
Status Rendezvous::openHub() {
  MeetingPlace &meeting = options.meeting;
  if (!options.listener) {
    bool isAddress = meeting.kind == MeetingPlace::Kind::address;
    Result<Fd> opened = listenAt(isAddress ? meeting.host : "", isAddress ? meeting.port : 0);
    LLMC_RETURN_IF_ERROR(opened);
    options.listener = std::move(*opened);
  }
  uint16_t port = localPort(options.listener);
  std::string host = localAddress(options.listener);
  if (host == "0.0.0.0" || host == "::") // all addresses, so this one too
    host = "localhost";
  hub = std::make_unique<RankHub>(std::move(options.listener),
                                  HubOptions{worldSize(), options.place.job, options.version, options.timeout});
  HubAddress here{ownAddress(), port, options.place.job};
  if (meeting.kind == MeetingPlace::Kind::file) {
    LLMC_RETURN_IF_ERROR(writeMeetingFile(meeting.path, here));
    writtenFile = meeting.path;
  } else if (meeting.kind == MeetingPlace::Kind::torchStore) {
    LLMC_RETURN_IF_ERROR(publishInTorchStore(meeting.host, meeting.port, here, Clock::now() + times.arrival));
  }
  meeting = {MeetingPlace::Kind::address, host, port, ""};
  return {};
}

/// Where the hub is, by file or store; an address is known already.
static Result<MeetingPlace> findHub(const RendezvousOptions &options, Deadline deadline) {
  if (options.meeting.kind == MeetingPlace::Kind::address)
    return options.meeting;
  Result<HubAddress> found =
      options.meeting.kind == MeetingPlace::Kind::file
          ? readMeetingFile(options.meeting.path, options.place.job)
          : findInTorchStore(options.meeting.host, options.meeting.port, options.place.job, deadline);
  LLMC_RETURN_IF_ERROR(found);
  return MeetingPlace{MeetingPlace::Kind::address, found->host, found->port, ""};
}

/// Connects, as often as it takes, until the hub has taken this rank.
Status Rendezvous::meet() {
  Deadline deadline = Clock::now() + times.arrival;
  Error last{"no time to connect"};
  while (Clock::now() < deadline) {
    Result<MeetingPlace> place = findHub(options, deadline);
    Result<Fd> connected = place ? connectTo(place->host, place->port, deadline) : Result<Fd>(place.error());
    if (connected) {
      socket = std::move(*connected);
      reader = FrameReader();
      refusal.reset();
      LLMC_RETURN_IF_ERROR(sayHello());
      Status status = waitForWelcome();
      // A file may be left over from a run before: the new one comes in its place.
      if (!(refusal && options.meeting.kind == MeetingPlace::Kind::file))
        return status;
      last = status.error();
    } else {
      last = connected.error();
    }
    if (isAskedToStop())
      return kAsked;
    std::this_thread::sleep_for(kRetry);
  }
  return Error{fmt::format("rank {} could not reach rank 0 in {:g} s: {}", rank(),
                           static_cast<double>(times.arrival.count()) / 1e3, last.message)};
}

Status Rendezvous::sayHello() {
  Packer hello;
  hello.put(kHubMagic).put(worldSize()).put(rank()).put(options.place.job).put(options.version).put(describeProcess());
  if (Status status = sendFrame(socket, static_cast<uint8_t>(HubMessage::hello), hello.bytes()); !status)
    return inContext("rank 0", status.error());
  return {};
}

Status Rendezvous::waitForWelcome() {
  if (thread.joinable())
    thread.join();
  isStopped = false;
  wake = Fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  thread = std::thread([this] {
    serve();
    endStopped();
  });
  std::unique_lock lock(mutex);
  while (!changed.wait_for(lock, kRetry, [&] { return isWelcome || cause || refusal; }))
    if (isAskedToStop())
      return kAsked;
  if (isWelcome && !cause)
    return {};
  return refusal ? Status(Error{*refusal}) : Status(Error{cause->message});
}

Rendezvous::~Rendezvous() {
  if (thread.joinable()) {
    {
      std::lock_guard lock(sendMutex);
      if (isWelcome && !failure())
        (void)sendFrame(socket, static_cast<uint8_t>(HubMessage::bye), "").ok(); // whoever is gone needs no goodbye
      ::shutdown(socket.get(), SHUT_WR);
    }
    {
      std::lock_guard lock(mutex);
      isStopped = true;
    }
    uint64_t one = 1;
    (void)!::write(wake.get(), &one, sizeof(one));
    thread.join();
  }
  hub.reset();
  if (!writtenFile.empty())
    ::unlink(writtenFile.c_str());
}

void Rendezvous::setFailure(const RankFailure &failure) {
  {
    std::lock_guard lock(mutex);
    if (cause)
      return;
    cause = failure;
  }
  changed.notify_all();
  std::lock_guard lock(alarmMutex);
  if (alarm)
    std::exchange(alarm, nullptr)();
}

/// Those of this machine that are stopped, and so do not hear that the run has failed.
void Rendezvous::endStopped() {
  std::optional<RankFailure> lost = failure();
  if (!lost || lost->kind != RankFailure::Kind::lost || options.place.launcher == kOwnLauncher) // its parent does it
    return;
  // Rank 0's silence is every rank's own finding, to within a beat; had it ended before, it would be said to be gone.
  if (std::ranges::count(lost->ranks, 0) > 0)
    std::this_thread::sleep_for(times.beat * 3 / 2);
  for (int rank : lost->ranks)
    if (static_cast<size_t>(rank) < processes.size())
      endIfStopped(processes[static_cast<size_t>(rank)]);
}

/// False when nothing more will come.
bool Rendezvous::handle(const Frame &frame) {
  switch (static_cast<HubMessage>(frame.kind)) {
  case HubMessage::here:
    processes = {frame.payload};
    return true;
  case HubMessage::welcome: {
    std::lock_guard lock(mutex);
    isWelcome = true;
    Unpacker told(frame.payload);
    processes.clear();
    for (int other = 0; other < worldSize(); ++other)
      processes.push_back(told.text());
    break;
  }
  case HubMessage::shared: {
    std::lock_guard lock(mutex);
    sharedTexts = frame.payload;
    break;
  }
  case HubMessage::refused: {
    std::lock_guard lock(mutex);
    refusal = frame.payload;
    break;
  }
  case HubMessage::abort:
    setFailure(unpackFailure(frame.payload).value_or(RankFailure{RankFailure::Kind::said, {0}, rank(), "aborted"}));
    return false;
  case HubMessage::bye:
    return false;
  default:
    return true;
  }
  changed.notify_all();
  return true;
}

/// The background thread. Rank 0 lost is every rank's own finding; the lowest of the others says it.
void Rendezvous::serve() {
  int speaker = std::min(1, worldSize() - 1);
  Clock::time_point heard = Clock::now(), beaten = heard, woken = heard;
  for (;;) {
    pollfd entries[] = {{socket.get(), POLLIN, 0}, {wake.get(), POLLIN, 0}};
    ::poll(entries, 2, static_cast<int>(times.beat.count()));
    {
      std::lock_guard lock(mutex);
      if (isStopped)
        return;
    }
    Clock::time_point now = Clock::now();
    if (now - woken > times.silence / 2) // this process was stopped and continued
      heard += now - woken;
    woken = now;
    std::vector<Frame> frames;
    Status status = entries[0].revents ? reader.read(socket, frames) : Status();
    for (const Frame &frame : frames) {
      heard = now;
      if (!handle(frame))
        return;
    }
    if (std::lock_guard lock(mutex); refusal)
      return;
    if (!status)
      return setFailure({RankFailure::Kind::lost, {0}, speaker, "rank 0 is gone: " + status.error().message});
    if (now - heard > times.silence)
      return setFailure(
          {RankFailure::Kind::lost,
           {0},
           speaker,
           fmt::format("rank 0 gave no sign of life for {:g} s", static_cast<double>(times.silence.count()) / 1e3)});
    if (now - beaten >= times.beat) {
      beaten = now;
      std::lock_guard lock(sendMutex);
      (void)sendFrame(socket, static_cast<uint8_t>(HubMessage::beat), "").ok(); // a lost hub is found by reading
    }
  }
}

std::optional<RankFailure> Rendezvous::failure() const {
  std::lock_guard lock(mutex);
  return cause;
}

std::optional<RankFailure> Rendezvous::awaitFailure(std::chrono::milliseconds most) const {
  std::unique_lock lock(mutex);
  changed.wait_for(lock, most, [&] { return cause.has_value(); });
  return cause;
}

void Rendezvous::onFailure(std::function<void()> call) {
  std::lock_guard lock(alarmMutex);
  alarm = std::move(call);
  if (alarm && failure())
    std::exchange(alarm, nullptr)();
}

RankFailure Rendezvous::fail(const std::string &message) {
  if (std::optional<RankFailure> known = failure())
    return *known;
  RankFailure mine{RankFailure::Kind::said, {rank()}, 0, fmt::format("rank {}: {}", rank(), message)};
  {
    std::lock_guard lock(sendMutex);
    (void)sendFrame(socket, static_cast<uint8_t>(HubMessage::abort), packFailure(mine)).ok(); // else: it speaks itself
  }
  if (std::optional<RankFailure> first = awaitFailure(times.beat * 2))
    return *first;
  mine.speaker = rank();
  return mine;
}

Result<std::vector<std::string>> Rendezvous::exchange(std::string_view mine, const char *what) {
  {
    std::lock_guard lock(sendMutex);
    (void)sendFrame(socket, static_cast<uint8_t>(HubMessage::share), mine).ok(); // a lost hub is found by reading
  }
  std::unique_lock lock(mutex);
  changed.wait_for(lock, patience(), [&] { return cause || sharedTexts; });
  if (!sharedTexts)
    return Error{fmt::format("{}: {}", what, cause ? cause->message : "not all ranks took part")};
  std::string packed = *std::exchange(sharedTexts, std::nullopt);
  Unpacker unpacker(packed);
  std::vector<std::string> all(static_cast<size_t>(worldSize()));
  for (std::string &text : all)
    text = unpacker.text();
  if (!unpacker.isGood())
    return Error{fmt::format("{}: rank 0 speaks another protocol", what)};
  return all;
}

} // namespace llmc
