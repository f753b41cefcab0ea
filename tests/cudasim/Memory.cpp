// Allocations by address.
#include "tests/cudasim/Memory.h"

#include <algorithm>
#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

constexpr uint64_t kAlignment = 512;
/// Unmapped room behind each allocation, so that a small step too far is not the neighbour.
constexpr uint64_t kGap = 1 << 16;

} // namespace

std::optional<uint64_t> LiveRanges::firstDead(uint64_t address, uint64_t bytes) const {
  uint64_t begin = std::max(address, covered.begin), end = std::min(address + bytes, covered.end);
  while (begin < end) {
    auto after = std::upper_bound(live.begin(), live.end(), begin,
                                  [](uint64_t value, const Range &range) { return value < range.begin; });
    if (after == live.begin() || std::prev(after)->end <= begin)
      return begin;
    begin = std::prev(after)->end;
  }
  return std::nullopt;
}

uint64_t Memory::allocate(uint64_t bytes, std::string name) {
  uint64_t base = next;
  next += (bytes + kGap + kAlignment - 1) / kAlignment * kAlignment;
  Allocation &made = allocations[base];
  made.base = base;
  made.bytes = bytes;
  made.owned.reset(new std::byte[bytes]);
  made.data = made.owned.get();
  // A value that would show: never what a fresh page of the machine holds.
  std::fill_n(made.data, bytes, std::byte(0xcb));
  made.shadow = Shadow(bytes);
  made.name = std::move(name);
  usedBytes += bytes;
  return base;
}

void Memory::mapHost(void *host, uint64_t bytes, std::string name) {
  auto base = reinterpret_cast<uint64_t>(host);
  // The host's allocator gives addresses out again: what was freed there is forgotten.
  auto overlapping = allocations.lower_bound(base);
  if (overlapping != allocations.begin() &&
      std::prev(overlapping)->second.base + std::prev(overlapping)->second.bytes > base)
    --overlapping;
  while (overlapping != allocations.end() && overlapping->first < base + bytes)
    overlapping = allocations.erase(overlapping);
  Allocation &made = allocations[base];
  made.base = base;
  made.bytes = bytes;
  made.data = static_cast<std::byte *>(host);
  made.shadow = Shadow(bytes);
  made.shadow.markInitialized(0, bytes);
  made.name = std::move(name);
  made.isHost = true;
}

bool Memory::free(uint64_t base) {
  auto found = allocations.find(base);
  if (found == allocations.end() || found->second.isFreed)
    return false;
  Allocation &freed = found->second;
  freed.isFreed = true;
  freed.owned.reset();
  freed.data = nullptr;
  freed.shadow = Shadow(0);
  if (!freed.isHost)
    usedBytes -= freed.bytes;
  return true;
}

Allocation *Memory::find(uint64_t address) {
  auto after = allocations.upper_bound(address);
  if (after == allocations.begin())
    return nullptr;
  Allocation &found = std::prev(after)->second;
  return address - found.base < found.bytes ? &found : nullptr;
}

Allocation *Memory::reach(uint64_t address, uint64_t bytes, Allocation *&recent, const LiveRanges *live,
                          std::optional<Denial> &denial) {
  if (!recent || recent->isFreed || address - recent->base >= recent->bytes)
    recent = find(address);
  if (!recent) {
    auto after = allocations.upper_bound(address);
    std::string near = after == allocations.begin() ? "no allocation is near" : [&] {
      const Allocation &before = std::prev(after)->second;
      return fmt::format("{} bytes behind the end of {} ({} bytes)", address - before.base - before.bytes, before.name,
                         before.bytes);
    }();
    denial = {FaultKind::outOfBounds, fmt::format("{} bytes, {}", bytes, near)};
    return nullptr;
  }
  if (recent->isFreed) {
    denial = {FaultKind::useAfterFree, fmt::format("offset {} of {}", address - recent->base, recent->name)};
    return nullptr;
  }
  uint64_t offset = address - recent->base;
  if (bytes > recent->bytes - offset) {
    denial = {FaultKind::outOfBounds, fmt::format("{} bytes at offset {} of {}, which has {} bytes", bytes, offset,
                                                  recent->name, recent->bytes)};
    return nullptr;
  }
  if (live)
    if (std::optional<uint64_t> dead = live->firstDead(address, bytes)) {
      denial = {FaultKind::outsideLifetime,
                fmt::format("offset {} of {} holds no live value now", *dead - recent->base, recent->name)};
      return nullptr;
    }
  return recent;
}

std::optional<Memory::Denial> Memory::noteRange(uint64_t address, uint64_t bytes, bool isWrite,
                                                const LaunchOrder &order, const LiveRanges *live) {
  std::optional<Denial> denial;
  Allocation *recent = nullptr;
  Allocation *found = reach(address, bytes, recent, live, denial);
  if (!found)
    return denial;
  uint64_t offset = address - found->base;
  if (!isWrite)
    if (auto missing = found->shadow.firstUninitialized(offset, bytes))
      return Denial{FaultKind::uninitialized, fmt::format("offset {} of {}", *missing, found->name)};
  Access access{.op = order.op()};
  std::optional<Access> conflict = isWrite ? found->shadow.noteWrite(offset, bytes, access, order)
                                           : found->shadow.noteRead(offset, bytes, access, order);
  if (conflict)
    return Denial{FaultKind::globalRace, fmt::format("offset {} of {}: not ordered after {}", offset, found->name,
                                                     describeConflict(*conflict, order))};
  if (isWrite)
    found->shadow.markInitialized(offset, bytes);
  return std::nullopt;
}

std::byte *Memory::pointer(uint64_t address) {
  Allocation *found = find(address);
  return found && !found->isFreed ? found->data + (address - found->base) : nullptr;
}

std::string describeConflict(const Access &earlier, const LaunchOrder &order) {
  if (earlier.op != order.op())
    return order.nameOf(earlier.op);
  if (earlier.breadth == Access::manyBlocks)
    return "several blocks of the same launch";
  std::string who = earlier.breadth == Access::oneBlock  ? "several threads"
                    : earlier.breadth == Access::oneWarp ? fmt::format("several lanes of warp {}", earlier.thread / 32)
                                                         : fmt::format("thread {}", earlier.thread);
  return fmt::format("{} of block {}", who, earlier.block);
}

} // namespace llmc::cudasim
