// Storage types: bf16 rounds to nearest even and carries what is no number; booleans are bytes.
#include "tests/backend/codegen/ExecutableCode.h"
#include "tests/backend/codegen/FusionCase.h"

#include <bit>
#include <gtest/gtest.h>

namespace llmc {
namespace {

TEST(Storage, Bf16InAndOut) {
  for (int64_t cols : {1, 7, 16, 50, 768}) {
    std::string c = std::to_string(cols), full = "4x" + c + "xbf16";
    expectMatchesHost(
        {.space = {4, cols},
         .inputs = {full, "1x" + c + "xbf16", "4x1xbf16"},
         .body = "%0 = llmc.mul %a0, %a1 : (tensor<" + full + ">, tensor<1x" + c + "xbf16>) -> tensor<" + full + ">\n" +
                 "%1 = llmc.add %0, %a2 : (tensor<" + full + ">, tensor<4x1xbf16>) -> tensor<" + full + ">\n" +
                 "%2 = llmc.cast %1 : (tensor<" + full + ">) -> tensor<4x" + c + "xf32>\n" +
                 "%3 = llmc.reduce_sum %2 {axes = array<i64: 1>} : (tensor<4x" + c + "xf32>) -> tensor<4x1xf32>\n" +
                 "%4 = llmc.cast %3 : (tensor<4x1xf32>) -> tensor<4x1xbf16>\n" + "llmc.yield %1, %3, %4 : tensor<" +
                 full + ">, tensor<4x1xf32>, tensor<4x1xbf16>",
         .outputs = {full, "4x1xf32", "4x1xbf16"},
         .inPlace = {0}});
  }
}

/// Every upper half of an f32 with the lower halves around a tie.
TEST(Storage, Bf16RoundsToNearestEven) {
  std::vector<float> x;
  for (uint32_t high = 0; high < 0x10000; high += 3)
    for (uint32_t low : {0x0000u, 0x0001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      if (float value = std::bit_cast<float>(high << 16 | low);
          value == 0 || std::isnan(value) || std::isinf(value) || std::isnormal(value))
        x.push_back(value);
  std::string n = std::to_string(x.size());
  FusionSpec spec{.space = {int64_t(x.size())},
                  .inputs = {n + "xf32"},
                  .body = "%0 = llmc.cast %a0 : (tensor<" + n + "xf32>) -> tensor<" + n +
                          "xbf16>\nllmc.yield %0 : tensor<" + n + "xbf16>",
                  .outputs = {n + "xbf16"}};
  mlir::OwningOpRef<mlir::ModuleOp> module = parseFusion(spec);
  forEachIsa(fusionIn(*module), [&](const CpuIsa &, GeneratedKernel kernel) {
    std::vector<uint16_t> y(x.size());
    void *operands[] = {x.data(), y.data()};
    kernel(operands, 0, 1, 0, int64_t(x.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      uint32_t bits = std::bit_cast<uint32_t>(x[i]);
      uint16_t expected = uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
      if (std::isnan(x[i]))
        ASSERT_TRUE(std::isnan(std::bit_cast<float>(uint32_t(y[i]) << 16))) << std::hex << bits;
      else
        ASSERT_EQ(y[i], expected) << std::hex << bits;
    }
  });
}

TEST(Storage, EveryCast) {
  for (const char *from : {"f32", "bf16", "i64", "i32", "i1"})
    for (const char *to : {"f32", "bf16", "i64", "i32", "i1"}) {
      SCOPED_TRACE(std::string(from) + " to " + to);
      std::string source = std::string("3x21x") + from, target = std::string("3x21x") + to;
      expectMatchesHost({.space = {3, 21},
                         .inputs = {source},
                         .body = "%0 = llmc.cast %a0 : (tensor<" + source + ">) -> tensor<" + target +
                                 ">\nllmc.yield %0 : tensor<" + target + ">",
                         .outputs = {target},
                         .low = -100,
                         .high = 100,
                         .integerLow = -2});
    }
}

} // namespace
} // namespace llmc
