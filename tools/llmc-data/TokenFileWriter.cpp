#include "tools/llmc-data/TokenFileWriter.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <fmt/core.h>
#include <limits>
#include <vector>

namespace llmc {

static_assert(std::endian::native == std::endian::little,
              "token files are little-endian and written as they lie in memory");

static constexpr uint64_t kMaxTokens = std::numeric_limits<int32_t>::max();
static constexpr uint64_t kCopyBytes = 1 << 20;

static Status writeHeader(AtomicFile &file, uint64_t numTokens) {
  std::array<int32_t, 256> header = {kTokenFileMagic, kTokenFileVersion, static_cast<int32_t>(numTokens)};
  return file.writeAt(0, std::as_bytes(std::span(header)));
}

Result<TokenFileWriter> TokenFileWriter::create(const std::string &path) {
  Result<AtomicFile> file = AtomicFile::create(path);
  if (!file)
    return file.error();
  LLMC_RETURN_IF_ERROR(file->resize(kTokenHeaderBytes));
  return TokenFileWriter(std::move(*file));
}

Status TokenFileWriter::append(std::span<const uint16_t> more) {
  if (more.size() > kMaxTokens - tokens)
    return Error{fmt::format("{}: more than {} tokens, which is all a token file's header can count; split the text",
                             file.path(), kMaxTokens)};
  LLMC_RETURN_IF_ERROR(file.append(std::as_bytes(more)));
  tokens += more.size();
  return {};
}

/// Moves [begin, file.size()) of `file` to the end of `tail`.
static Status moveTail(AtomicFile &file, uint64_t begin, AtomicFile &tail) {
  std::vector<std::byte> buffer(std::min(kCopyBytes, file.size() - begin));
  for (uint64_t offset = begin; offset < file.size(); offset += buffer.size()) {
    buffer.resize(std::min<uint64_t>(kCopyBytes, file.size() - offset));
    LLMC_RETURN_IF_ERROR(file.readAt(offset, buffer));
    LLMC_RETURN_IF_ERROR(tail.append(buffer));
  }
  return file.resize(begin);
}

Status TokenFileWriter::finish(uint64_t numLast, const std::string &tailPath) {
  assert(numLast <= tokens);
  uint64_t numFirst = tokens - numLast;
  LLMC_RETURN_IF_ERROR(writeHeader(file, numFirst));
  if (numLast == 0)
    return file.commit();

  Result<AtomicFile> tail = AtomicFile::create(tailPath);
  if (!tail)
    return tail.error();
  LLMC_RETURN_IF_ERROR(tail->resize(kTokenHeaderBytes));
  LLMC_RETURN_IF_ERROR(writeHeader(*tail, numLast));
  LLMC_RETURN_IF_ERROR(moveTail(file, kTokenHeaderBytes + numFirst * sizeof(uint16_t), *tail));
  LLMC_RETURN_IF_ERROR(tail->commit());
  return file.commit();
}

} // namespace llmc
