// The loops of a copy launch (Kernels.def) in their simplest form, for every device.
#pragma once

#include "runtime/KernelArguments.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

namespace llmc {

struct CopyLoop {
  int64_t size, src, dst; ///< steps, and strides in elements
};

/// Outermost in dst first, without loops of one step, and with those joined that are one in memory. A single loop of
/// no steps when nothing is copied; no loop when one element is.
inline std::vector<CopyLoop> copyLoops(const Launch &launch) {
  std::vector<CopyLoop> loops, joined;
  for (char digit = '0'; digit < '6'; ++digit)
    loops.push_back({integerArgument(launch, std::string("size") + digit),
                     integerArgument(launch, std::string("srcStride") + digit),
                     integerArgument(launch, std::string("dstStride") + digit)});
  for (const CopyLoop &loop : loops)
    if (loop.size == 0)
      return {{0, 0, 0}};
  std::erase_if(loops, [](const CopyLoop &loop) { return loop.size == 1; });
  std::stable_sort(loops.begin(), loops.end(),
                   [](const CopyLoop &a, const CopyLoop &b) { return std::abs(a.dst) > std::abs(b.dst); });
  for (const CopyLoop &loop : loops) {
    if (!joined.empty() && joined.back().src == loop.size * loop.src && joined.back().dst == loop.size * loop.dst)
      joined.back() = {joined.back().size * loop.size, loop.src, loop.dst};
    else
      joined.push_back(loop);
  }
  return joined;
}

} // namespace llmc
