// Protobuf's wire format (https://protobuf.dev/programming-guides/encoding): fields of a message as they lie in memory.
// Both ends of a model's way need it: the importer strips the weights from the model's bytes (and finds them where they
// lie in the mapped file), the runtime puts the trained ones back; neither loses a byte of what it does not know. A tag
// is number << 3 | type; type 0 is a varint, 1 eight bytes, 2 length-delimited, 5 four bytes. Groups (3 and 4) are long
// deprecated and appear in no model: they are damage. Includes nothing of ours, so that the importer may include it.
#pragma once

#include <cstdint>
#include <string_view>

namespace llmc {

inline constexpr uint32_t kWireVarint = 0, kWireFixed64 = 1, kWireBytes = 2, kWireFixed32 = 5;

/// One field of a message. The views point into the message.
struct WireField {
  uint32_t number = 0;
  bool isLengthDelimited = false;
  std::string_view whole;   ///< tag, length and payload
  std::string_view length;  ///< the length's bytes, which precede the payload; empty unless length-delimited
  std::string_view payload; ///< the bytes of a length-delimited field, else the number's bytes
};

/// Walks the fields of one message, every length checked against the message's end.
class WireReader {
public:
  explicit WireReader(std::string_view message) : rest(message) {}

  /// The next field; false at the end or at damage.
  bool next(WireField &field) {
    if (damaged || rest.empty())
      return false;
    damaged = true; // until the field proves whole
    const char *begin = rest.data();
    uint64_t tag = 0, value = 0;
    if (!readVarint(tag) || tag >> 3 == 0 || tag >> 3 > kMaxNumber)
      return false;
    const char *afterTag = rest.data();
    uint64_t size = 0;
    switch (tag & 7) {
    case kWireVarint:
      if (!readVarint(value))
        return false;
      break;
    case kWireFixed64:
      size = 8;
      break;
    case kWireBytes:
      if (!readVarint(size))
        return false;
      break;
    case kWireFixed32:
      size = 4;
      break;
    default:
      return false;
    }
    if (size > rest.size())
      return false;
    field.number = static_cast<uint32_t>(tag >> 3);
    field.isLengthDelimited = (tag & 7) == kWireBytes;
    const char *payload = (tag & 7) == kWireVarint ? afterTag : rest.data();
    rest.remove_prefix(size);
    field.whole = between(begin, rest.data());
    field.length = field.isLengthDelimited ? between(afterTag, payload) : std::string_view();
    field.payload = between(payload, rest.data());
    damaged = false;
    return true;
  }

  /// Whether the walk stopped before the end.
  bool isDamaged() const { return damaged; }
  /// Where the walk is.
  const char *position() const { return rest.data(); }

private:
  static constexpr uint64_t kMaxNumber = (1 << 29) - 1;

  static std::string_view between(const char *begin, const char *end) {
    return {begin, static_cast<size_t>(end - begin)};
  }

  bool readVarint(uint64_t &value) {
    value = 0;
    for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
      auto byte = static_cast<uint8_t>(rest.front());
      rest.remove_prefix(1);
      value |= uint64_t(byte & 0x7f) << shift;
      if (!(byte & 0x80))
        return true;
    }
    return false;
  }

  std::string_view rest;
  bool damaged = false;
};

/// Appends to a std::string or a vector of bytes.
template <typename Bytes> void appendVarint(Bytes &bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes.push_back(static_cast<typename Bytes::value_type>(value | 0x80));
  bytes.push_back(static_cast<typename Bytes::value_type>(value));
}
template <typename Bytes> void appendTag(Bytes &bytes, uint32_t number, uint32_t type) {
  appendVarint(bytes, uint64_t(number) << 3 | type);
}
/// A tag and a length: what precedes a length-delimited payload.
template <typename Bytes> void appendHeader(Bytes &bytes, uint32_t number, uint64_t length) {
  appendTag(bytes, number, kWireBytes);
  appendVarint(bytes, length);
}
template <typename Bytes> void appendBytes(Bytes &bytes, std::string_view text) {
  bytes.insert(bytes.end(), text.begin(), text.end());
}

} // namespace llmc
