// The caller fills a slot of a ring and goes on; the thread empties it. What fails, fails for good: every later call
// returns the first error.
#include "backend/comm/Communicator.h"

#include "backend/comm/GlooTransport.h"
#include "backend/comm/ShmTransport.h"
#include "runtime/RankProcess.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <fmt/format.h>

namespace llmc {

namespace {

using Clock = std::chrono::steady_clock;

double toMs(Clock::duration time) { return std::chrono::duration<double, std::milli>(time).count(); }

const char *nameOf(CollectiveKind kind) {
  return kind == CollectiveKind::allReduce   ? "all_reduce"
         : kind == CollectiveKind::broadcast ? "broadcast"
                                             : "all_gather";
}

uint64_t hashOf(std::string_view text) { // FNV-1a
  uint64_t hash = 0xCBF29CE484222325;
  for (char letter : text)
    hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3;
  return hash;
}

std::string describeCall(const CollectiveCall &call) {
  std::string text = nameOf(call.kind);
  if (call.kind == CollectiveKind::broadcast)
    text += fmt::format(" from rank {}", call.root);
  text += fmt::format(" of {} bytes", call.bytes);
  return call.kind == CollectiveKind::allReduce ? text + fmt::format(" ({})", elementTypeName(call.type)) : text;
}

struct Work {
  CollectiveCall call;
  std::span<std::byte> buffer; ///< allGather: all
  std::span<const std::byte> mine;
  std::string label;
};

class Communicator : public CommApi {
public:
  Communicator(Rendezvous &ranks, std::unique_ptr<Transport> given) : ranks(ranks), transport(std::move(given)) {
    ranks.onFailure([this] { transport->interrupt(); });
    thread = std::thread([this] { serve(); });
  }

  ~Communicator() override {
    {
      std::lock_guard lock(mutex);
      isStopped = true;
    }
    changed.notify_all();
    transport->interrupt(); // nothing should be on its way, unless the run ends with an error
    thread.join();
    ranks.onFailure({});
  }

  int rank() const override { return ranks.rank(); }
  int worldSize() const override { return ranks.worldSize(); }
  std::string describe() const override { return transport->describe(); }

  Result<uint64_t> startAllReduce(std::span<std::byte> buffer, ElementType type, std::string_view label) override {
    assert(type == ElementType::f32 || type == ElementType::bf16);
    assert(buffer.size() % elementBytes(type) == 0);
    return issue({CollectiveKind::allReduce, type, 0, buffer.size(), hashOf(label)}, buffer, {}, label);
  }

  Status wait(uint64_t ticket) override {
    std::unique_lock lock(mutex);
    if (finished <= ticket && !error) {
      Clock::time_point begin = Clock::now();
      changed.wait(lock, [&] { return finished > ticket || error; });
      times.exposedMs += toMs(Clock::now() - begin);
    }
    return finished > ticket ? Status() : Status(*error);
  }

  Status broadcast(std::span<std::byte> buffer, int root, std::string_view label) override {
    assert(root >= 0 && root < worldSize());
    return finish(
        issue({CollectiveKind::broadcast, ElementType::u8, root, buffer.size(), hashOf(label)}, buffer, {}, label));
  }

  Status allGather(std::span<const std::byte> mine, std::span<std::byte> all, std::string_view label) override {
    assert(all.size() == mine.size() * static_cast<size_t>(worldSize()));
    return finish(issue({CollectiveKind::allGather, ElementType::u8, 0, mine.size(), hashOf(label)}, all, mine, label));
  }

  CommTimes takeTimes() override {
    std::lock_guard lock(mutex);
    CommTimes taken = std::exchange(times, CommTimes());
    taken.collectives = {spans.data(), std::exchange(numSpans, 0)};
    return taken;
  }

private:
  Status finish(const Result<uint64_t> &ticket) { return ticket ? wait(*ticket) : ticket.status(); }

  Result<uint64_t> issue(const CollectiveCall &call, std::span<std::byte> buffer, std::span<const std::byte> mine,
                         std::string_view label) {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return issued - finished < ring.size() || error; });
    if (error)
      return *error;
    Work &work = ring[issued % ring.size()];
    work.call = call;
    work.buffer = buffer;
    work.mine = mine;
    work.label.assign(label);
    changed.notify_all();
    return issued++;
  }

  void serve() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return isStopped || issued > finished; });
      if (isStopped)
        return;
      const Work &work = ring[finished % ring.size()];
      lock.unlock();
      CommSpan &span = spans[std::min(numSpans, spans.size() - 1)];
      span.start = span.met = Clock::now();
      Status status = run(work, span.met);
      span.end = Clock::now();
      lock.lock();
      times.busyMs += toMs(span.end - span.met);
      span.operation = nameOf(work.call.kind);
      span.label = work.label;
      span.bytes = work.call.bytes;
      numSpans = std::min(numSpans + 1, spans.size() - 1); // the last is for those that are too many
      if (!status) {
        error = inContext(fmt::format("{} {} '{}'", nameOf(work.call.kind), finished, work.label), status.error());
        changed.notify_all();
        return;
      }
      ++finished;
      changed.notify_all();
    }
  }

  Status run(const Work &work, Clock::time_point &met) {
    Result<std::span<const CollectiveCall>> calls = transport->meet(work.call);
    if (!calls)
      return firstCause(calls.error());
    for (int other = 0; other < worldSize(); ++other)
      if (const CollectiveCall &call = (*calls)[static_cast<size_t>(other)]; call != work.call)
        return Error{fmt::format("rank {} calls {}{}, rank {} {}", other, describeCall(call),
                                 call.labelHash == work.call.labelHash ? "" : " of another label", rank(),
                                 describeCall(work.call))};
    met = Clock::now();
    if (work.call.bytes == 0)
      return {};
    Status status = transfer(work);
    return status ? status : Status(firstCause(status.error()));
  }

  Status transfer(const Work &work) {
    switch (work.call.kind) {
    case CollectiveKind::allReduce:
      return transport->allReduce(work.buffer, work.call.type);
    case CollectiveKind::broadcast:
      return transport->broadcast(work.buffer, work.call.root);
    case CollectiveKind::allGather:
      return transport->allGather(work.mine, work.buffer);
    }
    return {};
  }

  /// A broken connection says less than the hub, which is about to say why.
  Error firstCause(const Error &own) {
    std::optional<RankFailure> cause = ranks.awaitFailure(ranks.beat() * 2);
    Error told{cause ? cause->message : own.message};
    std::vector<int> absent = transport->absent();
    if (cause) // of the others, some were on their way
      std::erase_if(absent, [&](int rank) { return std::ranges::count(cause->ranks, rank) == 0; });
    if (!absent.empty() && (!cause || cause->kind == RankFailure::Kind::lost))
      told.message += fmt::format("; {} had not arrived", nameRanks(absent));
    return told;
  }

  Rendezvous &ranks;
  std::unique_ptr<Transport> transport;
  std::array<Work, 256> ring;
  mutable std::mutex mutex;
  std::condition_variable changed;
  uint64_t issued = 0, finished = 0;
  bool isStopped = false;
  std::optional<Error> error;
  CommTimes times;
  std::vector<CommSpan> spans{4097}; ///< since the last takeTimes(), numSpans of them
  size_t numSpans = 0;
  std::thread thread; ///< last: starts when everything else is ready
};

/// All ranks come to the same answer.
Result<bool> areOfOneMachine(Rendezvous &ranks) {
  Result<std::vector<std::string>> machines = ranks.exchange(machineId(), "finding machines");
  LLMC_RETURN_IF_ERROR(machines);
  return std::ranges::all_of(*machines, [&](const std::string &one) { return one == machines->front(); });
}

} // namespace

Result<std::unique_ptr<CommApi>> makeCommunicator(Rendezvous &ranks, TransportChoice choice) {
  bool usesMemory = choice == TransportChoice::sharedMemory;
  if (choice == TransportChoice::automatic) {
    Result<bool> one = areOfOneMachine(ranks);
    LLMC_RETURN_IF_ERROR(one);
    usesMemory = *one;
  }
  Result<std::unique_ptr<Transport>> transport = usesMemory ? makeShmTransport(ranks) : makeGlooTransport(ranks);
  LLMC_RETURN_IF_ERROR(transport);
  return std::unique_ptr<CommApi>(std::make_unique<Communicator>(ranks, std::move(*transport)));
}

} // namespace llmc
