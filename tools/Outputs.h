// Files that a tool writes must not be files that it reads, nor one another: a plan is mapped while it runs, and what
// an export would replace is gone. What can't be written is said before the work, not after it.
#pragma once

#include "runtime/AtomicFile.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace llmc {

/// A file under the flag that names it; without a path where the flag is not given.
struct NamedFile {
  std::string_view flag;
  std::string_view path;
};

/// Whether two paths lead to one file, which need not exist yet.
inline bool isSameFile(const std::filesystem::path &a, const std::filesystem::path &b) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (fs::equivalent(a, b, error))
    return true;
  auto whole = [](const fs::path &path) {
    std::error_code error;
    fs::path absolute = fs::absolute(path, error);
    fs::path canonical = fs::weakly_canonical(absolute, error);
    return error ? absolute.lexically_normal() : canonical;
  };
  return whole(a) == whole(b);
}

/// What is wrong with where the outputs go, or "": each must be a file of its own, and none an input.
inline std::string outputConflict(const std::vector<NamedFile> &outputs, const std::vector<NamedFile> &inputs) {
  auto conflict = [](const NamedFile &output, const NamedFile &other) -> std::string {
    if (output.path.empty() || other.path.empty() || !isSameFile(output.path, other.path))
      return "";
    return fmt::format("{} {} and {} {} are the same file", output.flag, output.path, other.flag, other.path);
  };
  for (size_t i = 0; i < outputs.size(); ++i) {
    for (const NamedFile &input : inputs)
      if (std::string message = conflict(outputs[i], input); !message.empty())
        return message;
    for (size_t j = 0; j < i; ++j)
      if (std::string message = conflict(outputs[i], outputs[j]); !message.empty())
        return message;
  }
  return "";
}

/// Whether each output could be made now; makes none. The error is that of writing it.
inline Status checkOutputPlaces(const std::vector<NamedFile> &outputs) {
  for (const NamedFile &output : outputs)
    if (!output.path.empty())
      LLMC_RETURN_IF_ERROR(AtomicFile::create(std::string(output.path)));
  return {};
}

/// Whether files could be made in a folder, which need not exist yet.
inline Status checkOutputFolder(const std::string &path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path existing = fs::absolute(path, error);
  while (!fs::exists(existing, error) && existing.has_relative_path())
    existing = existing.has_filename() ? existing.parent_path() : existing.parent_path().parent_path();
  if (!fs::is_directory(existing, error))
    return Error{path + ": cannot create: " + std::strerror(ENOTDIR)};
  if (::access(existing.c_str(), W_OK | X_OK) != 0)
    return Error{path + ": cannot create: " + std::strerror(errno)};
  return {};
}

/// The begin of every main. A file that outgrows the limit of the process is from here on an error that names it, as
/// one on a full disk is. Standard streams that the caller closed lead nowhere: else the first file opened would be
/// one, and what is printed would go into it.
inline void guardOutputs() {
  std::signal(SIGXFSZ, SIG_IGN);
  int fd = ::open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= STDERR_FILENO)
    fd = ::dup(fd);
  if (fd >= 0)
    ::close(fd);
}

} // namespace llmc
