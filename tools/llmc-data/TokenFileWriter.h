// Writes tokens in llm.c's format: 256 int32 (magic 20240520, version 1, number of tokens, zeros), then uint16 tokens,
// all little-endian. The number of tokens is known only at the end, so the header is written last, and the validation
// part is then cut off the tail: one pass over the text, in constant memory.
#pragma once

#include "runtime/AtomicFile.h"
#include "runtime/Status.h"

#include <cstdint>
#include <span>
#include <string>

namespace llmc {

inline constexpr int32_t kTokenFileMagic = 20240520;
inline constexpr int32_t kTokenFileVersion = 1;
inline constexpr uint64_t kTokenHeaderBytes = 256 * sizeof(int32_t);

class TokenFileWriter {
public:
  /// Opens a temporary file beside `path`; nothing is seen under that name before finish().
  static Result<TokenFileWriter> create(const std::string &path);

  /// Appends tokens. Fails on a write error and above 2^31 - 1 tokens, which the header can't count.
  Status append(std::span<const uint16_t> tokens);
  /// Tokens appended so far.
  uint64_t numTokens() const { return tokens; }

  /// The last `numLast` tokens become a file of their own at `tailPath`, the others stay; both appear now. With numLast
  /// == 0 there is no second file. Needs numLast <= numTokens().
  Status finish(uint64_t numLast, const std::string &tailPath);

private:
  explicit TokenFileWriter(AtomicFile file) : file(std::move(file)) {}
  AtomicFile file;
  uint64_t tokens = 0;
};

} // namespace llmc
