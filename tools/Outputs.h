// Files that a tool writes must not be files that it reads, nor one another: a plan is mapped while it runs, and what
// an export would replace is gone.
#pragma once

#include <filesystem>
#include <fmt/core.h>
#include <string>
#include <string_view>
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

} // namespace llmc
