// memfd_create: anonymous, and not bound by the size of a container's /dev/shm.
#include "backend/comm/SharedMemory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

namespace llmc {

SharedMemory::~SharedMemory() {
  if (base)
    ::munmap(base, bytes);
}

static Error systemError(const char *action) {
  return {fmt::format("cannot {} shared memory: {}", action, std::strerror(errno))};
}

static Result<Fd> makeMemory(uint64_t bytes) {
  Fd fd(::memfd_create("llmc", MFD_CLOEXEC));
  if (!fd || ::ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0)
    return systemError("make");
  return fd;
}

Result<SharedMemory> SharedMemory::create(Rendezvous &ranks, uint64_t bytes) {
  Fd fd;
  std::string path;
  if (ranks.rank() == 0) {
    Result<Fd> made = makeMemory(bytes);
    LLMC_RETURN_IF_ERROR(made);
    fd = std::move(*made);
    path = fmt::format("/proc/{}/fd/{}", ::getpid(), fd.get());
  }
  Result<std::vector<std::string>> told = ranks.exchange(path, "sharing memory");
  LLMC_RETURN_IF_ERROR(told);
  if (!fd)
    fd = Fd(::open(told->front().c_str(), O_RDWR | O_CLOEXEC));
  if (!fd)
    return systemError("open");
  void *mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED)
    return systemError("map");
  SharedMemory memory;
  memory.base = static_cast<std::byte *>(mapped);
  memory.bytes = bytes;
  LLMC_RETURN_IF_ERROR(ranks.exchange("", "sharing memory")); // rank 0 keeps its descriptor until all have opened it
  return memory;
}

} // namespace llmc
