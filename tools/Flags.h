// What every tool's main does alike: reads the flags, and ends with 0 (done), 1 (the input or the machine) or 2 (wrong
// flags).
#pragma once

#include "runtime/Say.h"
#include "runtime/Status.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace llmc {

/// The end of every main: `status`, or 1 where it is 0 and standard output did not take all that was printed.
inline int finish(const CLI::App &app, int status) {
  std::cout.flush();
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good())
    return status;
  say(stderr, "{}: standard output did not take all that was printed\n", app.get_name());
  return status == 0 ? 1 : status;
}

/// Says that the flags are wrong, for what CLI11 can't check by itself. The exit status.
inline int wrongFlags(const CLI::App &app, const std::string &message) {
  say(stderr, "{}: {}\nRun with --help for more information.\n", app.get_name(), message);
  return 2;
}

/// Reads the flags into what `app` is bound to. `reserved` are flags that later versions take: absent from --help, and
/// refused. The exit status when the tool is finished with that (--help, --version, wrong flags: printed here), else
/// nothing.
inline std::optional<int> parseFlags(CLI::App &app, int argc, char **argv, std::span<const char *const> reserved = {}) {
  app.set_version_flag("--version", app.get_name() + " " LLMC_VERSION);
  std::vector<std::string> ignored;
  for (const char *name : reserved)
    app.add_option(name, ignored)->group("")->expected(0, 1);
  app.failure_message([](const CLI::App *tool, const CLI::Error &error) {
    return fmt::format("{}: {}\nRun with --help for more information.\n", tool->get_name(), error.what());
  });
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError &error) {
    return finish(app, app.exit(error) == 0 ? 0 : 2);
  }
  for (const char *name : reserved)
    if (app.count(name) > 0)
      return wrongFlags(app, fmt::format("{}: not built yet", name));
  // What an unset variable of a shell leaves: `--data "$DATA"` must not train on random tokens.
  for (const CLI::Option *option : app.get_options())
    if (std::ranges::count(option->results(), "") > 0)
      return wrongFlags(app, fmt::format("{}: has an empty value", option->get_name()));
  return std::nullopt;
}

/// Says why the tool could not do its work. The exit status.
inline int failed(const CLI::App &app, const Error &error) {
  say(stderr, "{}: {}\n", app.get_name(), error.message);
  return 1;
}

} // namespace llmc
