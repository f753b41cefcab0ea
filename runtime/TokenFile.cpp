// The format is told by the first bytes. Whatever is neither llm.c nor NumPy is raw uint16, so what looks like one of
// the two with a damaged header is refused rather than trained on.
#include "runtime/TokenFile.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

namespace {
constexpr int32_t kLlmcMagic = 20240520;
constexpr int32_t kLlmcMagicLlama3 = 20240801;
constexpr int32_t kLlmcVersion = 1;
constexpr uint64_t kLlmcHeaderBytes = 1024;
constexpr std::string_view kNpyMagic("\x93NUMPY", 6);
constexpr uint64_t kMaxNpyHeaderBytes = 1 << 16;
} // namespace

Result<TokenFile> TokenFile::open(const std::string &path) {
  // Without O_NONBLOCK a pipe would wait for its writer; on a file it changes nothing.
  TokenFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.descriptor < 0)
    return Error{path + ": cannot be opened: " + std::strerror(errno)};
  struct stat info;
  if (fstat(file.descriptor, &info) != 0 || !S_ISREG(info.st_mode))
    return Error{path + ": not a regular file"};
  file.fileBytes = static_cast<uint64_t>(info.st_size);
  if (Status status = file.readHeader(); !status)
    return inContext(path, status.error());
  return file;
}

TokenFile::TokenFile(TokenFile &&other) noexcept { *this = std::move(other); }

TokenFile &TokenFile::operator=(TokenFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(descriptor, other.descriptor);
  std::swap(formatName, other.formatName);
  std::swap(fileBytes, other.fileBytes);
  std::swap(dataOffset, other.dataOffset);
  std::swap(count, other.count);
  std::swap(tokenBytes, other.tokenBytes);
  std::swap(isSigned, other.isSigned);
  return *this;
}

TokenFile::~TokenFile() {
  if (descriptor >= 0)
    close(descriptor);
}

Status TokenFile::readBytes(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    ssize_t got = pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0)
      return Error{fmt::format("cannot read at byte {}: {}", offset, std::strerror(errno))};
    if (got == 0)
      return Error{fmt::format("ends at byte {}, it was longer when it was opened", offset)};
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return {};
}

static int32_t intAt(std::span<const std::byte> head, size_t index) {
  int32_t value = 0;
  if (head.size() >= (index + 1) * sizeof(value))
    std::memcpy(&value, &head[index * sizeof(value)], sizeof(value));
  return value;
}

Status TokenFile::readHeader() {
  std::vector<std::byte> head(std::min(fileBytes, kLlmcHeaderBytes));
  LLMC_RETURN_IF_ERROR(readBytes(0, head));
  std::string_view text(reinterpret_cast<const char *>(head.data()), head.size());
  if (intAt(head, 0) == kLlmcMagic)
    return readLlmcHeader(head);
  if (text.starts_with(kNpyMagic))
    return readNpyHeader(head);
  return readRaw(head);
}

Status TokenFile::readLlmcHeader(std::span<const std::byte> head) {
  formatName = "llm.c";
  if (head.size() < kLlmcHeaderBytes)
    return Error{fmt::format("truncated llm.c header: {} bytes, expected {}", head.size(), kLlmcHeaderBytes)};
  if (intAt(head, 1) != kLlmcVersion)
    return Error{fmt::format("llm.c token file of version {}, expected {} at byte 4", intAt(head, 1), kLlmcVersion)};
  int32_t stated = intAt(head, 2);
  uint64_t dataBytes = fileBytes - kLlmcHeaderBytes;
  if (stated < 0 || dataBytes != static_cast<uint64_t>(stated) * tokenBytes)
    return Error{fmt::format("its header at byte 8 counts {} tokens, but {} bytes follow: expected {} a token", stated,
                             dataBytes, tokenBytes)};
  dataOffset = kLlmcHeaderBytes;
  count = static_cast<uint64_t>(stated);
  return {};
}

Status TokenFile::readRaw(std::span<const std::byte> head) {
  formatName = "raw uint16";
  if (filePath.ends_with(".npy"))
    return Error{"bad magic at byte 0: a .npy file starts with \\x93NUMPY"};
  if (intAt(head, 0) == kLlmcMagicLlama3)
    return Error{
        fmt::format("llm.c token file with magic {} (Llama 3, uint32): expected {}", kLlmcMagicLlama3, kLlmcMagic)};
  // Everything but the magic says llm.c: no one's raw tokens look like that.
  int32_t stated = intAt(head, 2);
  if (head.size() == kLlmcHeaderBytes && intAt(head, 1) == kLlmcVersion && stated >= 0 &&
      fileBytes - kLlmcHeaderBytes == static_cast<uint64_t>(stated) * tokenBytes)
    return Error{fmt::format("bad magic {} at byte 0: an llm.c token file has {}", intAt(head, 0), kLlmcMagic)};
  if (fileBytes % tokenBytes != 0)
    return Error{fmt::format("{} bytes is no whole number of uint16 tokens, and no known magic at byte 0", fileBytes)};
  count = fileBytes / tokenBytes;
  return {};
}

/// The value after 'key': in a .npy header, up to the comma that ends it (or the closing bracket of a tuple).
static std::string_view npyField(std::string_view header, std::string_view key) {
  size_t at = header.find("'" + std::string(key) + "'");
  at = at == std::string_view::npos ? at : header.find(':', at);
  if (at == std::string_view::npos)
    return {};
  size_t begin = header.find_first_not_of(' ', at + 1);
  if (begin == std::string_view::npos)
    return {};
  size_t end = header[begin] == '(' ? header.find(')', begin) : header.find_first_of(",}", begin);
  if (end == std::string_view::npos)
    return {};
  return header.substr(begin, end - begin + (header[begin] == '(' ? 1 : 0));
}

/// The length in "(N,)".
static std::optional<uint64_t> npyLength(std::string_view shape) {
  uint64_t length = 0;
  const char *end = shape.data() + shape.size();
  if (!shape.starts_with('('))
    return std::nullopt;
  auto [rest, error] = std::from_chars(shape.data() + 1, end, length);
  if (error != std::errc() || std::string_view(rest, static_cast<size_t>(end - rest)) != ",)")
    return std::nullopt;
  return length;
}

Status TokenFile::readNpyHeader(std::span<const std::byte> head) {
  formatName = "npy";
  constexpr size_t kPrefix = kNpyMagic.size() + 2;
  if (head.size() < kPrefix + 4)
    return Error{"truncated .npy header"};
  // Version 1 has a two-byte length, versions 2 and 3 a four-byte one.
  int major = std::to_integer<int>(head[kNpyMagic.size()]);
  size_t lengthBytes = major == 1 ? 2 : 4;
  if (major < 1 || major > 3)
    return Error{fmt::format(".npy version {} at byte 6, expected 1 to 3", major)};
  uint32_t headerBytes = 0;
  std::memcpy(&headerBytes, &head[kPrefix], lengthBytes);
  dataOffset = kPrefix + lengthBytes + headerBytes;
  if (headerBytes > kMaxNpyHeaderBytes || dataOffset > fileBytes)
    return Error{fmt::format("truncated .npy header: {} bytes stated at byte {}, the file has {}", headerBytes, kPrefix,
                             fileBytes)};
  std::string header(headerBytes, '\0');
  LLMC_RETURN_IF_ERROR(readBytes(kPrefix + lengthBytes, std::as_writable_bytes(std::span(header))));

  std::string_view type = npyField(header, "descr");
  isSigned = type != "'<u2'";
  tokenBytes = type == "'<u2'" ? 2 : type == "'<i4'" ? 4 : type == "'<i8'" ? 8 : 0;
  if (tokenBytes == 0)
    return Error{fmt::format(".npy of type {}: expected uint16, int32 or int64 ('<u2', '<i4', '<i8')", type)};
  std::optional<uint64_t> length = npyLength(npyField(header, "shape"));
  if (!length)
    return Error{fmt::format(".npy of shape {}: expected one dimension", npyField(header, "shape"))};
  if ((fileBytes - dataOffset) % tokenBytes != 0 || (fileBytes - dataOffset) / tokenBytes != *length)
    return Error{fmt::format("its header counts {} tokens, but {} bytes follow: expected {} a token", *length,
                             fileBytes - dataOffset, tokenBytes)};
  count = *length;
  return {};
}

Status TokenFile::read(uint64_t first, std::span<int64_t> tokens) const {
  assert(first <= count && tokens.size() <= count - first);
  // Read into the end of the destination, then widen from the front: a wide token never reaches a narrow one not yet
  // read.
  std::span<std::byte> bytes = std::as_writable_bytes(tokens).last(tokens.size() * tokenBytes);
  if (Status status = readBytes(byteOffset(first), bytes); !status)
    return inContext(filePath, status.error());
  for (size_t i = 0; i < tokens.size(); ++i) {
    int64_t value = 0;
    std::memcpy(&value, &bytes[i * tokenBytes], tokenBytes);
    if (isSigned && tokenBytes == sizeof(int32_t))
      value = static_cast<int32_t>(value);
    tokens[i] = value;
  }
  return {};
}

} // namespace llmc
