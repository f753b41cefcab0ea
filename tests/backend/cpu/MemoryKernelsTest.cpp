// Embedding and its gradient and strided copies against plain loops, on one to three threads.
#include "tests/backend/cpu/LaunchRunner.h"

#include <gtest/gtest.h>
#include <numeric>

namespace llmc::test {
namespace {

std::vector<int64_t> someIds(int64_t n, int64_t v) {
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i)
    ids.push_back(i * i * 7 % v);
  return ids;
}

LaunchRunner embedding(int64_t n, int64_t v, int64_t c, int threads) {
  LaunchRunner runner(KernelKind::Embedding, threads);
  runner.ints({{"n", n}, {"v", v}, {"c", c}});
  return runner;
}

TEST(Embedding, GathersRows) {
  for (int threads : {1, 2, 3})
    for (int64_t n : {1, 33, 100}) {
      const int64_t v = 11, c = 37;
      std::vector<float> table = randomNumbers(size_t(v * c), 1);
      std::vector<int64_t> ids = someIds(n, v);
      LaunchRunner runner = embedding(n, v, c, threads);
      runner.operand("table", table).operand("ids", ids).operand("dst", std::vector<float>(size_t(n * c)));
      ASSERT_TRUE(runner.run().ok());
      std::vector<float> dst = runner.result<float>("dst");
      for (int64_t i = 0; i < n * c; ++i)
        ASSERT_EQ(dst[size_t(i)], table[size_t(ids[size_t(i / c)] * c + i % c)]);
    }
}

TEST(Embedding, Converts) {
  const int64_t n = 5, v = 3, c = 9;
  std::vector<float> table = randomNumbers(size_t(v * c), 1), rounded = toBf16Precision(table);
  std::vector<int64_t> ids = someIds(n, v);
  LaunchRunner down = embedding(n, v, c, 1), up = embedding(n, v, c, 1);
  down.ints({{"dstType", int64_t(ElementType::bf16)}}).operand("table", table).operand("ids", ids);
  up.ints({{"tableType", int64_t(ElementType::bf16)}}).operand("table", asBf16(table)).operand("ids", ids);
  down.operand("dst", std::vector<uint16_t>(size_t(n * c)));
  up.operand("dst", std::vector<float>(size_t(n * c)));
  ASSERT_TRUE(down.run().ok());
  ASSERT_TRUE(up.run().ok());
  std::vector<float> expected;
  for (int64_t id : ids)
    expected.insert(expected.end(), rounded.begin() + id * c, rounded.begin() + (id + 1) * c);
  EXPECT_EQ(fromBf16(down.result<uint16_t>("dst")), expected);
  EXPECT_EQ(up.result<float>("dst"), expected);
}

TEST(EmbeddingGrad, SumsInTheOrderOfTokens) {
  for (bool accumulate : {false, true})
    for (bool isBf16 : {false, true})
      for (int threads : {1, 2, 3}) {
        const int64_t n = 200, v = 13, c = 37;
        std::vector<int64_t> ids = someIds(n, v);
        std::vector<float> dOut = toBf16Precision(randomNumbers(size_t(n * c), 1));
        std::vector<float> initial = randomNumbers(size_t(v * c), 2);
        std::vector<float> expected = accumulate ? initial : std::vector<float>(initial.size());
        for (int64_t i = 0; i < n * c; ++i)
          expected[size_t(ids[size_t(i / c)] * c + i % c)] += dOut[size_t(i)];
        LaunchRunner runner(KernelKind::EmbeddingGrad, threads);
        runner.ints({{"n", n}, {"v", v}, {"c", c}, {"accumulate", accumulate}});
        runner.ints({{"dOutType", int64_t(isBf16 ? ElementType::bf16 : ElementType::f32)}});
        runner.operand("ids", ids).operand("dTable", initial);
        if (isBf16)
          runner.operand("dOut", asBf16(dOut));
        else
          runner.operand("dOut", dOut);
        ASSERT_TRUE(runner.run().ok());
        EXPECT_EQ(runner.result<float>("dTable"), expected); // the same bits: the order is promised
      }
}

struct CopyLoops {
  std::array<int64_t, 6> sizes{1, 1, 1, 1, 1, 1}, src{}, dst{};
  int64_t srcOffset = 0, dstOffset = 0;
};

template <typename T> void checkCopy(const CopyLoops &loops, size_t srcSize, size_t dstSize) {
  std::vector<T> src(srcSize), dst(dstSize, T(99));
  for (size_t i = 0; i < srcSize; ++i)
    src[i] = T(i * 7 + 1);
  std::vector<T> expected = dst;
  const auto &[n0, n1, n2, n3, n4, n5] = loops.sizes;
  for (int64_t i = 0; i < n0 * n1 * n2 * n3 * n4 * n5; ++i) {
    int64_t from = loops.srcOffset, to = loops.dstOffset, rest = i;
    for (size_t d = 6; d-- > 0; rest /= loops.sizes[d]) {
      from += rest % loops.sizes[d] * loops.src[d];
      to += rest % loops.sizes[d] * loops.dst[d];
    }
    expected[size_t(to)] = src[size_t(from)];
  }
  for (int threads : {1, 2, 3}) {
    LaunchRunner runner(KernelKind::Copy, threads);
    runner.ints({{"bytes", sizeof(T)}, {"srcOffset", loops.srcOffset}, {"dstOffset", loops.dstOffset}});
    for (size_t d = 0; d < 6; ++d) {
      std::string digit = std::to_string(d);
      runner.ints(
          {{"size" + digit, loops.sizes[d]}, {"srcStride" + digit, loops.src[d]}, {"dstStride" + digit, loops.dst[d]}});
    }
    runner.operand("src", src).operand("dst", dst);
    Status status = runner.run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    ASSERT_EQ(runner.template result<T>("dst"), expected);
  }
}

template <typename T> class Copy : public testing::Test {};
using ElementSizes = testing::Types<uint8_t, uint16_t, uint32_t, uint64_t>;
TYPED_TEST_SUITE(Copy, ElementSizes);

TYPED_TEST(Copy, Slices) {
  checkCopy<TypeParam>(
      {.sizes = {1, 1, 3, 5, 7, 11}, .src = {0, 0, 2000, 300, 20, 1}, .dst = {0, 0, 385, 77, 11, 1}, .srcOffset = 3},
      6000, 1155);
}

TYPED_TEST(Copy, ConcatenatesIntoTheMiddle) {
  checkCopy<TypeParam>(
      {.sizes = {1, 1, 1, 1, 9, 5}, .src = {0, 0, 0, 0, 5, 1}, .dst = {0, 0, 0, 0, 17, 1}, .dstOffset = 4}, 45, 200);
}

TYPED_TEST(Copy, Transposes) {
  checkCopy<TypeParam>({.sizes = {1, 1, 1, 1, 67, 45}, .src = {0, 0, 0, 0, 1, 67}, .dst = {0, 0, 0, 0, 45, 1}}, 67 * 45,
                       67 * 45);
  // (2, 5, 7, 9) -> (2, 7, 5, 9) and -> (2, 9, 7, 5)
  checkCopy<TypeParam>({.sizes = {1, 1, 2, 7, 5, 9}, .src = {0, 0, 315, 9, 63, 1}, .dst = {0, 0, 315, 45, 9, 1}}, 630,
                       630);
  checkCopy<TypeParam>({.sizes = {1, 1, 2, 9, 7, 5}, .src = {0, 0, 315, 1, 9, 63}, .dst = {0, 0, 315, 35, 5, 1}}, 630,
                       630);
}

TYPED_TEST(Copy, BroadcastsAndReverses) {
  checkCopy<TypeParam>({.sizes = {1, 1, 1, 4, 3, 50}, .src = {0, 0, 0, 0, 50, 1}, .dst = {0, 0, 0, 150, 50, 1}}, 150,
                       600);
  checkCopy<TypeParam>(
      {.sizes = {1, 1, 1, 1, 1, 80}, .src = {0, 0, 0, 0, 0, -1}, .dst = {0, 0, 0, 0, 0, 1}, .srcOffset = 79}, 80, 80);
  checkCopy<TypeParam>({.sizes = {1, 1, 1, 1, 1, 80}, .src = {}, .dst = {0, 0, 0, 0, 0, 1}, .srcOffset = 2}, 3, 80);
}

TYPED_TEST(Copy, AllAtOnceAndNothing) {
  checkCopy<TypeParam>({.sizes = {2, 3, 4, 5, 6, 100},
                        .src = {36000, 12000, 3000, 600, 100, 1},
                        .dst = {36000, 12000, 3000, 600, 100, 1}},
                       72000, 72000);
  checkCopy<TypeParam>({.sizes = {1, 1, 1, 1, 1, 1}, .srcOffset = 2, .dstOffset = 1}, 3, 2);
  checkCopy<TypeParam>({.sizes = {1, 1, 0, 1, 1, 5}, .src = {0, 0, 9, 0, 0, 1}, .dst = {0, 0, 9, 0, 0, 1}}, 1, 1);
}

} // namespace
} // namespace llmc::test
