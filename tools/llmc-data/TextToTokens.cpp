#include "tools/llmc-data/TextToTokens.h"

#include "tools/Outputs.h"
#include "tools/Progress.h"
#include "tools/llmc-data/TokenFileWriter.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <fmt/core.h>
#include <span>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace llmc {

static constexpr size_t kChunkBytes = 1 << 20;

namespace {

/// An open text; closes what it opened.
class TextFile {
public:
  static Result<TextFile> open(const std::string &path) {
    if (path == "-")
      return TextFile("standard input", STDIN_FILENO);
    int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0)
      return Error{path + ": cannot open: " + std::strerror(errno)};
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return TextFile(path, fd);
  }
  TextFile(TextFile &&other) noexcept : name(std::move(other.name)), fd(std::exchange(other.fd, -1)) {}
  TextFile &operator=(TextFile &&) = delete;
  ~TextFile() {
    if (fd > STDIN_FILENO)
      ::close(fd);
  }

  /// Reads up to `bytes.size()` bytes; 0 at the end.
  Result<size_t> read(std::span<unsigned char> bytes) {
    while (true) {
      ssize_t got = ::read(fd, bytes.data(), bytes.size());
      if (got >= 0)
        return static_cast<size_t>(got);
      if (errno != EINTR)
        return Error{name + ": cannot read: " + std::strerror(errno)};
    }
  }

private:
  TextFile(std::string name, int fd) : name(std::move(name)), fd(fd) {}
  std::string name;
  int fd;
};

} // namespace

std::string validationPath(const std::string &output) {
  std::filesystem::path path(output);
  std::string extension = path.extension().string();
  return path.replace_extension(".val" + extension).string();
}

/// Bytes of all texts together, 0 where one is a pipe or standard input.
static uint64_t totalBytes(const std::vector<std::string> &texts) {
  uint64_t total = 0;
  for (const std::string &text : texts) {
    struct stat info;
    if (text == "-" || ::stat(text.c_str(), &info) != 0 || !S_ISREG(info.st_mode))
      return 0;
    total += static_cast<uint64_t>(info.st_size);
  }
  return total;
}

/// An output must not replace a text that it is made from.
static Status checkNotAText(const std::string &output, const std::vector<std::string> &texts) {
  for (const std::string &text : texts) {
    std::error_code ignored; // a file that does not exist is not the same one; open() reports it
    if (text != "-" && std::filesystem::equivalent(output, text, ignored))
      return Error{output + ": cannot write: it is one of the input texts"};
  }
  return {};
}

static Status appendTexts(const std::vector<std::string> &texts, TokenFileWriter &writer) {
  Progress progress("tokenizing", totalBytes(texts));
  std::vector<unsigned char> bytes(kChunkBytes);
  std::vector<uint16_t> tokens(kChunkBytes);
  for (const std::string &path : texts) {
    Result<TextFile> text = TextFile::open(path);
    if (!text)
      return text.error();
    while (true) {
      Result<size_t> got = text->read(bytes);
      if (!got)
        return got.error();
      if (*got == 0)
        break;
      std::copy_n(bytes.begin(), *got, tokens.begin());
      LLMC_RETURN_IF_ERROR(writer.append(std::span(tokens).first(*got)));
      progress.update(writer.numTokens());
    }
  }
  return {};
}

Result<TextToTokensReport> textToTokens(const TextToTokensOptions &options) {
  std::string valPath = validationPath(options.output);
  LLMC_RETURN_IF_ERROR(checkNotAText(options.output, options.texts));
  if (options.valFraction > 0)
    LLMC_RETURN_IF_ERROR(checkNotAText(valPath, options.texts));

  if (options.valFraction > 0)
    LLMC_RETURN_IF_ERROR(checkOutputPlaces({{"--output", valPath}}));
  Result<TokenFileWriter> writer = TokenFileWriter::create(options.output);
  if (!writer)
    return writer.error();
  LLMC_RETURN_IF_ERROR(appendTexts(options.texts, *writer));

  uint64_t numTokens = writer->numTokens();
  std::string textName = options.texts.front() == "-" ? "standard input" : options.texts.front();
  if (numTokens == 0)
    return Error{textName + (options.texts.size() > 1 ? " and the others" : "") + ": the text is empty"};
  auto numVal = static_cast<uint64_t>(static_cast<double>(numTokens) * options.valFraction);
  if (options.valFraction > 0 && (numVal == 0 || numVal == numTokens))
    return Error{fmt::format("{}: a text of {} tokens is too short for --val-fraction {}", textName, numTokens,
                             options.valFraction)};
  LLMC_RETURN_IF_ERROR(writer->finish(numVal, valPath));
  return TextToTokensReport{numTokens - numVal, numVal};
}

} // namespace llmc
