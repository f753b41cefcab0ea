// Models taken apart and put together again, read with a tiny reader of the wire format.
#include "runtime/OnnxSplice.h"

#include "runtime/ElementConvert.h"
#include "tests/runtime/TinyPlan.h"

#include <cstring>
#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

using ::testing::HasSubstr;

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7)
    bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string field(uint64_t number, const std::string &content) {
  return varint(number << 3 | 2) + varint(content.size()) + content;
}

std::string number(uint64_t fieldNumber, uint64_t value) { return varint(fieldNumber << 3) + varint(value); }

/// A TensorProto without payload: dims, data_type, name.
std::string tensor(const std::string &name, std::vector<uint64_t> dims, uint64_t type) {
  std::string bytes;
  for (uint64_t dimension : dims)
    bytes += number(1, dimension);
  return bytes + number(2, type) + field(8, name);
}

/// Follows a path of (field, how many of them to skip) and returns the content of the last.
std::string follow(std::string message, std::vector<std::pair<uint64_t, int>> path) {
  for (auto [wanted, skip] : path) {
    size_t at = 0;
    auto read = [&] {
      uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        uint64_t byte = static_cast<unsigned char>(message.at(at++));
        value |= (byte & 0x7F) << shift;
        if (byte < 0x80)
          return value;
      }
    };
    std::string found;
    for (bool isFound = false; !isFound;) {
      uint64_t key = read(), size = read(); // a varint field's value is its "size"
      if ((key & 7) == 0) {
        if (key >> 3 == wanted && skip-- == 0)
          return std::to_string(size);
        continue;
      }
      isFound = key >> 3 == wanted && skip-- == 0;
      if (isFound)
        found = message.substr(at, size);
      if (at + size > message.size()) {
        ADD_FAILURE() << "a length of " << size << " passes the end";
        return "";
      }
      at += size;
    }
    message = found;
  }
  return message;
}

class OnnxSpliceTest : public ::testing::Test {
protected:
  /// A model with the trained "table" (5, 4) as an initializer and "bias" (4) in a Constant node, and an untrained one
  /// between.
  OnnxSpliceTest() {
    std::string table = tensor("table", {4, 5}, 1), bias = tensor("bias", {4}, 10);
    std::string constant = field(5, field(1, "value") + field(5, bias) + number(20, 4));
    std::string graph = field(1, field(4, "Constant") + constant) + field(2, "g") + field(5, table) +
                        field(5, tensor("eps", {}, 1) + field(9, "\x01\x02\x03\x04"));
    model = number(1, 8) + field(7, graph) + field(8, number(2, 18));
    tiny.plan.splice = {{"table", ElementType::f32, "transpose", model.find(table) + table.size(), 80},
                        {"bias", ElementType::f16, "", model.find(bias) + bias.size(), 8}};
  }

  Status write(uint64_t maxInlineBytes = kMaxInlineModelBytes) {
    auto read = [&](const StateEntry &entry, uint64_t offset, std::span<std::byte> dst) -> Status {
      const std::vector<float> &values = entry.name == "table" ? tiny.table : tiny.bias;
      std::memcpy(dst.data(), reinterpret_cast<const char *>(values.data()) + offset, dst.size());
      return {};
    };
    return writeTrainedModel(folder.path("out.onnx"), tiny.plan, std::as_bytes(std::span(model)), read, maxInlineBytes);
  }

  /// The table's payload: (5, 4) stored as (4, 5).
  std::string transposedTable() const {
    std::string bytes;
    for (size_t column = 0; column < 4; ++column)
      for (size_t row = 0; row < 5; ++row)
        bytes.append(reinterpret_cast<const char *>(&tiny.table[row * 4 + column]), 4);
    return bytes;
  }

  TestFolder folder;
  TinyPlan tiny;
  std::string model;
};

constexpr std::pair<uint64_t, int> kGraph{7, 0}, kTable{5, 0}, kEps{5, 1};

TEST_F(OnnxSpliceTest, InsertsPayloadsAndCorrectsLengths) {
  Status status = write();
  ASSERT_TRUE(status) << status.error().message;
  std::string out = readFile(folder.path("out.onnx"));
  EXPECT_EQ(follow(out, {kGraph, kTable, {8, 0}}), "table");
  EXPECT_EQ(follow(out, {kGraph, kTable, {9, 0}}), transposedTable());
  EXPECT_EQ(follow(out, {kGraph, kEps, {9, 0}}), "\x01\x02\x03\x04");
  EXPECT_EQ(follow(out, {{8, 0}, {2, 0}}), "18") << "what follows the graph is still there";
  std::string halves = follow(out, {kGraph, {1, 0}, {5, 0}, {5, 0}, {9, 0}});
  EXPECT_EQ(halves, std::string("\x00\xBC\x00\xC0\x00\xC2\x00\xC4", 8)); // -1 -2 -3 -4
  EXPECT_FALSE(std::filesystem::exists(folder.path("out.onnx.data")));
}

TEST_F(OnnxSpliceTest, LargeModelsGoToExternalData) {
  ASSERT_TRUE(write(50));
  std::string out = readFile(folder.path("out.onnx")), data = readFile(folder.path("out.onnx.data"));
  auto entry = [&](int index, uint64_t part) { return follow(out, {kGraph, kTable, {13, index}, {part, 0}}); };
  EXPECT_EQ(entry(0, 1) + "=" + entry(0, 2), "location=out.onnx.data");
  EXPECT_EQ(entry(1, 1) + "=" + entry(1, 2), "offset=4096");
  EXPECT_EQ(entry(2, 1) + "=" + entry(2, 2), "length=80");
  EXPECT_EQ(follow(out, {kGraph, kTable, {14, 0}}), "1");
  EXPECT_EQ(data.substr(4096), transposedTable());
  EXPECT_EQ(data.substr(0, 8), std::string("\x00\xBC\x00\xC0\x00\xC2\x00\xC4", 8));
}

TEST_F(OnnxSpliceTest, RefusesAPlaceThatIsNoTensorsEnd) {
  for (uint64_t place = 0; place <= model.size(); ++place) {
    if (place == tiny.plan.splice[0].modelOffset || place == tiny.plan.splice[1].modelOffset)
      continue;
    auto saved = tiny.plan.splice;
    tiny.plan.splice = {saved[0]};
    tiny.plan.splice[0].modelOffset = place;
    Status status = write();
    // The untrained tensor's end is one, too.
    if (!status) {
      EXPECT_THAT(status.error().message, HasSubstr("is not the end of a tensor"));
      EXPECT_FALSE(std::filesystem::exists(folder.path("out.onnx")));
    } else {
      EXPECT_EQ(follow(readFile(folder.path("out.onnx")), {kGraph, kEps, {9, 1}}), transposedTable());
      std::filesystem::remove(folder.path("out.onnx"));
    }
    tiny.plan.splice = saved;
  }
}

TEST_F(OnnxSpliceTest, SurvivesDamagedModels) {
  std::string good = model;
  for (size_t i = 0; i < good.size(); ++i)
    for (int bit = 0; bit < 8; ++bit) {
      model = good;
      model[i] = static_cast<char>(model[i] ^ (1 << bit));
      (void)write().ok();
    }
  model = good.substr(0, good.size() / 2);
  EXPECT_THAT(write().error().message, HasSubstr("the stored model cannot be read at byte"));
  model.clear();
  EXPECT_THAT(write().error().message, HasSubstr("holds no source model"));
}

TEST_F(OnnxSpliceTest, RefusesDeepNesting) {
  std::string inner = tensor("table", {4, 5}, 1), graph = field(5, inner);
  for (int depth = 0; depth < 100; ++depth) // a graph in an attribute of a node of a graph
    graph = field(1, field(5, field(6, graph)));
  model = field(7, graph);
  tiny.plan.splice.resize(1);
  tiny.plan.splice[0].modelOffset = model.find(inner) + inner.size();
  EXPECT_THAT(write().error().message, HasSubstr("nested too deeply"));
}

TEST(ElementConvert, RoundsToNearestEven) {
  EXPECT_EQ(toBf16(1.0f), 0x3F80);
  EXPECT_EQ(toBf16(1.00390625f), 0x3F80);   // halfway, to even
  EXPECT_EQ(toBf16(1.01171875f), 0x3F82);   // halfway, to even above
  EXPECT_EQ(toBf16(3.4028235e38f), 0x7F80); // rounds to infinity
  EXPECT_EQ(toBf16(NAN) & 0x7FFF, 0x7FC0);
  for (uint32_t half = 0; half < 0x7F80; ++half) // every finite value is exact both ways
    ASSERT_EQ(toBf16(floatFromBf16(static_cast<uint16_t>(half))), half);
  // Every half there is converts back to itself, and midpoints go to the even one.
  for (uint32_t half = 0; half < 0x7C00; ++half) {
    _Float16 value, next;
    uint16_t bits = static_cast<uint16_t>(half), nextBits = static_cast<uint16_t>(half + 1);
    std::memcpy(&value, &bits, 2);
    std::memcpy(&next, &nextBits, 2);
    float exact = static_cast<float>(value);
    ASSERT_EQ(toF16(exact), half);
    ASSERT_EQ(toF16(-exact), half | 0x8000);
    if (half + 1 == 0x7C00)
      break;
    float middle = (exact + static_cast<float>(next)) / 2;
    ASSERT_EQ(toF16(middle), half % 2 == 0 ? half : half + 1) << half;
    ASSERT_EQ(toF16(std::nextafter(middle, 1e9f)), half + 1);
    ASSERT_EQ(toF16(std::nextafter(middle, 0.0f)), half);
  }
  EXPECT_EQ(toF16(65519.9f), 0x7BFF);
  EXPECT_EQ(toF16(65520.0f), 0x7C00);
  EXPECT_EQ(toF16(1e-8f), 0);
  EXPECT_EQ(toF16(NAN), 0x7E00);
}

} // namespace
} // namespace llmc::test
