// Where the ranks of a run find each other, by flag or by what the launcher says.
#pragma once

#include "runtime/RankEnvironment.h"

#include <cstdint>

namespace llmc {

struct MeetingPlace {
  enum class Kind { address, file, torchStore };
  Kind kind = Kind::address;
  std::string host; ///< of an address, or of the torchrun agent with the store
  uint16_t port = 0;
  std::string path; ///< of the file
  /// "host:29500", "file:/shared/meet", "torchrun's store at host:29500"
  std::string describe() const;
};

/// "HOST:PORT" or "file:PATH"; an error says what was expected.
Result<MeetingPlace> parseMeetingPlace(const std::string &flag);

/// From --rendezvous (empty: not given) and the environment: torchrun's store, MASTER_ADDR and MASTER_PORT, or, where
/// the launcher names the job and all ranks are on this machine, a file of this user's. Else says what is missing.
Result<MeetingPlace> chooseMeetingPlace(const std::string &flag, const RankPlace &place,
                                        const Environment &environment);

} // namespace llmc
