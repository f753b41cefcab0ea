// Row reductions in stages and column reductions in row blocks.
#include "tests/backend/codegen/FusionCase.h"

#include <gtest/gtest.h>

namespace llmc {
namespace {

/// Replaces R, C and P by numbers.
std::string at(std::string text, int64_t rows, int64_t cols, int64_t partials = 1) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    // Only in shapes: "RxC", "Rx1", "1xC", "PxC".
    bool isSize = (i + 1 < text.size() && text[i + 1] == 'x') || (i > 0 && text[i - 1] == 'x');
    if (isSize && text[i] == 'R')
      result += std::to_string(rows);
    else if (isSize && text[i] == 'C')
      result += std::to_string(cols);
    else if (isSize && text[i] == 'P')
      result += std::to_string(partials);
    else
      result += text[i];
  }
  return result;
}

FusionSpec specAt(FusionSpec spec, int64_t rows, int64_t cols) {
  spec.space = {rows, cols};
  int64_t partials = (rows + spec.rowBlock - 1) / spec.rowBlock;
  for (std::vector<std::string> *types : {&spec.inputs, &spec.outputs})
    for (std::string &type : *types)
      type = at(type, rows, cols, partials);
  spec.body = at(spec.body, rows, cols, partials);
  size_t divisor = spec.body.find("COLS");
  if (divisor != std::string::npos)
    spec.body.replace(divisor, 4, std::to_string(cols) + ".0");
  return spec;
}

void expectAtAllSizes(const FusionSpec &spec) {
  for (int64_t cols : {1, 3, 7, 8, 16, 17, 50, 65, 130, 768})
    for (int64_t rows : {1, 9}) {
      SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(cols));
      expectMatchesHost(specAt(spec, rows, cols));
    }
}

const char *const kLayerNorm = R"(%n = llmc.constant dense<COLS> : tensor<f32>
  %eps = llmc.constant dense<1.000000e-05> : tensor<f32>
  %0 = llmc.reduce_sum %a0 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
  %1 = llmc.div %0, %n : (tensor<Rx1xf32>, tensor<f32>) -> tensor<Rx1xf32>
  %2 = llmc.sub %a0, %1 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
  %3 = llmc.mul %2, %2 : (tensor<RxCxf32>, tensor<RxCxf32>) -> tensor<RxCxf32>
  %4 = llmc.reduce_sum %3 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
  %5 = llmc.div %4, %n : (tensor<Rx1xf32>, tensor<f32>) -> tensor<Rx1xf32>
  %6 = llmc.add %5, %eps : (tensor<Rx1xf32>, tensor<f32>) -> tensor<Rx1xf32>
  %7 = llmc.rsqrt %6 : tensor<Rx1xf32>
  %8 = llmc.mul %2, %7 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
  %9 = llmc.mul %8, %a1 : (tensor<RxCxf32>, tensor<1xCxf32>) -> tensor<RxCxf32>
  %10 = llmc.add %9, %a2 : (tensor<RxCxf32>, tensor<1xCxf32>) -> tensor<RxCxf32>
  llmc.yield %10, %1, %7 : tensor<RxCxf32>, tensor<Rx1xf32>, tensor<Rx1xf32>)";

TEST(Reduction, LayerNorm) {
  FusionSpec spec{.inputs = {"RxCxf32", "1xCxf32", "1xCxf32"},
                  .body = kLayerNorm,
                  .outputs = {"RxCxf32", "Rx1xf32", "Rx1xf32"},
                  .leastScale = 1};
  expectAtAllSizes(spec);
  spec.inPlace = {0};
  expectMatchesHost(specAt(spec, 9, 50));
}

TEST(Reduction, SoftmaxIsThreeStages) {
  FusionSpec spec{.inputs = {"RxCxf32"},
                  .body = R"(%0 = llmc.reduce_max %a0 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
    %1 = llmc.sub %a0, %0 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    %2 = llmc.exp %1 : tensor<RxCxf32>
    %3 = llmc.reduce_sum %2 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
    %4 = llmc.div %2, %3 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    llmc.yield %4 : tensor<RxCxf32>)",
                  .outputs = {"RxCxf32"},
                  .low = -30,
                  .high = 30};
  expectAtAllSizes(spec);
  spec.inPlace = {0};
  expectMatchesHost(specAt(spec, 5, 50257));
}

TEST(Reduction, RowsOnly) {
  // No result of the whole space: the last loop ends in numbers.
  FusionSpec spec{.inputs = {"RxCxf32", "RxCxi64"},
                  .body = R"(%0 = llmc.reduce_sum %a0 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
    %1 = llmc.reduce_max %a0 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
    %2 = llmc.reduce_sum %a1 {axes = array<i64: 1>} : (tensor<RxCxi64>) -> tensor<Rx1xi64>
    %3 = llmc.reduce_max %a1 {axes = array<i64: 1>} : (tensor<RxCxi64>) -> tensor<Rx1xi64>
    %4 = llmc.mul %0, %1 : (tensor<Rx1xf32>, tensor<Rx1xf32>) -> tensor<Rx1xf32>
    llmc.yield %0, %1, %2, %3, %4 : tensor<Rx1xf32>, tensor<Rx1xf32>, tensor<Rx1xi64>, tensor<Rx1xi64>, tensor<Rx1xf32>)",
                  .outputs = {"Rx1xf32", "Rx1xf32", "Rx1xi64", "Rx1xi64", "Rx1xf32"},
                  .integerLow = -1000,
                  .integerHigh = -5,
                  .tolerance = 2e-5};
  expectAtAllSizes(spec);
}

TEST(Reduction, OneDimension) {
  for (int64_t cols : {1, 5, 64, 1000})
    expectMatchesHost({.space = {cols},
                       .inputs = {std::to_string(cols) + "xf32"},
                       .body = "%0 = llmc.mul %a0, %a0 : (tensor<" + std::to_string(cols) + "xf32>, tensor<" +
                               std::to_string(cols) + "xf32>) -> tensor<" + std::to_string(cols) +
                               "xf32>\n%1 = llmc.reduce_sum %0 {axes = array<i64: 0>} : (tensor<" +
                               std::to_string(cols) + "xf32>) -> tensor<1xf32>\nllmc.yield %1 : tensor<1xf32>",
                       .outputs = {"1xf32"}});
}

/// The gradient of layer norm: two row reductions and two column reductions in one kernel.
TEST(Reduction, LayerNormGradient) {
  FusionSpec spec{.inputs = {"RxCxf32", "RxCxf32", "1xCxf32", "Rx1xf32", "Rx1xf32"},
                  .body = R"(%n = llmc.constant dense<COLS> : tensor<f32>
    %0 = llmc.sub %a1, %a3 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    %1 = llmc.mul %0, %a4 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    %2 = llmc.mul %a0, %a2 : (tensor<RxCxf32>, tensor<1xCxf32>) -> tensor<RxCxf32>
    %3 = llmc.reduce_sum %2 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
    %4 = llmc.mul %2, %1 : (tensor<RxCxf32>, tensor<RxCxf32>) -> tensor<RxCxf32>
    %5 = llmc.reduce_sum %4 {axes = array<i64: 1>} : (tensor<RxCxf32>) -> tensor<Rx1xf32>
    %6 = llmc.mul %1, %5 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    %7 = llmc.add %6, %3 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    %8 = llmc.div %7, %n : (tensor<RxCxf32>, tensor<f32>) -> tensor<RxCxf32>
    %9 = llmc.sub %2, %8 : (tensor<RxCxf32>, tensor<RxCxf32>) -> tensor<RxCxf32>
    %10 = llmc.mul %9, %a4 : (tensor<RxCxf32>, tensor<Rx1xf32>) -> tensor<RxCxf32>
    %11 = llmc.mul %a0, %1 : (tensor<RxCxf32>, tensor<RxCxf32>) -> tensor<RxCxf32>
    %12 = llmc.reduce_sum %11 {axes = array<i64: 0>} : (tensor<RxCxf32>) -> tensor<1xCxf32>
    %13 = llmc.reduce_sum %a0 {axes = array<i64: 0>} : (tensor<RxCxf32>) -> tensor<1xCxf32>
    llmc.yield %10, %12, %13 : tensor<RxCxf32>, tensor<1xCxf32>, tensor<1xCxf32>)",
                  .outputs = {"RxCxf32", "PxCxf32", "PxCxf32"},
                  .rowBlock = 4,
                  .inPlace = {0}};
  expectAtAllSizes(spec);
}

TEST(Reduction, ColumnsInRowBlocks) {
  for (int64_t rowBlock : {1, 3, 4, 9, 100})
    for (int64_t colBlock : {int64_t(1) << 30, int64_t(16)}) {
      FusionSpec spec{.inputs = {"RxCxf32"},
                      .body = R"(%0 = llmc.exp %a0 : tensor<RxCxf32>
    %1 = llmc.reduce_sum %0 {axes = array<i64: 0>} : (tensor<RxCxf32>) -> tensor<1xCxf32>
    %2 = llmc.reduce_max %a0 {axes = array<i64: 0>} : (tensor<RxCxf32>) -> tensor<1xCxf32>
    llmc.yield %1, %2, %0 : tensor<1xCxf32>, tensor<1xCxf32>, tensor<RxCxf32>)",
                      .outputs = {"PxCxf32", "PxCxf32", "RxCxf32"},
                      .rowBlock = rowBlock,
                      .colBlock = colBlock};
      expectAtAllSizes(spec);
    }
}

TEST(Reduction, MiddleBroadcastsInFourDimensions) {
  // (B, T, H, D) scaled by (B, 1, H, 1) and (1, T, 1, D), reduced along D.
  expectMatchesHost(
      {.space = {2, 3, 4, 20},
       .inputs = {"2x3x4x20xf32", "2x1x4x1xf32", "1x3x1x20xf32"},
       .body = R"(%0 = llmc.mul %a0, %a1 : (tensor<2x3x4x20xf32>, tensor<2x1x4x1xf32>) -> tensor<2x3x4x20xf32>
    %1 = llmc.mul %0, %a2 : (tensor<2x3x4x20xf32>, tensor<1x3x1x20xf32>) -> tensor<2x3x4x20xf32>
    %2 = llmc.reduce_sum %1 {axes = array<i64: 3>} : (tensor<2x3x4x20xf32>) -> tensor<2x3x4x1xf32>
    %3 = llmc.sub %1, %2 : (tensor<2x3x4x20xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x20xf32>
    %4 = llmc.reduce_sum %3 {axes = array<i64: 0, 1, 2>} : (tensor<2x3x4x20xf32>) -> tensor<1x1x1x20xf32>
    llmc.yield %3, %2, %4 : tensor<2x3x4x20xf32>, tensor<2x3x4x1xf32>, tensor<1x1x1x20xf32>)",
       .outputs = {"2x3x4x20xf32", "2x3x4x1xf32", "4x20xf32"},
       .rowBlock = 7});
}

TEST(Reduction, MaximumOfNanIsNan) {
  expectMatchesHost({.space = {3, 40},
                     .inputs = {"3x40xf32"},
                     .body = R"(%0 = llmc.sqrt %a0 : tensor<3x40xf32>
    %1 = llmc.reduce_max %0 {axes = array<i64: 1>} : (tensor<3x40xf32>) -> tensor<3x1xf32>
    llmc.yield %1 : tensor<3x1xf32>)",
                     .outputs = {"3x1xf32"}});
}

} // namespace
} // namespace llmc
