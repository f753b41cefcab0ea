// ld and st: each lane's bytes are looked at before they move: bounds, alignment, lifetime, whether they were ever
// written, and whether another thread touches them without an order between the two.
#include "tests/cudasim/Context.h"
#include "tests/cudasim/Forms.h"
#include "tests/cudasim/Lanes.h"

#include <fmt/format.h>

namespace llmc::cudasim {

namespace {

/// Where a lane's bytes are, with their shadow; no data after a fault.
struct Place {
  std::byte *data = nullptr;
  Shadow *shadow = nullptr;
  uint64_t offset = 0;
  Space space = Space::global;
  bool isConstant = false;
};

Place onChip(Context &context, const Instruction &in, uint32_t lane, Space space, uint64_t offset, uint32_t bytes) {
  OnChipMemory &memory = space == Space::shared ? *context.shared : (*context.local)[context.warp * kWarpLanes + lane];
  const char *name = space == Space::shared ? "shared" : "local";
  if (offset >= memory.data.size() || bytes > memory.data.size() - offset) {
    context.report(
        FaultKind::outOfBounds, in, lane, offset,
        fmt::format("{} bytes at offset {} of {} memory, which has {} bytes", bytes, offset, name, memory.data.size()));
    return {};
  }
  return {memory.data.data() + offset, &memory.shadow, offset, space};
}

Place placeOf(Context &context, const Instruction &in, uint32_t lane, uint32_t bytes) {
  const std::byte *slot = context.registers + in.src[0];
  uint64_t base = in.addressBytes == 8 ? readLane<uint64_t>(slot, lane) : readLane<uint32_t>(slot, lane);
  uint64_t address = base + static_cast<uint64_t>(in.immediate);
  if (address % bytes != 0) {
    context.report(FaultKind::misaligned, in, lane, address,
                   fmt::format("{} bytes need an address divisible by it", bytes));
    return {};
  }
  if (in.space == Space::shared || in.space == Space::local)
    return onChip(context, in, lane, in.space, address, bytes);
  if (in.space == Space::generic) {
    if (address - kSharedWindow < kWindowBytes)
      return onChip(context, in, lane, Space::shared, address - kSharedWindow, bytes);
    if (address - kLocalWindow < kWindowBytes)
      return onChip(context, in, lane, Space::local, address - kLocalWindow, bytes);
  }
  std::optional<Memory::Denial> denial;
  Allocation *found = context.memory->reach(address, bytes, context.recentAllocation, context.live, denial);
  if (!found) {
    context.report(denial->kind, in, lane, address, std::move(denial->detail));
    return {};
  }
  uint64_t offset = address - found->base;
  return {found->data + offset, &found->shadow, offset, Space::global, found->isConstant};
}

/// Local memory has one owner and no races.
bool raceFree(Context &context, const Instruction &in, uint32_t lane, const Place &place, uint32_t bytes,
              bool isWrite) {
  if (place.space == Space::local || place.isConstant)
    return true;
  Access access = context.accessOf(lane);
  std::optional<Access> conflict = isWrite ? place.shadow->noteWrite(place.offset, bytes, access, *context.order)
                                           : place.shadow->noteRead(place.offset, bytes, access, *context.order);
  if (!conflict)
    return true;
  context.report(place.space == Space::shared ? FaultKind::sharedRace : FaultKind::globalRace, in, lane, place.offset,
                 fmt::format("{} of {} bytes not ordered after {}", isWrite ? "write" : "read", bytes,
                             describeConflict(*conflict, *context.order)));
  return false;
}

/// An element into its register, extended to the register's width as its type says.
void writeElement(std::byte *slot, uint32_t lane, const Instruction &in, const std::byte *data) {
  uint64_t bits = 0;
  std::memcpy(&bits, data, in.elementBytes);
  if (in.signExtends) {
    uint32_t shift = 64 - 8 * in.elementBytes;
    bits = static_cast<uint64_t>(static_cast<int64_t>(bits << shift) >> shift);
  }
  // A 16-bit register's lane has 4 bytes of which the upper two are zero.
  if (in.laneBytes == 2)
    bits &= 0xffff;
  uint32_t stride = in.laneBytes == 8 ? 8 : 4;
  std::memcpy(slot + lane * stride, &bits, stride);
}

void load(Context &context, const Instruction &in) {
  uint32_t bytes = in.elementBytes * in.numElements;
  for (uint32_t rest = context.mask; rest != 0 && !context.fault; rest &= rest - 1) {
    uint32_t lane = std::countr_zero(rest);
    Place place = placeOf(context, in, lane, bytes);
    if (!place.data)
      return;
    if (std::optional<uint64_t> missing = place.shadow->firstUninitialized(place.offset, bytes)) {
      context.report(FaultKind::uninitialized, in, lane, *missing,
                     fmt::format("offset {} was never written", *missing));
      return;
    }
    if (!raceFree(context, in, lane, place, bytes, false))
      return;
    for (uint32_t i = 0; i < in.numElements; ++i)
      if (in.dst[i] != kNoSlot)
        writeElement(context.registers + in.dst[i], lane, in, place.data + i * in.elementBytes);
  }
}

void store(Context &context, const Instruction &in) {
  uint32_t bytes = in.elementBytes * in.numElements;
  uint32_t stride = in.laneBytes == 8 ? 8 : 4;
  for (uint32_t rest = context.mask; rest != 0 && !context.fault; rest &= rest - 1) {
    uint32_t lane = std::countr_zero(rest);
    Place place = placeOf(context, in, lane, bytes);
    if (!place.data)
      return;
    if (place.isConstant) {
      context.report(FaultKind::readOnly, in, lane, place.offset, "");
      return;
    }
    if (!raceFree(context, in, lane, place, bytes, true))
      return;
    place.shadow->markInitialized(place.offset, bytes);
    for (uint32_t i = 0; i < in.numElements; ++i)
      std::memcpy(place.data + i * in.elementBytes, context.registers + in.dst[i] + lane * stride, in.elementBytes);
  }
}

/// Parameters are checked when the kernel is decoded: their offsets are constants.
void loadParameter(Context &context, const Instruction &in) {
  forLanes(context.mask, [&](uint32_t lane) {
    for (uint32_t i = 0; i < in.numElements; ++i)
      writeElement(context.registers + in.dst[i], lane, in,
                   context.parameters.data() + in.immediate + i * in.elementBytes);
  });
}

void convertAddress(Context &context, const Instruction &in) {
  std::byte *dst = context.registers + in.dst[0];
  const std::byte *src = context.registers + in.src[0];
  overLanes(context.mask, [=, distance = static_cast<uint64_t>(in.immediate)](uint32_t lane) {
    writeLane<uint64_t>(dst, lane, readLane<uint64_t>(src, lane) + distance);
  });
}

void trap(Context &context, const Instruction &in) {
  context.report(FaultKind::trap, in, std::countr_zero(context.mask), 0, "the kernel gave up by itself");
}

} // namespace

Handler convertAddressHandler() { return convertAddress; }
Handler trapHandler() { return trap; }
Handler loadHandler() { return load; }
Handler storeHandler() { return store; }
Handler loadParameterHandler() { return loadParameter; }

} // namespace llmc::cudasim
