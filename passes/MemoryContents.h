// What every byte of a program's memory holds, while the program is walked op by op: how verify-plannable sees that
// each value read is still the value that was written, without knowing how plan-memory came to its offsets.
#pragma once

#include "ir/Dialect.h"

#include <map>

namespace llmc {

class MemoryContents {
public:
  /// Names what is stored: the op or value that wrote it.
  using Owner = const void *;

  /// `owner` now fills the buffer, and whatever was there is gone.
  void write(BufferAttr place, Owner owner);
  /// Whether each byte of `place` is what `owner` wrote there.
  bool holds(BufferAttr place, Owner owner) const;

private:
  struct Part {
    int64_t end = 0;
    Owner owner = nullptr;
  };
  using Parts = std::map<int64_t, Part>; ///< by offset, not overlapping
  std::map<MemorySpace, Parts> spaces;
};

} // namespace llmc
