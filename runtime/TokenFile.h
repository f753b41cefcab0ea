// A file of tokens, read by position: llm.c's .bin (256 int32 of header, uint16), nanoGPT's raw uint16, or a
// one-dimensional .npy of uint16, int32 or int64. Tokens are read where they are needed and never held as a whole;
// plain reads instead of a mapping, because a file that shrinks meanwhile must be an error and not a signal, and mapped
// pages count as peak memory.
#pragma once

#include "runtime/Plan.h"

namespace llmc {

class TokenFile {
public:
  /// Opens a file and checks its header against its size. Errors name the path.
  static Result<TokenFile> open(const std::string &path);

  TokenFile(TokenFile &&other) noexcept;
  TokenFile &operator=(TokenFile &&other) noexcept;
  ~TokenFile();

  const std::string &path() const { return filePath; }
  /// "llm.c", "raw uint16" or "npy"
  const char *format() const { return formatName; }
  uint64_t numTokens() const { return count; }
  /// Where in the file a token stands.
  uint64_t byteOffset(uint64_t index) const { return dataOffset + index * tokenBytes; }
  /// Reads tokens [first, first + tokens.size()), which must be in the file. May be called from several threads.
  Status read(uint64_t first, std::span<int64_t> tokens) const;

private:
  TokenFile(std::string path, int descriptor) : filePath(std::move(path)), descriptor(descriptor) {}
  Status readHeader();
  Status readLlmcHeader(std::span<const std::byte> head);
  Status readNpyHeader(std::span<const std::byte> head);
  Status readRaw(std::span<const std::byte> head);
  Status readBytes(uint64_t offset, std::span<std::byte> bytes) const;

  std::string filePath;
  int descriptor = -1;
  const char *formatName = "";
  uint64_t fileBytes = 0, dataOffset = 0, count = 0, tokenBytes = 2;
  bool isSigned = false;
};

} // namespace llmc
