// Memory of the GPU, and pinned memory of the host through which everything is copied to and from it.
#pragma once

#include "backend/cuda/Context.h"

#include <condition_variable>
#include <mutex>
#include <span>
#include <vector>

namespace llmc::cuda {

/// A piece of the GPU's memory, 4096-byte aligned.
class DeviceMemory {
public:
  DeviceMemory() = default;
  /// Not yet written. Fails, before it asks for it, where the GPU has not as much free; `what` it is for.
  static Result<DeviceMemory> allocate(Context &context, uint64_t bytes, const std::string &what);
  DeviceMemory(DeviceMemory &&other) noexcept;
  DeviceMemory &operator=(DeviceMemory &&other) noexcept;
  ~DeviceMemory();

  CUdeviceptr address() const { return start; }
  std::byte *data() const { return reinterpret_cast<std::byte *>(start); }

private:
  Context *context = nullptr;
  CUdeviceptr base = 0, start = 0; ///< as allocated; aligned
  uint64_t bytes = 0;              ///< as allocated
};

/// Pinned memory of the host.
class PinnedMemory {
public:
  PinnedMemory() = default;
  static Result<PinnedMemory> allocate(const Context &context, uint64_t bytes);
  PinnedMemory(PinnedMemory &&other) noexcept
      : context(other.context), memory(std::exchange(other.memory, nullptr)), size(other.size) {}
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  std::span<std::byte> bytes() const { return {memory, size}; }
  template <typename T> T *as() const { return reinterpret_cast<T *>(memory); }

private:
  const Context *context = nullptr;
  std::byte *memory = nullptr;
  uint64_t size = 0;
};

/// Copies through a few pinned slots, on the context's stream: while one slot travels the host fills the next. From any
/// number of threads.
class Copies {
public:
  static Result<std::unique_ptr<Copies>> make(const Context &context);
  /// Returns when hostSrc may be changed; whatever comes later in the stream finds the bytes.
  Status in(CUdeviceptr dst, std::span<const std::byte> hostSrc);
  /// Returns when the bytes are there.
  Status out(std::span<std::byte> hostDst, CUdeviceptr src);

private:
  struct Slot {
    PinnedMemory memory;
    Event travelled; ///< recorded behind the slot's last copy
    bool isTaken = false;
  };
  class Taken;
  explicit Copies(const Context &context) : context(context) {}
  Status inOne(CUdeviceptr dst, std::span<const std::byte> hostSrc);
  Status outOne(std::span<std::byte> hostDst, CUdeviceptr src);

  const Context &context;
  std::mutex mutex; ///< for which slots are taken
  std::condition_variable freed;
  std::vector<Slot> slots;
  size_t next = 0; ///< slots are taken in turn, so that the one taken has travelled the longest
};

} // namespace llmc::cuda
