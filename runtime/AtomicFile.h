// A file that appears whole or not at all: bytes go to a file that has no name yet, commit() flushes it to the disk and
// gives it the final one. Dropped without commit(), or with the process, it is gone and the old file stays. A temporary
// name beside the final one, `<name>.unfinished.<number>`, is needed where the file system knows no nameless files, and
// for a moment to replace an old file; one that a killed process left there is removed by the next who makes this file.
#pragma once

#include "runtime/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace llmc {

class AtomicFile {
public:
  /// Opens a nameless file in the folder of `path`, a temporary one where it can't hold nameless ones. Fails where that
  /// folder can't be written, and where `path` exists and is no regular file (a folder, a device). All errors name
  /// `path`.
  static Result<AtomicFile> create(const std::string &path);
  /// create() as it is on a file system without nameless files.
  static Result<AtomicFile> createNamed(const std::string &path);

  AtomicFile(AtomicFile &&other) noexcept;
  AtomicFile &operator=(AtomicFile &&other) noexcept;
  ~AtomicFile();

  /// Appends at the end of what append() wrote so far. Unbuffered: give it large pieces.
  Status append(std::span<const std::byte> bytes);
  /// Overwrites or extends at `offset`; append() goes on where it was.
  Status writeAt(uint64_t offset, std::span<const std::byte> bytes);
  /// Reads exactly bytes.size() bytes at `offset`, which must have been written before.
  Status readAt(uint64_t offset, std::span<std::byte> bytes) const;
  /// Cuts the file to `size` bytes (or fills it up with zeros); append() goes on there.
  Status resize(uint64_t size);
  /// Where append() writes next.
  uint64_t size() const { return end; }

  /// The file is on the disk under its final name after this; nothing may be written any more. After an error the old
  /// file stands as it was.
  Status commit();

  /// The final name.
  const std::string &path() const { return finalPath; }
  /// The open descriptor, for writers that bring their own stream (it does not move append()'s end).
  int descriptor() const { return fd; }

private:
  AtomicFile(std::string path, std::string temporary, int fd)
      : finalPath(std::move(path)), temporaryPath(std::move(temporary)), fd(fd) {}
  Error systemError(const char *action) const;
  Status giveName();
  void drop();

  std::string finalPath;
  std::string temporaryPath; ///< empty: nameless, or committed
  int fd = -1;
  uint64_t end = 0;
};

} // namespace llmc
