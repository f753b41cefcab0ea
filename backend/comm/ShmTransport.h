// Collectives over memory shared by the ranks of one machine: each rank publishes its chunk, adds up its slice of all
// chunks, and takes the others' slices; a ring of buffers keeps ranks from waiting for each other at every chunk.
#pragma once

#include "backend/comm/SharedMemory.h"
#include "backend/comm/Transport.h"

#include <memory>

namespace llmc {

/// All ranks must be of one machine (runtime/RankProcess.h) and call it.
Result<std::unique_ptr<Transport>> makeShmTransport(Rendezvous &ranks);

} // namespace llmc
