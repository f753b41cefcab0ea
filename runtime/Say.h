// What people are told, on a stream that may be full or closed: work is never lost over it. The stream remembers that
// it did not take everything (std::ferror), and the tool says so when it ends.
#pragma once

#include <cstdio>
#include <fmt/format.h>
#include <string>
#include <utility>

namespace llmc {

/// fmt::print without its exception.
template <typename... Args> void say(std::FILE *out, fmt::format_string<Args...> format, Args &&...args) {
  std::string text = fmt::format(format, std::forward<Args>(args)...);
  (void)std::fwrite(text.data(), 1, text.size(), out);
}
template <typename... Args> void say(fmt::format_string<Args...> format, Args &&...args) {
  say(stdout, format, std::forward<Args>(args)...);
}

} // namespace llmc
