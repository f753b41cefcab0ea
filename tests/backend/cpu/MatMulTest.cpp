// Matrix products against f64 loops: every transposition, bias, accumulation, batches, padded rows, packed weights,
// bf16.
#include "backend/cpu/Layouts.h"
#include "tests/backend/cpu/LaunchRunner.h"

#include <cmath>
#include <fstream>
#include <gtest/gtest.h>

namespace llmc::test {
namespace {

struct Case {
  int64_t batch = 1, m = 1, n = 1, k = 1;
  bool transposeLhs = false, transposeRhs = false, hasBias = false, accumulate = false;
  bool sharedRhs = false, isBf16 = false;
  int64_t padding = 0; ///< elements after each row
  int threads = 2;
};

struct Operands {
  std::vector<float> lhs, rhs, bias, dst;
  int64_t ldLhs, ldRhs, ldDst, lhsStride, rhsStride, dstStride;
};

Operands makeOperands(const Case &c) {
  Operands o;
  int64_t lhsRows = c.transposeLhs ? c.k : c.m, rhsRows = c.transposeRhs ? c.n : c.k;
  o.ldLhs = (c.transposeLhs ? c.m : c.k) + c.padding;
  o.ldRhs = (c.transposeRhs ? c.k : c.n) + c.padding;
  o.ldDst = c.n + c.padding;
  o.lhsStride = lhsRows * o.ldLhs;
  o.rhsStride = c.sharedRhs ? 0 : rhsRows * o.ldRhs;
  o.dstStride = c.m * o.ldDst;
  o.lhs = randomNumbers(size_t(c.batch * o.lhsStride), 1);
  o.rhs = randomNumbers(size_t((c.sharedRhs ? 1 : c.batch) * rhsRows * o.ldRhs), 2);
  o.bias = randomNumbers(size_t(c.n), 3);
  o.dst = randomNumbers(size_t(c.batch * o.dstStride), 4);
  if (c.isBf16) {
    o.lhs = toBf16Precision(o.lhs);
    o.rhs = toBf16Precision(o.rhs);
  }
  return o;
}

/// Each element within the rounding of a sum of k products in f32: (k + 2) * 2^-23 of the sum of magnitudes. What lies
/// between the rows is not touched.
void expectProduct(const Case &c, const Operands &o, const std::vector<float> &got) {
  for (int64_t b = 0; b < c.batch; ++b)
    for (int64_t i = 0; i < c.m; ++i)
      for (int64_t j = 0; j < o.ldDst; ++j) {
        int64_t at = b * o.dstStride + i * o.ldDst + j;
        if (j >= c.n) {
          ASSERT_EQ(got[size_t(at)], o.dst[size_t(at)]) << "between rows";
          continue;
        }
        double sum = (c.hasBias ? o.bias[size_t(j)] : 0) + (c.accumulate ? o.dst[size_t(at)] : 0), magnitude = 0;
        for (int64_t x = 0; x < c.k; ++x) {
          double l = o.lhs[size_t(b * o.lhsStride + (c.transposeLhs ? x * o.ldLhs + i : i * o.ldLhs + x))];
          double r = o.rhs[size_t(b * o.rhsStride + (c.transposeRhs ? j * o.ldRhs + x : x * o.ldRhs + j))];
          sum += l * r;
          magnitude += std::abs(l * r);
        }
        double tolerance = double(c.k + 2) * 0x1p-23 * (magnitude + std::abs(sum));
        ASSERT_NEAR(got[size_t(at)], sum, tolerance) << "batch " << b << " row " << i << " column " << j;
      }
}

LaunchRunner makeRunner(const Case &c, const Operands &o) {
  LaunchRunner runner(KernelKind::MatMul, c.threads);
  int64_t inputType = int64_t(c.isBf16 ? ElementType::bf16 : ElementType::f32);
  runner.ints({{"batch", c.batch},
               {"m", c.m},
               {"n", c.n},
               {"k", c.k},
               {"transposeLhs", c.transposeLhs},
               {"transposeRhs", c.transposeRhs},
               {"ldLhs", o.ldLhs},
               {"ldRhs", o.ldRhs},
               {"ldDst", o.ldDst},
               {"lhsStride", o.lhsStride},
               {"rhsStride", o.rhsStride},
               {"dstStride", o.dstStride},
               {"lhsType", inputType},
               {"rhsType", inputType},
               {"accumulate", c.accumulate}});
  if (c.isBf16)
    runner.operand("lhs", asBf16(o.lhs)).operand("rhs", asBf16(o.rhs));
  else
    runner.operand("lhs", o.lhs).operand("rhs", o.rhs);
  if (c.hasBias)
    runner.operand("bias", o.bias);
  runner.operand("dst", o.dst);
  return runner;
}

void check(const Case &c) {
  SCOPED_TRACE(testing::Message() << "batch " << c.batch << " m " << c.m << " n " << c.n << " k " << c.k << " tl "
                                  << c.transposeLhs << " tr " << c.transposeRhs << " bias " << c.hasBias << " acc "
                                  << c.accumulate << " pad " << c.padding << " threads " << c.threads);
  Operands o = makeOperands(c);
  LaunchRunner runner = makeRunner(c, o);
  Status status = runner.run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  expectProduct(c, o, runner.result<float>("dst"));
}

TEST(MatMul, EveryFormAtOddSizes) {
  for (auto [m, n, k] :
       {std::array<int64_t, 3>{1, 1, 1}, {3, 5, 7}, {17, 33, 65}, {64, 50, 129}, {1, 100, 31}, {130, 1, 20}})
    for (int form = 0; form < 16; ++form)
      check({.m = m,
             .n = n,
             .k = k,
             .transposeLhs = bool(form & 1),
             .transposeRhs = bool(form & 2),
             .hasBias = bool(form & 4),
             .accumulate = bool(form & 8),
             .threads = 1 + form % 3});
}

TEST(MatMul, LargeEnoughForEveryLibraryPath) {
  for (int form = 0; form < 16; ++form)
    check({.m = 257,
           .n = 190,
           .k = 300,
           .transposeLhs = bool(form & 1),
           .transposeRhs = bool(form & 2),
           .hasBias = bool(form & 4),
           .accumulate = bool(form & 8)});
}

TEST(MatMul, RowsFurtherApartThanTheirLength) {
  for (int form = 0; form < 16; ++form)
    check({.m = 120,
           .n = 130,
           .k = 110,
           .transposeLhs = bool(form & 1),
           .transposeRhs = bool(form & 2),
           .hasBias = bool(form & 4),
           .accumulate = bool(form & 8),
           .padding = 9});
}

TEST(MatMul, Batches) {
  for (int form = 0; form < 32; ++form)
    check({.batch = 3,
           .m = 9,
           .n = 21,
           .k = 10,
           .transposeLhs = bool(form & 1),
           .transposeRhs = bool(form & 2),
           .hasBias = bool(form & 4),
           .accumulate = bool(form & 8),
           .sharedRhs = bool(form & 16)});
}

TEST(MatMul, LargeBatchWithPaddedRows) {
  for (int form = 0; form < 8; ++form)
    check({.batch = 5,
           .m = 70,
           .n = 60,
           .k = 90,
           .transposeLhs = bool(form & 1),
           .transposeRhs = bool(form & 2),
           .hasBias = bool(form & 4),
           .padding = 3});
}

TEST(MatMul, LongSums) {
  // A transposed rhs with long rows takes the other library path; so does the gradient of a large head.
  check({.m = 5, .n = 20, .k = 20000, .transposeRhs = true});
  check({.m = 20, .n = 3001, .k = 9, .transposeLhs = true, .accumulate = true});
}

// Levels without bf16 instructions multiply in f32.
TEST(MatMul, Bf16) {
  for (int form = 0; form < 16; ++form)
    check({.m = 33,
           .n = 70,
           .k = 50,
           .transposeLhs = bool(form & 1),
           .transposeRhs = bool(form & 2),
           .hasBias = bool(form & 4),
           .accumulate = bool(form & 8),
           .isBf16 = true});
}

TEST(MatMul, Bf16ResultIsTheRoundedSum) {
  Case c{.m = 33, .n = 70, .k = 50, .isBf16 = true};
  Operands o = makeOperands(c);
  LaunchRunner runner = makeRunner(c, o);
  runner.ints({{"dstType", int64_t(ElementType::bf16)}}).operand("dst", asBf16(o.dst));
  Status status = runner.run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  std::vector<float> got = fromBf16(runner.result<uint16_t>("dst"));
  for (int64_t i = 0; i < c.m; ++i)
    for (int64_t j = 0; j < c.n; ++j) {
      double sum = 0, magnitude = 0;
      for (int64_t x = 0; x < c.k; ++x) {
        double product = double(o.lhs[size_t(i * c.k + x)]) * double(o.rhs[size_t(x * c.n + j)]);
        sum += product;
        magnitude += std::abs(product);
      }
      ASSERT_NEAR(got[size_t(i * c.n + j)], sum, 0x1p-8 * std::abs(sum) + double(c.k + 2) * 0x1p-23 * magnitude);
    }
}

TEST(MatMul, SameBitsWhenRunAgain) {
  Case c{.m = 200, .n = 300, .k = 500, .threads = 2};
  Operands o = makeOperands(c);
  LaunchRunner first = makeRunner(c, o), second = makeRunner(c, o);
  ASSERT_TRUE(first.run().ok());
  ASSERT_TRUE(second.run().ok());
  EXPECT_EQ(first.result<float>("dst"), second.result<float>("dst"));
}

TEST(MatMul, UsesTheDevicesThreadsAndNoOthers) {
  LaunchRunner zero(KernelKind::Zero, 3);
  zero.operand("dst", std::vector<float>(100000));
  ASSERT_TRUE(zero.run().ok()); // our own threads
  for (bool hasBias : {false, true})
    check({.m = 300, .n = 300, .k = 300, .hasBias = hasBias, .threads = 3});
  std::ifstream status("/proc/self/status");
  int threads = 0;
  for (std::string word; status >> word && threads == 0;)
    if (word == "Threads:")
      status >> threads;
  EXPECT_EQ(threads, 3);
}

/// Packs, then multiplies by what was packed.
void checkPacked(Case c, bool packTransposed) {
  SCOPED_TRACE(testing::Message() << "n " << c.n << " k " << c.k << " transposed " << packTransposed);
  RhsLayout layout = c.isBf16 ? RhsLayout::blocked16x64x2 : RhsLayout::blocked16x64;
  int64_t type = int64_t(c.isBf16 ? ElementType::bf16 : ElementType::f32);
  c.transposeRhs = packTransposed;
  Operands o = makeOperands(c);
  size_t packedBytes = size_t(packedElements(layout, c.k, c.n)) * (c.isBf16 ? 2 : 4);
  LaunchRunner pack(KernelKind::Pack, c.threads);
  pack.ints({{"k", c.k}, {"n", c.n}, {"transpose", packTransposed}, {"dstType", type}, {"layout", int64_t(layout)}});
  pack.operand("src", o.rhs).operand("dst", std::vector<uint8_t>(packedBytes));
  Status packed = pack.run();
  ASSERT_TRUE(packed.ok()) << packed.error().message;

  LaunchRunner runner = makeRunner(c, o);
  runner.ints({{"rhsLayout", int64_t(layout)}, {"transposeRhs", 0}, {"ldRhs", c.n}})
      .operand("rhs", pack.result<uint8_t>("dst"));
  Status status = runner.run();
  ASSERT_TRUE(status.ok()) << status.error().message;
  expectProduct(c, o, runner.result<float>("dst"));
}

// Levels that read no blocks keep the matrix row-major in the same buffer.
TEST(MatMul, PackedWeights) {
  for (auto [n, k] : {std::pair<int64_t, int64_t>{64, 16}, {130, 77}, {301, 129}, {100, 200}})
    for (bool transposed : {false, true})
      for (bool accumulate : {false, true})
        checkPacked({.m = 100, .n = n, .k = k, .hasBias = !accumulate, .accumulate = accumulate}, transposed);
}

TEST(MatMul, PackedBf16Weights) {
  for (bool transposed : {false, true})
    checkPacked({.m = 100, .n = 130, .k = 77, .isBf16 = true}, transposed);
}

TEST(MatMul, RefusesWhatDoesNotFit) {
  Case c{.m = 4, .n = 5, .k = 6};
  Operands o = makeOperands(c);
  LaunchRunner runner = makeRunner(c, o);
  runner.ints({{"m", 40}});
  Status status = runner.run();
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message, "matmul 'node': lhs holds 96 bytes, element 239 of f32 is outside");
}

} // namespace
} // namespace llmc::test
