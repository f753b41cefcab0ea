// A launch's arguments by the names of Kernels.def.
#pragma once

#include "runtime/Plan.h"

#include <cassert>
#include <string_view>

namespace llmc {

/// The place of a word in one of Kernels.def's space-separated lists, which must have it; "x?" counts as "x".
inline size_t argumentPlace(std::string_view word, std::string_view list) {
  for (size_t place = 0; !list.empty(); ++place) {
    size_t end = list.find(' ') == list.npos ? list.size() : list.find(' ');
    std::string_view entry = list.substr(0, end);
    if (entry.ends_with('?'))
      entry.remove_suffix(1);
    if (entry == word)
      return place;
    list.remove_prefix(end + 1 < list.size() ? end + 1 : list.size());
  }
  assert(false && "Kernels.def has no such argument");
  return 0;
}

inline int64_t integerArgument(const Launch &launch, std::string_view name) {
  return launch.ints[argumentPlace(name, kernelInfo(launch.kind).ints)];
}
inline ElementType typeArgument(const Launch &launch, std::string_view name) {
  return static_cast<ElementType>(integerArgument(launch, name));
}
inline double numberArgument(const Launch &launch, std::string_view name) {
  return launch.floats[argumentPlace(name, kernelInfo(launch.kind).floats)];
}
inline const BufferRef &operandArgument(const Launch &launch, std::string_view name) {
  return launch.operands[argumentPlace(name, kernelInfo(launch.kind).operands)];
}

} // namespace llmc
