// CommApi over a transport: one thread runs the collectives one after another, in the order in which they were issued.
#pragma once

#include "runtime/Comm.h"
#include "runtime/Rendezvous.h"

#include <memory>

namespace llmc {

enum class TransportChoice {
  automatic,    ///< shared memory where all ranks are of one machine, else TCP
  sharedMemory, ///< for tests
  tcp,          ///< for tests
};

/// The ranks that met at `ranks`, which must outlive it. All ranks must call it.
Result<std::unique_ptr<CommApi>> makeCommunicator(Rendezvous &ranks,
                                                  TransportChoice choice = TransportChoice::automatic);

} // namespace llmc
