// Faults in words.
#include "tests/cudasim/Fault.h"

#include <fmt/format.h>

namespace llmc::cudasim {

const char *nameOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::outOfBounds:
    return "access out of bounds";
  case FaultKind::useAfterFree:
    return "use after free";
  case FaultKind::outsideLifetime:
    return "access outside the planned lifetime";
  case FaultKind::misaligned:
    return "misaligned access";
  case FaultKind::uninitialized:
    return "read of uninitialized memory";
  case FaultKind::readOnly:
    return "write to constant memory";
  case FaultKind::sharedRace:
    return "race in shared memory";
  case FaultKind::globalRace:
    return "race in global memory";
  case FaultKind::barrierDivergence:
    return "barrier not reached by all threads";
  case FaultKind::warpDivergence:
    return "lanes missing from a warp's exchange";
  case FaultKind::wrongArguments:
    return "wrong arguments";
  case FaultKind::wrongLaunch:
    return "wrong launch";
  case FaultKind::trap:
    return "trap";
  case FaultKind::endless:
    return "does not end";
  case FaultKind::hostOverwrite:
    return "host memory changed while a copy waited";
  case FaultKind::collectiveMismatch:
    return "ranks call different collectives";
  }
  return "fault";
}

std::string Fault::describe() const {
  std::string text = fmt::format("{}: {}", kernel, nameOf(kind));
  if (line != 0)
    text += fmt::format(" at PTX line {}, block ({}, {}, {}), thread ({}, {}, {})", line, block[0], block[1], block[2],
                        thread[0], thread[1], thread[2]);
  if (address != 0)
    text += fmt::format(", address {:#x}", address);
  return detail.empty() ? text : text + ": " + detail;
}

} // namespace llmc::cudasim
