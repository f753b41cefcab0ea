// A line of text, written beside and renamed.
#include "runtime/MeetingFile.h"

#include "runtime/AtomicFile.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

std::string formatHubAddress(const HubAddress &address) {
  return fmt::format("{} {} {}\n", address.host, address.port, address.job);
}

Result<HubAddress> parseHubAddress(const std::string &text) {
  HubAddress address;
  size_t first = text.find(' '), second = text.find(' ', first + 1);
  if (first == std::string::npos || second == std::string::npos || text.back() != '\n')
    return Error{"it does not say where rank 0 is"};
  address.host = text.substr(0, first);
  auto [end, error] = std::from_chars(&text[first + 1], &text[second], address.port);
  if (error != std::errc() || end != &text[second])
    return Error{"it does not say where rank 0 is"};
  address.job = text.substr(second + 1, text.size() - second - 2);
  return address;
}

Status writeMeetingFile(const std::string &path, const HubAddress &address) {
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  std::string text = formatHubAddress(address);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

Result<HubAddress> readMeetingFile(const std::string &path, const std::string &job) {
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return Error{fmt::format("{}: {}", path, std::strerror(errno))};
  char text[1024];
  ssize_t size = ::read(fd, text, sizeof(text));
  struct stat info = {};
  bool isOurs = ::fstat(fd, &info) == 0 && info.st_uid == ::geteuid();
  ::close(fd);
  if (!isOurs)
    return Error{path + ": it belongs to another user"};
  Result<HubAddress> address = parseHubAddress(std::string(text, size > 0 ? static_cast<size_t>(size) : 0));
  if (!address)
    return inContext(path, address.error());
  if (address->job != job)
    return Error{path + ": it is of another run"};
  return address;
}

} // namespace llmc
