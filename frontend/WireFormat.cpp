// https://protobuf.dev/programming-guides/encoding: a tag is number << 3 | type; type 0 is a varint, 1 eight bytes, 2
// length-delimited, 5 four bytes. Groups (3 and 4) are long deprecated and appear in no model: they are damage.
#include "frontend/WireFormat.h"

namespace llmc {

bool WireReader::readVarint(uint64_t &value) {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    uint8_t byte = rest.front();
    rest = rest.drop_front();
    value |= uint64_t(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return true;
  }
  return false;
}

bool WireReader::next(WireField &field) {
  if (damaged || rest.empty())
    return false;
  damaged = true; // until the field proves whole
  const char *begin = rest.data();
  uint64_t tag, length = 0;
  if (!readVarint(tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff)
    return false;
  field.number = uint32_t(tag >> 3);
  const char *payload = rest.data();
  switch (tag & 7) {
  case 0:
    if (!readVarint(length))
      return false;
    length = rest.data() - payload;
    rest = {payload, size_t(rest.end() - payload)};
    break;
  case 1:
    length = 8;
    break;
  case 2:
    if (!readVarint(length))
      return false;
    break;
  case 5:
    length = 4;
    break;
  default:
    return false;
  }
  if (length > rest.size())
    return false;
  field.isLengthDelimited = (tag & 7) == 2;
  field.payload = rest.take_front(length);
  rest = rest.drop_front(length);
  field.whole = {begin, size_t(rest.data() - begin)};
  damaged = false;
  return true;
}

static void appendVarint(std::vector<uint8_t> &bytes, uint64_t value) {
  for (; value >= 0x80; value >>= 7)
    bytes.push_back(uint8_t(value) | 0x80);
  bytes.push_back(uint8_t(value));
}

void appendHeader(std::vector<uint8_t> &bytes, uint32_t number, uint64_t length) {
  appendVarint(bytes, uint64_t(number) << 3 | 2);
  appendVarint(bytes, length);
}

void appendBytes(std::vector<uint8_t> &bytes, llvm::StringRef text) {
  bytes.insert(bytes.end(), text.bytes_begin(), text.bytes_end());
}

} // namespace llmc
