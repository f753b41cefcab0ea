// Meeting through the store that torchrun's agent keeps: under it MASTER_ADDR:MASTER_PORT is the agent's own, so rank 0
// listens elsewhere and leaves its address there. The store's wire protocol, as PyTorch 2.x speaks it.
#pragma once

#include "runtime/MeetingFile.h"
#include "runtime/Socket.h"

namespace llmc {

/// Leaves the address in the store. Fails where no such store answers there.
Status publishInTorchStore(const std::string &host, uint16_t port, const HubAddress &address, Deadline deadline);
/// Waits until rank 0 of this job has left its address.
Result<HubAddress> findInTorchStore(const std::string &host, uint16_t port, const std::string &job, Deadline deadline);

} // namespace llmc
