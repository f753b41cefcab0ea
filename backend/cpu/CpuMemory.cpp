// mmap, trimmed to a huge-page boundary: the kernel gives huge pages only to whole aligned 2 MiB.
#include "backend/cpu/CpuMemory.h"

#include <cstring>
#include <string>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <utility>

namespace llmc {

static constexpr uint64_t kPage = 4096, kHugePage = uint64_t(2) << 20;

CpuMemory::CpuMemory(CpuMemory &&other) noexcept
    : base(std::exchange(other.base, nullptr)), mappedBytes(std::exchange(other.mappedBytes, 0)) {}

CpuMemory &CpuMemory::operator=(CpuMemory &&other) noexcept {
  std::swap(base, other.base);
  std::swap(mappedBytes, other.mappedBytes);
  return *this;
}

CpuMemory::~CpuMemory() {
  if (base)
    munmap(base, mappedBytes);
}

/// Maps `bytes` (whole pages) at a multiple of `alignment`, or returns nullptr.
static std::byte *mapAligned(uint64_t bytes, uint64_t alignment) {
  uint64_t extra = alignment - kPage;
  void *mapped =
      mmap(nullptr, bytes + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED)
    return nullptr;
  std::byte *begin = static_cast<std::byte *>(mapped);
  uint64_t skip = (alignment - reinterpret_cast<uintptr_t>(begin) % alignment) % alignment;
  if (skip)
    munmap(begin, skip);
  if (extra > skip)
    munmap(begin + skip + bytes, extra - skip);
  return begin + skip;
}

uint64_t CpuMemory::ofMachine() {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? (uint64_t(info.totalram) + info.totalswap) * info.mem_unit : UINT64_MAX;
}

Result<CpuMemory> CpuMemory::allocate(uint64_t bytes, const char *what) {
  CpuMemory memory;
  if (bytes == 0)
    return memory;
  const bool isHuge = bytes >= kHugePage;
  constexpr uint64_t kMost = uint64_t(1) << 46;
  memory.mappedBytes = (bytes + kPage - 1) / kPage * kPage;
  memory.base = bytes < kMost ? mapAligned(memory.mappedBytes, isHuge ? kHugePage : kPage) : nullptr;
  if (!memory.base)
    return Error{"cannot allocate " + std::to_string(bytes) + " bytes for " + what};
  if (isHuge)
    madvise(memory.base, memory.mappedBytes, MADV_HUGEPAGE); // advice: where refused, small pages do
  return memory;
}

Result<CpuMemory> CpuMemory::executable(std::span<const std::byte> code) {
  Result<CpuMemory> memory = allocate(code.size(), "the plan's code");
  if (!memory.ok() || code.empty())
    return memory;
  std::memcpy(memory->base, code.data(), code.size());
  if (mprotect(memory->base, memory->mappedBytes, PROT_READ | PROT_EXEC) != 0)
    return Error{std::string("cannot make the plan's code executable: ") + std::strerror(errno)};
  return memory;
}

} // namespace llmc
