// The simulated device's memory: allocations at addresses that the host cannot touch (a dereferenced device pointer
// crashes), pinned host memory at its own address, each with its shadow. Freed ones stay known by name.
#pragma once

#include "tests/cudasim/Fault.h"
#include "tests/cudasim/Shadow.h"

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc::cudasim {

/// Ranges of device memory that hold a live value while an operation runs. Memory inside `covered` but in none of the
/// `live` ones must not be touched; memory outside of `covered` is not looked at.
struct LiveRanges {
  struct Range {
    uint64_t begin = 0;
    uint64_t end = 0;
  };
  Range covered;
  /// Sorted, apart from each other.
  std::vector<Range> live;

  /// The first byte of the access that is in no live range.
  std::optional<uint64_t> firstDead(uint64_t address, uint64_t bytes) const;
};

struct Allocation {
  uint64_t base = 0;
  uint64_t bytes = 0;
  /// Host memory behind it.
  std::byte *data = nullptr;
  std::unique_ptr<std::byte[]> owned;
  Shadow shadow{0};
  std::string name;
  bool isHost = false;
  bool isConstant = false;
  bool isFreed = false;
};

class Memory {
public:
  /// Device memory, 512-byte aligned, uninitialized, with unmapped room behind it.
  uint64_t allocate(uint64_t bytes, std::string name);
  /// Makes host memory (pinned) visible under its own address; what the host writes counts as initialized.
  void mapHost(void *host, uint64_t bytes, std::string name);
  /// False where nothing alive begins at the address.
  bool free(uint64_t base);

  /// The allocation, alive or freed, that holds this address.
  Allocation *find(uint64_t address);
  /// Bytes of device memory that are allocated now.
  uint64_t allocatedBytes() const { return usedBytes; }

  /// What keeps an access from being allowed, without bytes read or written: bounds, freed memory, lifetime.
  struct Denial {
    FaultKind kind;
    std::string detail;
  };
  /// The allocation, or why these bytes may not be touched. `recent` is tried first and updated.
  Allocation *reach(uint64_t address, uint64_t bytes, Allocation *&recent, const LiveRanges *live,
                    std::optional<Denial> &denial);

  /// A whole range as one access of an operation (a copy, a fill). Nothing, or what is wrong with it.
  std::optional<Denial> noteRange(uint64_t address, uint64_t bytes, bool isWrite, const LaunchOrder &order,
                                  const LiveRanges *live);
  /// The host's pointer to a range that noteRange has allowed.
  std::byte *pointer(uint64_t address);

private:
  std::map<uint64_t, Allocation> allocations;
  uint64_t next = 0x700000000000;
  uint64_t usedBytes = 0;
};

/// Which other operation or thread an access collided with.
std::string describeConflict(const Access &earlier, const LaunchOrder &order);

} // namespace llmc::cudasim
