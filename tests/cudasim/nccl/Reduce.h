// The arithmetic of a collective: what rank `self` receives from what all ranks have sent. Sums go in the order of the
// ranks, in f64, and are rounded once.
#pragma once

#include "tests/cudasim/nccl/Meeting.h"

#include <vector>

namespace llmc::cudasim {

/// Bytes of an element of NCCL's type, 0 for those that are not known here.
uint64_t elementBytes(int32_t type);
/// Elements that a rank receives.
uint64_t receivedCount(const Call &call, int numRanks);
/// The received bytes. All ranks have published the same call.
std::vector<std::byte> received(const Call &call, const Meeting &meeting);

} // namespace llmc::cudasim
