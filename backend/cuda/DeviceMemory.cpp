// Allocation with the driver's own count of what is free; copies slot by slot.
#include "backend/cuda/DeviceMemory.h"

#include <cstring>
#include <fmt/format.h>

namespace llmc::cuda {

static constexpr uint64_t kAlignment = 4096;
static constexpr size_t kNumSlots = 8;
static constexpr uint64_t kSlotBytes = 2 << 20;

static double toGib(uint64_t bytes) { return static_cast<double>(bytes) / (1 << 30); }

Result<DeviceMemory> DeviceMemory::allocate(Context &context, uint64_t bytes, const std::string &what) {
  const Driver &driver = context.driver();
  size_t free = 0, total = 0;
  LLMC_RETURN_IF_ERROR(context.check(driver.cuMemGetInfo(&free, &total), "asking for the GPU's free memory"));
  auto refused = [&] {
    return Error{fmt::format("cannot allocate {:.3f} GiB for {}: {:.3f} of {:.3f} GiB are free ({})", toGib(bytes),
                             what, toGib(free), toGib(total), context.identity())};
  };
  if (bytes > free)
    return refused();
  DeviceMemory made;
  // The driver aligns large pieces to far more than we need, small ones to less.
  for (uint64_t wanted : {bytes, bytes + kAlignment}) {
    made = DeviceMemory();
    CUdeviceptr base = 0;
    CUresult result = driver.cuMemAlloc(&base, wanted);
    if (result == CUDA_ERROR_OUT_OF_MEMORY)
      return refused();
    LLMC_RETURN_IF_ERROR(context.check(result, "allocating " + what));
    context.noteAllocated(wanted);
    made.context = &context;
    made.base = base;
    made.start = (base + kAlignment - 1) / kAlignment * kAlignment;
    made.bytes = wanted;
    if (made.start == base)
      break;
  }
  return made;
}

DeviceMemory::DeviceMemory(DeviceMemory &&other) noexcept
    : context(other.context), base(std::exchange(other.base, 0)), start(std::exchange(other.start, 0)),
      bytes(other.bytes) {}

DeviceMemory &DeviceMemory::operator=(DeviceMemory &&other) noexcept {
  std::swap(context, other.context);
  std::swap(base, other.base);
  std::swap(start, other.start);
  std::swap(bytes, other.bytes);
  return *this;
}

DeviceMemory::~DeviceMemory() {
  if (base == 0 || context->isAbandoned())
    return;
  (void)context->makeCurrent(); // where the context is broken the memory is gone with it
  context->driver().cuMemFree(base);
  context->noteFreed(bytes);
}

Result<PinnedMemory> PinnedMemory::allocate(const Context &context, uint64_t bytes) {
  void *memory = nullptr;
  LLMC_RETURN_IF_ERROR(
      context.check(context.driver().cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_DEVICEMAP), "pinning host memory"));
  PinnedMemory made;
  made.context = &context;
  made.memory = static_cast<std::byte *>(memory);
  made.size = bytes;
  return made;
}

PinnedMemory &PinnedMemory::operator=(PinnedMemory &&other) noexcept {
  std::swap(context, other.context);
  std::swap(memory, other.memory);
  std::swap(size, other.size);
  return *this;
}

PinnedMemory::~PinnedMemory() {
  if (memory && !context->isAbandoned())
    context->driver().cuMemFreeHost(memory);
}

Result<std::unique_ptr<Copies>> Copies::make(const Context &context) {
  std::unique_ptr<Copies> copies(new Copies(context));
  for (size_t i = 0; i < kNumSlots; ++i) {
    Result<PinnedMemory> memory = PinnedMemory::allocate(context, kSlotBytes);
    LLMC_RETURN_IF_ERROR(memory);
    Result<Event> travelled = makeEvent(context, /*hasTiming=*/false);
    LLMC_RETURN_IF_ERROR(travelled);
    copies->slots.push_back({std::move(*memory), std::move(*travelled)});
  }
  return copies;
}

/// The next free slot, for as long as this lives.
class Copies::Taken {
public:
  explicit Taken(Copies &copies) : copies(copies) {
    std::unique_lock lock(copies.mutex);
    auto isFree = [&] {
      for (size_t i = 0; i < copies.slots.size(); ++i, copies.next = (copies.next + 1) % copies.slots.size())
        if (!copies.slots[copies.next].isTaken)
          return true;
      return false;
    };
    copies.freed.wait(lock, isFree);
    slot = &copies.slots[copies.next];
    copies.next = (copies.next + 1) % copies.slots.size();
    slot->isTaken = true;
  }
  ~Taken() {
    std::lock_guard lock(copies.mutex);
    slot->isTaken = false;
    copies.freed.notify_one();
  }
  Slot *operator->() const { return slot; }

private:
  Copies &copies;
  Slot *slot;
};

Status Copies::inOne(CUdeviceptr dst, std::span<const std::byte> hostSrc) {
  const Driver &driver = context.driver();
  Taken slot(*this);
  LLMC_RETURN_IF_ERROR(context.check(driver.cuEventSynchronize(slot->travelled.get()), "copying to the GPU"));
  std::memcpy(slot->memory.bytes().data(), hostSrc.data(), hostSrc.size());
  LLMC_RETURN_IF_ERROR(
      context.check(driver.cuMemcpyHtoDAsync(dst, slot->memory.bytes().data(), hostSrc.size(), context.stream()),
                    "copying to the GPU"));
  return context.check(driver.cuEventRecord(slot->travelled.get(), context.stream()), "copying to the GPU");
}

Status Copies::outOne(std::span<std::byte> hostDst, CUdeviceptr src) {
  const Driver &driver = context.driver();
  Taken slot(*this);
  LLMC_RETURN_IF_ERROR(context.check(driver.cuEventSynchronize(slot->travelled.get()), "copying from the GPU"));
  LLMC_RETURN_IF_ERROR(
      context.check(driver.cuMemcpyDtoHAsync(slot->memory.bytes().data(), src, hostDst.size(), context.stream()),
                    "copying from the GPU"));
  LLMC_RETURN_IF_ERROR(
      context.check(driver.cuEventRecord(slot->travelled.get(), context.stream()), "copying from the GPU"));
  LLMC_RETURN_IF_ERROR(context.check(driver.cuEventSynchronize(slot->travelled.get()), "copying from the GPU"));
  std::memcpy(hostDst.data(), slot->memory.bytes().data(), hostDst.size());
  return {};
}

Status Copies::in(CUdeviceptr dst, std::span<const std::byte> hostSrc) {
  LLMC_RETURN_IF_ERROR(context.makeCurrent());
  for (uint64_t at = 0; at < hostSrc.size(); at += kSlotBytes)
    LLMC_RETURN_IF_ERROR(inOne(dst + at, hostSrc.subspan(at, std::min(kSlotBytes, hostSrc.size() - at))));
  return {};
}

Status Copies::out(std::span<std::byte> hostDst, CUdeviceptr src) {
  LLMC_RETURN_IF_ERROR(context.makeCurrent());
  for (uint64_t at = 0; at < hostDst.size(); at += kSlotBytes)
    LLMC_RETURN_IF_ERROR(outOne(hostDst.subspan(at, std::min(kSlotBytes, hostDst.size() - at)), src + at));
  return {};
}

} // namespace llmc::cuda
