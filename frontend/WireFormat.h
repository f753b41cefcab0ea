// Protobuf's wire format: fields of a message as they lie in memory. The importer walks a model's bytes before anything
// parses them, so that weights are found where they lie in the mapped file (and never copied), and so that the stripped
// model keeps every byte that is not a weight.
#pragma once

#include "llvm/ADT/StringRef.h"

#include <cstdint>
#include <vector>

namespace llmc {

/// One field of a message. Both views point into the message.
struct WireField {
  uint32_t number = 0;
  llvm::StringRef whole;   ///< tag, length and payload
  llvm::StringRef payload; ///< the bytes of a length-delimited field, else the number's bytes
  bool isLengthDelimited = false;
};

/// Walks the fields of one message, every length checked against the message's end.
class WireReader {
public:
  explicit WireReader(llvm::StringRef message) : rest(message) {}
  /// The next field; false at the end or at damage.
  bool next(WireField &field);
  /// Whether the walk stopped before the end.
  bool isDamaged() const { return damaged; }
  /// Where the walk is.
  const char *position() const { return rest.data(); }

private:
  bool readVarint(uint64_t &value);
  llvm::StringRef rest;
  bool damaged = false;
};

/// Appends a tag and a length: what precedes a length-delimited payload.
void appendHeader(std::vector<uint8_t> &bytes, uint32_t number, uint64_t length);
void appendBytes(std::vector<uint8_t> &bytes, llvm::StringRef text);

} // namespace llmc
