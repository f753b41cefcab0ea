// What the simulated GPU has to complain about, with the place: kernel, PTX line, block, thread, address. The first
// fault ends a launch; nothing that comes after it would mean anything.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace llmc::cudasim {

enum class FaultKind {
  outOfBounds,
  useAfterFree,
  outsideLifetime,
  misaligned,
  uninitialized,
  readOnly,
  sharedRace,
  globalRace,
  barrierDivergence,
  warpDivergence,
  wrongArguments,
  wrongLaunch,
  trap,
  endless,
  hostOverwrite,
  collectiveMismatch,
};

/// The name of a kind as reports spell it.
const char *nameOf(FaultKind kind);

struct Fault {
  FaultKind kind = FaultKind::trap;
  /// The kernel, or the driver's call that moved memory.
  std::string kernel{};
  /// Line in the PTX text, from 1; 0 where no instruction is to blame.
  uint32_t line = 0;
  std::array<uint32_t, 3> block{};
  std::array<uint32_t, 3> thread{};
  uint64_t address = 0;
  /// What was expected and what was found.
  std::string detail{};

  /// One line for the person at the terminal.
  std::string describe() const;
};

} // namespace llmc::cudasim
