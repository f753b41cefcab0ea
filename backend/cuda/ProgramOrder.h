// Which stream each launch of a program goes to and what it waits for. A plan gives the order of launches and their
// streams; what must wait for what follows from the memory they touch.
#pragma once

#include "runtime/Plan.h"

namespace llmc::cuda {

struct ProgramOrder {
  struct Step {
    size_t stream = 0;         ///< 0 is the device's own, where a program begins and ends
    std::vector<size_t> waits; ///< launches of other streams that must have ended
    bool isAwaited = false;    ///< some other launch waits for this one
  };
  std::vector<Step> steps; ///< by launch
  size_t numStreams = 1;
  size_t commStream = 0; ///< of the collectives; 0: there are none
};

/// Launches on one stream follow each other. Of two that touch the same memory on different streams the later one
/// waits, unless it does so already by way of others. `hasRanks`: starts of collectives go to a stream of their own;
/// otherwise they are nothing.
ProgramOrder orderOf(const Program &program, bool hasRanks);

/// The message of a collective: from its first part's first byte to its last part's last.
BufferRef messageOf(const Launch &launch);

} // namespace llmc::cuda
