// Intervals by offset; a write cuts what it meets.
#include "passes/MemoryContents.h"

namespace llmc {

void MemoryContents::write(BufferAttr place, Owner owner) {
  Parts &parts = spaces[place.getSpace()];
  int64_t begin = place.getOffset(), end = place.getEnd();
  auto next = parts.lower_bound(begin);
  if (next != parts.begin())
    if (auto previous = std::prev(next); previous->second.end > begin) {
      if (previous->second.end > end)
        parts[end] = previous->second;
      previous->second.end = begin;
    }
  while (next != parts.end() && next->first < end) {
    if (next->second.end > end)
      parts[end] = next->second;
    next = parts.erase(next);
  }
  if (begin < end)
    parts[begin] = {end, owner};
}

bool MemoryContents::holds(BufferAttr place, Owner owner) const {
  auto space = spaces.find(place.getSpace());
  if (space == spaces.end())
    return place.getBytes() == 0;
  const Parts &parts = space->second;
  int64_t at = place.getOffset();
  auto part = parts.upper_bound(at);
  if (part != parts.begin())
    --part;
  for (; at < place.getEnd(); ++part) {
    if (part == parts.end() || part->first > at || part->second.end <= at || part->second.owner != owner)
      return false;
    at = part->second.end;
  }
  return true;
}

} // namespace llmc
