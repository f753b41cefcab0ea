// Collectives between machines, over Gloo's TCP pairs: every rank sends each other rank that rank's slice, adds up its
// own, and sends the sum round. The bytes on the wire are those of a ring; the order of the sums is the ranks'.
#pragma once

#include "backend/comm/Transport.h"
#include "runtime/Rendezvous.h"

#include <memory>

namespace llmc {

/// Connects every rank to every other. All ranks must call it.
Result<std::unique_ptr<Transport>> makeGlooTransport(Rendezvous &ranks);

} // namespace llmc
