// How ranks find rank 0's hub by a file that all of them see.
#pragma once

#include "runtime/Status.h"

#include <cstdint>
#include <string>

namespace llmc {

/// Where rank 0 listens, and for which run.
struct HubAddress {
  std::string host;
  uint16_t port = 0;
  std::string job;
};

/// "HOST PORT JOB" in one line, and back; an error where it is no such line.
std::string formatHubAddress(const HubAddress &address);
Result<HubAddress> parseHubAddress(const std::string &text);

/// The file appears whole, in the place of one left over.
Status writeMeetingFile(const std::string &path, const HubAddress &address);
/// Fails where there is none yet, it is another user's or another job's.
Result<HubAddress> readMeetingFile(const std::string &path, const std::string &job);

} // namespace llmc
