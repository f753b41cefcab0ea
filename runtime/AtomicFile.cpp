// Linux calls: open(O_TMPFILE) or open(O_EXCL), pwrite, fsync, linkat or rename, and an fsync of the folder, so that
// the new name survives a crash. linkat replaces no file, so over an old one the new one gets a temporary name for the
// moment between linkat and rename. Whoever has a temporary file locks it (flock), so one without a lock is a leftover.
#include "runtime/AtomicFile.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
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

/// Where /proc shows the open file, for linkat: by its descriptor alone only root may link.
static std::string descriptorPath(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

/// How many processes may write one file at a time.
static constexpr int kMaxTemporaries = 16;

static std::string temporaryName(const std::string &path, int number) {
  // A name that is just short enough must have room for the suffix.
  constexpr size_t kMaxSuffix = 32;
  size_t name = path.rfind('/') + 1; // npos + 1 is 0
  std::string stem = path.substr(0, name + std::min(path.size() - name, size_t{NAME_MAX} - kMaxSuffix));
  return stem + ".unfinished." + std::to_string(number);
}

/// Whether `fd` is the file that is now called `name`.
static bool isCalled(int fd, const char *name) {
  struct stat mine, named;
  return ::fstat(fd, &mine) == 0 && ::lstat(name, &named) == 0 && mine.st_dev == named.st_dev &&
         mine.st_ino == named.st_ino;
}

static bool lock(int fd) { return ::flock(fd, LOCK_EX | LOCK_NB) == 0; }

/// Removes the temporary files of `path` that no process holds any more. Where the file system has no locks, none is.
static void removeLeftovers(const std::string &path) {
  for (int number = 0; number < kMaxTemporaries; ++number) {
    std::string name = temporaryName(path, number);
    int fd = ::open(name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
      continue;
    struct stat info;
    if (::fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && lock(fd) && isCalled(fd, name.c_str()))
      ::unlink(name.c_str());
    ::close(fd);
  }
}

/// Calls make(name) with temporary names beside `path` until it succeeds or fails for another reason than that the name
/// is taken. The name; "" with errno after a failure.
template <typename Make> static std::string makeTemporary(const std::string &path, Make make) {
  for (int number = 0; number < kMaxTemporaries; ++number) {
    std::string temporary = temporaryName(path, number);
    if (make(temporary.c_str()))
      return temporary;
    if (errno != EEXIST)
      break;
  }
  return "";
}

/// Whether `path` can be the name of a regular file, as far as a look at it tells.
static Status checkName(const std::string &path) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0)
    return errno == ENOENT ? Status() : Error{path + ": cannot create: " + std::strerror(errno)};
  if (!S_ISREG(info.st_mode))
    return Error{path + ": cannot write: it exists and is not a regular file"};
  return {};
}

Result<AtomicFile> AtomicFile::create(const std::string &path) {
  LLMC_RETURN_IF_ERROR(checkName(path));
  removeLeftovers(path);
  int fd = ::open(folderOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
  if (fd < 0) // no such files there, or nothing can be made there: then the next says why
    return createNamed(path);
  AtomicFile file(path, "", fd);
  if (::access(descriptorPath(fd).c_str(), F_OK) != 0) // no /proc
    return createNamed(path);
  lock(fd); // no lock, no leftovers known: they stay
  return file;
}

Result<AtomicFile> AtomicFile::createNamed(const std::string &path) {
  LLMC_RETURN_IF_ERROR(checkName(path));
  removeLeftovers(path);
  int fd = -1;
  std::string temporary = makeTemporary(path, [&](const char *name) {
    fd = ::open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0)
      return false;
    if (!lock(fd) || isCalled(fd, name))
      return true;
    // Somebody took it for a leftover before it was locked: the next name.
    ::close(std::exchange(fd, -1));
    errno = EEXIST;
    return false;
  });
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

/// Gives a nameless file the final name, or a temporary one where the final one is taken.
Status AtomicFile::giveName() {
  auto link = [source = descriptorPath(fd)](const char *name) {
    return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, name, AT_SYMLINK_FOLLOW) == 0;
  };
  if (link(finalPath.c_str()))
    return {};
  if (errno == EEXIST)
    temporaryPath = makeTemporary(finalPath, link);
  return temporaryPath.empty() ? systemError("link into place") : Status();
}

Status AtomicFile::commit() {
  if (::fsync(fd) != 0)
    return systemError("flush to disk");
  if (temporaryPath.empty())
    LLMC_RETURN_IF_ERROR(giveName());
  // close() reports late write errors on some network file systems, which have no nameless files.
  if (::close(std::exchange(fd, -1)) != 0)
    return systemError("close");
  if (!temporaryPath.empty() && ::rename(temporaryPath.c_str(), finalPath.c_str()) != 0)
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
