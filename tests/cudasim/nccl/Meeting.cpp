// The shared memory is named until all have joined; then nothing is left behind whoever dies.
#include "tests/cudasim/nccl/Meeting.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace llmc::cudasim {

struct alignas(4096) Meeting::Slot {
  /// The process, 0 before it joins; numbers of collectives, plus one.
  std::atomic<int32_t> process;
  std::atomic<uint64_t> published;
  std::atomic<uint64_t> finished;
  Call call;
};

std::string describe(const Call &call) {
  constexpr const char *kNames[] = {"AllReduce", "ReduceScatter", "AllGather", "Broadcast"};
  return fmt::format("{} of {} elements of type {}, reduction {}, root {}",
                     kNames[static_cast<uint32_t>(call.collective)], call.count, call.type, call.reduction, call.root);
}

Result<std::unique_ptr<Meeting>> Meeting::join(const std::string &name, int rank, int numRanks) {
  int file = shm_open(name.c_str(), O_RDWR | O_CREAT, 0600);
  if (file < 0)
    return Error{fmt::format("{}: {}", name, std::strerror(errno))};
  uint64_t bytes = (sizeof(Slot) + kSlotBytes) * numRanks;
  void *base = ftruncate(file, static_cast<off_t>(bytes)) == 0
                   ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
                   : MAP_FAILED;
  close(file);
  if (base == MAP_FAILED)
    return Error{fmt::format("{}: {}", name, std::strerror(errno))};
  std::unique_ptr<Meeting> meeting(new Meeting(static_cast<std::byte *>(base), name, rank, numRanks));
  int32_t nobody = 0;
  if (!meeting->slot(rank).process.compare_exchange_strong(nobody, getpid()))
    return Error{fmt::format("two processes are rank {}", rank)};
  return meeting;
}

Meeting::Meeting(std::byte *base, std::string name, int rank, int numRanks)
    : base(base), name(std::move(name)), self(rank), count(numRanks) {}

Meeting::~Meeting() {
  shm_unlink(name.c_str());
  munmap(base, (sizeof(Slot) + kSlotBytes) * count);
}

Meeting::Slot &Meeting::slot(int rank) const {
  return *reinterpret_cast<Slot *>(base + (sizeof(Slot) + kSlotBytes) * rank);
}

bool Meeting::allJoined() const {
  for (int rank = 0; rank < count; ++rank)
    if (slot(rank).process == 0)
      return false;
  shm_unlink(name.c_str());
  return true;
}

bool Meeting::mayPublish(uint64_t number) const {
  for (int rank = 0; rank < count; ++rank)
    if (slot(rank).process == 0 || slot(rank).finished < number)
      return false;
  return true;
}

void Meeting::publish(uint64_t number, const Call &call, const std::byte *data, uint64_t bytes) {
  Slot &mine = slot(self);
  mine.call = call;
  std::copy_n(data, bytes, reinterpret_cast<std::byte *>(&mine) + sizeof(Slot)); // a call without data has null and 0
  mine.published = number + 1;
}

bool Meeting::allPublished(uint64_t number) const {
  for (int rank = 0; rank < count; ++rank)
    if (slot(rank).published < number + 1)
      return false;
  return true;
}

void Meeting::finish(uint64_t number) { slot(self).finished = number + 1; }

const Call &Meeting::call(int rank) const { return slot(rank).call; }

const std::byte *Meeting::data(int rank) const {
  return reinterpret_cast<const std::byte *>(&slot(rank)) + sizeof(Slot);
}

int Meeting::deadRank() const {
  for (int rank = 0; rank < count; ++rank)
    if (int32_t process = slot(rank).process; process != 0 && kill(process, 0) != 0 && errno == ESRCH)
      return rank;
  return -1;
}

} // namespace llmc::cudasim
