// Every call is two meetings: one after which all may read the others' memory, one after which nobody reads it any
// more.
#include "tests/runtime/ThreadRanks.h"

#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <limits>
#include <thread>
#include <utility>

namespace llmc::test {

static float load(const std::byte *from, ElementType type, size_t index) {
  if (type == ElementType::f32) {
    float value = 0;
    std::memcpy(&value, from + 4 * index, 4);
    return value;
  }
  uint16_t bits = 0;
  std::memcpy(&bits, from + 2 * index, 2);
  return std::bit_cast<float>(uint32_t(bits) << 16);
}

static void store(std::byte *to, ElementType type, size_t index, float value) {
  if (type == ElementType::f32) {
    std::memcpy(to + 4 * index, &value, 4);
    return;
  }
  uint32_t bits = std::bit_cast<uint32_t>(value);
  auto rounded = static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
  std::memcpy(to + 2 * index, &rounded, 2);
}

class ThreadComm : public CommApi {
public:
  ThreadComm(ThreadRanks &ranks, int rank) : ranks(ranks), me(rank) {}
  int rank() const override { return me; }
  int worldSize() const override { return static_cast<int>(ranks.comms.size()); }
  std::string describe() const override { return "threads of one process"; }

  Result<uint64_t> startAllReduce(std::span<std::byte> buffer, ElementType type, std::string_view label) override {
    sums.push_back({buffer, {buffer.begin(), buffer.end()}, type, std::string(label)});
    for (size_t i = 0; i < buffer.size() / elementBytes(type); ++i)
      store(buffer.data(), type, i, std::numeric_limits<float>::quiet_NaN());
    return sums.size() - 1;
  }

  Status wait(uint64_t ticket) override {
    if (ticket >= sums.size() || ticket + 1 <= numDone)
      return Error{
          fmt::format("rank {} waits for ticket {}, {} were started and {} done", me, ticket, sums.size(), numDone)};
    for (; numDone <= ticket; ++numDone)
      LLMC_RETURN_IF_ERROR(finish(sums[numDone]));
    return {};
  }

  Status broadcast(std::span<std::byte> buffer, int root, std::string_view label) override {
    ++numCalls;
    std::string what = fmt::format("broadcast '{}' of {} bytes from {}", label, buffer.size(), root);
    LLMC_RETURN_IF_ERROR(ranks.meet(me, what, buffer));
    if (me != root)
      std::memcpy(buffer.data(), ranks.memories[static_cast<size_t>(root)].data(), buffer.size());
    return ranks.meet(me, "done", {});
  }

  Status allGather(std::span<const std::byte> mine, std::span<std::byte> all, std::string_view label) override {
    ++numCalls;
    std::vector<std::byte> copy(mine.begin(), mine.end());
    LLMC_RETURN_IF_ERROR(ranks.meet(me, fmt::format("gather '{}' of {} bytes", label, mine.size()), copy));
    for (size_t i = 0; !mine.empty() && i < ranks.memories.size(); ++i)
      std::memcpy(&all[i * mine.size()], ranks.memories[i].data(), mine.size());
    return ranks.meet(me, "done", {});
  }

  CommTimes takeTimes() override { return {0, static_cast<double>(std::exchange(numCalls, 0)), {}}; }

  size_t numStarted() const { return sums.size(); }

private:
  struct Sum {
    std::span<std::byte> buffer;
    std::vector<std::byte> mine;
    ElementType type;
    std::string label;
  };

  Status finish(Sum &sum) {
    ++numCalls;
    std::string what = fmt::format("sum '{}' of {} {} bytes", sum.label, sum.buffer.size(), elementTypeName(sum.type));
    LLMC_RETURN_IF_ERROR(ranks.meet(me, what, sum.mine));
    for (size_t i = 0; i < sum.buffer.size() / elementBytes(sum.type); ++i) {
      float total = 0;
      for (std::span<std::byte> part : ranks.memories)
        total += load(part.data(), sum.type, i);
      store(sum.buffer.data(), sum.type, i, total);
    }
    LLMC_RETURN_IF_ERROR(ranks.meet(me, "done", {}));
    sum.mine = {};
    return {};
  }

  ThreadRanks &ranks;
  int me;
  std::vector<Sum> sums; ///< by ticket
  size_t numDone = 0;
  uint64_t numCalls = 0; ///< since takeTimes: each counts as a millisecond
};

ThreadRanks::ThreadRanks(int worldSize) : whats(static_cast<size_t>(worldSize)), memories(whats.size()) {
  for (int rank = 0; rank < worldSize; ++rank)
    comms.push_back(std::make_unique<ThreadComm>(*this, rank));
}

ThreadRanks::~ThreadRanks() = default;

CommApi &ThreadRanks::of(int rank) { return *comms[static_cast<size_t>(rank)]; }

uint64_t ThreadRanks::numSums() const { return static_cast<const ThreadComm &>(*comms.front()).numStarted(); }

Status ThreadRanks::meet(int rank, const std::string &what, std::span<std::byte> memory) {
  std::unique_lock lock(mutex);
  whats[static_cast<size_t>(rank)] = what;
  if (what != "done") // a slower rank may still read
    memories[static_cast<size_t>(rank)] = memory;
  uint64_t mine = round;
  if (++numArrived == static_cast<int>(comms.size())) {
    numArrived = 0;
    ++round;
    changed.notify_all();
  }
  changed.wait(lock, [&] { return round != mine || isBroken; });
  if (round == mine)
    return Error{"another rank has failed"};
  for (const std::string &other : whats)
    if (what != "done" && other != "done" && other != what)
      return Error{fmt::format("rank {} calls {}, another rank {}", rank, what, other)};
  return {};
}

Status ThreadRanks::run(const std::function<Status(int)> &body) {
  std::vector<std::thread> threads;
  Status first;
  for (int rank = 0; rank < static_cast<int>(comms.size()); ++rank)
    threads.emplace_back([&, rank] {
      Status status = body(rank);
      if (status)
        return;
      std::lock_guard lock(mutex);
      if (!isBroken)
        first = status;
      isBroken = true;
      changed.notify_all();
    });
  for (std::thread &thread : threads)
    thread.join();
  return first;
}

} // namespace llmc::test
