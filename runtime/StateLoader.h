// Brings a plan's weights into the state: each chunk is read, checked and copied in one pass.
#pragma once

#include "runtime/Device.h"
#include "runtime/PlanFile.h"

namespace llmc {

/// Copies all parameters and constants from the file into `state` (Space::state on the device) with `threads`
/// threads. Every chunk of the weights section is read and checked, also those that no entry uses.
Status loadWeights(const PlanFile &file, DeviceApi &device, std::byte *state, int threads);

} // namespace llmc
