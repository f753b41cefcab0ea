// Memory that the processes of one machine share, without a name that could outlive them.
#pragma once

#include "runtime/Rendezvous.h"

#include <cstddef>

namespace llmc {

/// A mapping, undone with the object.
class SharedMemory {
public:
  /// Rank 0 makes `bytes` of zeroed memory and the others map it: through /proc, so nothing is left behind whoever
  /// dies. All ranks must be of one machine and call it.
  static Result<SharedMemory> create(Rendezvous &ranks, uint64_t bytes);
  SharedMemory() = default;
  SharedMemory(SharedMemory &&other) noexcept
      : base(std::exchange(other.base, nullptr)), bytes(std::exchange(other.bytes, 0)) {}
  SharedMemory &operator=(SharedMemory &&other) noexcept {
    std::swap(base, other.base);
    std::swap(bytes, other.bytes);
    return *this;
  }
  ~SharedMemory();
  std::byte *data() const { return base; }

private:
  std::byte *base = nullptr;
  uint64_t bytes = 0;
};

} // namespace llmc
