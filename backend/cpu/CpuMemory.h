// Memory straight from the system: zeroed, in huge pages where large, and free of charge until touched.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace llmc {

/// Owns a mapping.
class CpuMemory {
public:
  /// At least `bytes`, 4096-byte aligned and zeroed, on huge pages from 2 MiB on; bytes may be 0. `what` names it in an
  /// error.
  static Result<CpuMemory> allocate(uint64_t bytes, const char *what);
  /// Bytes of memory and swap that the machine has in all. Mappings beyond it are granted; touching them ends a
  /// process.
  static uint64_t ofMachine();
  /// A read-and-execute copy of machine code, page-aligned.
  static Result<CpuMemory> executable(std::span<const std::byte> code);

  CpuMemory() = default;
  CpuMemory(CpuMemory &&other) noexcept;
  CpuMemory &operator=(CpuMemory &&other) noexcept;
  ~CpuMemory();
  std::byte *data() const { return base; }
  /// Of the mapping: whole pages.
  uint64_t bytes() const { return mappedBytes; }

private:
  std::byte *base = nullptr;
  uint64_t mappedBytes = 0;
};

} // namespace llmc
