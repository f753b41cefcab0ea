// The flag speaks before the environment.
#include "runtime/MeetingPlace.h"

#include <charconv>
#include <filesystem>
#include <fmt/format.h>
#include <unistd.h>

namespace llmc {

std::string MeetingPlace::describe() const {
  if (kind == Kind::file)
    return "file:" + path;
  return fmt::format("{}{}:{}", kind == Kind::torchStore ? "torchrun's store at " : "", host, port);
}

static Result<uint16_t> parsePort(const std::string &text) {
  uint16_t port = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0)
    return Error{fmt::format("'{}' is no port: expected 1 to 65535", text)};
  return port;
}

Result<MeetingPlace> parseMeetingPlace(const std::string &flag) {
  if (flag.starts_with("file:") && flag.size() > 5)
    return MeetingPlace{MeetingPlace::Kind::file, "", 0, flag.substr(5)};
  size_t colon = flag.rfind(':');
  if (colon == std::string::npos || colon == 0)
    return Error{fmt::format("expected HOST:PORT or file:PATH, found '{}'", flag)};
  Result<uint16_t> port = parsePort(flag.substr(colon + 1));
  LLMC_RETURN_IF_ERROR(port);
  std::string host = flag.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') // IPv6
    host = host.substr(1, host.size() - 2);
  return MeetingPlace{MeetingPlace::Kind::address, host, *port, ""};
}

Result<MeetingPlace> chooseMeetingPlace(const std::string &flag, const RankPlace &place,
                                        const Environment &environment) {
  if (!flag.empty())
    return parseMeetingPlace(flag);
  std::optional<std::string> host = environment("MASTER_ADDR"), port = environment("MASTER_PORT");
  if (host && port) {
    Result<uint16_t> number = parsePort(*port);
    if (!number)
      return inContext("MASTER_PORT", number.error());
    bool isStore = environment("TORCHELASTIC_USE_AGENT_STORE") == "True";
    return MeetingPlace{isStore ? MeetingPlace::Kind::torchStore : MeetingPlace::Kind::address, *host, *number, ""};
  }
  if (!place.job.empty() && place.localSize == place.worldSize) {
    std::error_code ignored;
    std::filesystem::path folder = std::filesystem::temp_directory_path(ignored);
    std::string name = fmt::format("llmc-{}-{}", ::geteuid(), place.job);
    for (char &letter : name)
      letter = letter == '/' ? '_' : letter;
    return MeetingPlace{MeetingPlace::Kind::file, "", 0, (folder / name).string()};
  }
  return Error{fmt::format("{} ranks, and no word where they meet: {} not set; or give --rendezvous HOST:PORT or "
                           "--rendezvous file:PATH",
                           place.worldSize,
                           host   ? "MASTER_PORT is"
                           : port ? "MASTER_ADDR is"
                                  : "MASTER_ADDR and MASTER_PORT are")};
}

} // namespace llmc
