// POSIX calls only: open(O_EXCL), pwrite, fsync, rename, and an fsync of the folder, so that the new name survives a
// crash.
#include "runtime/AtomicFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace llmc {

static std::string folderOf(const std::string &path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos)
    return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

Error AtomicFile::systemError(const char *action) const {
  return {finalPath + ": cannot " + action + ": " + std::strerror(errno)};
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Error{path + ": cannot write: it exists and is not a regular file"};
  std::string temporary;
  int fd = -1;
  // A leftover of a killed run may have our process id in its name: try the next number.
  for (int attempt = 0; attempt < 100 && fd < 0; ++attempt) {
    temporary = path + ".tmp." + std::to_string(::getpid()) + "." + std::to_string(attempt);
    fd = ::open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0 && errno != EEXIST)
      break;
  }
  if (fd < 0)
    return Error{path + ": cannot create: " + std::strerror(errno)};
  return AtomicFile(path, std::move(temporary), fd);
}

AtomicFile::AtomicFile(AtomicFile &&other) noexcept
    : finalPath(std::move(other.finalPath)), temporaryPath(std::exchange(other.temporaryPath, {})),
      fd(std::exchange(other.fd, -1)), end(other.end) {}

AtomicFile &AtomicFile::operator=(AtomicFile &&other) noexcept {
  if (this != &other) {
    drop();
    finalPath = std::move(other.finalPath);
    temporaryPath = std::exchange(other.temporaryPath, {});
    fd = std::exchange(other.fd, -1);
    end = other.end;
  }
  return *this;
}

AtomicFile::~AtomicFile() { drop(); }

void AtomicFile::drop() {
  if (fd >= 0)
    ::close(std::exchange(fd, -1));
  if (!temporaryPath.empty())
    ::unlink(std::exchange(temporaryPath, {}).c_str());
}

Status AtomicFile::append(std::span<const std::byte> bytes) {
  LLMC_RETURN_IF_ERROR(writeAt(end, bytes));
  end += bytes.size();
  return {};
}

Status AtomicFile::writeAt(uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return systemError("write");
    offset += static_cast<uint64_t>(written);
    bytes = bytes.subspan(static_cast<size_t>(written));
  }
  return {};
}

Status AtomicFile::readAt(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    ssize_t got = ::pread(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return systemError("read back");
    if (got == 0)
      return Error{finalPath + ": cannot read back: it ends early"};
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return {};
}

Status AtomicFile::resize(uint64_t size) {
  if (::ftruncate(fd, static_cast<off_t>(size)) != 0)
    return systemError("resize");
  end = size;
  return {};
}

Status AtomicFile::commit() {
  if (::fsync(fd) != 0)
    return systemError("flush to disk");
  // close() reports late write errors on some network file systems.
  if (::close(std::exchange(fd, -1)) != 0)
    return systemError("close");
  if (::rename(temporaryPath.c_str(), finalPath.c_str()) != 0)
    return systemError("rename into place");
  temporaryPath.clear();
  int folder = ::open(folderOf(finalPath).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder >= 0) {
    // Some file systems know no fsync of a folder; the file itself is whole either way.
    (void)::fsync(folder);
    ::close(folder);
  }
  return {};
}

} // namespace llmc
