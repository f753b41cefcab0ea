// Contractions on the simulated cublasLt against loops in f64, for every field of Kernels.def's matmul; and the layouts
// that are refused, because cublasLt itself takes anything.
#include "runtime/ElementConvert.h"
#include "tests/backend/cuda/SimDevice.h"

#include <cmath>
#include <cstring>
#include <random>

namespace llmc::cuda::test {
namespace {

using testing::HasSubstr;

struct Case {
  const char *name;
  int64_t batch = 1, m = 5, n = 7, k = 3;
  bool transposeLhs = false, transposeRhs = false;
  int64_t padLhs = 0, padRhs = 0, padDst = 0;
  bool sharesLhs = false, sharesRhs = false;
  ElementType type = ElementType::f32, dstType = ElementType::f32;
  bool accumulate = false, hasBias = false, hasWorkspace = false;
  std::string precision = "fp32";

  int64_t lhsRows() const { return transposeLhs ? k : m; }
  int64_t rhsRows() const { return transposeRhs ? n : k; }
  int64_t ldLhs() const { return (transposeLhs ? m : k) + padLhs; }
  int64_t ldRhs() const { return (transposeRhs ? k : n) + padRhs; }
  int64_t ldDst() const { return n + padDst; }
  int64_t lhsStride() const { return sharesLhs ? 0 : lhsRows() * ldLhs(); }
  int64_t rhsStride() const { return sharesRhs ? 0 : rhsRows() * ldRhs(); }
  int64_t dstStride() const { return m * ldDst(); }
};

/// Values that bf16 holds, in device memory of their type.
std::vector<float> randomValues(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> values(static_cast<size_t>(count));
  for (float &value : values)
    value = static_cast<float>(static_cast<int>(random() % 33) - 16) / 8;
  return values;
}

std::vector<std::byte> encode(const std::vector<float> &values, ElementType type) {
  std::vector<std::byte> bytes(values.size() * elementBytes(type));
  for (size_t i = 0; i < values.size(); ++i)
    if (type == ElementType::f32)
      std::memcpy(&bytes[4 * i], &values[i], 4);
    else
      reinterpret_cast<uint16_t *>(bytes.data())[i] = toBf16(values[i]);
  return bytes;
}

std::vector<float> decode(const std::vector<std::byte> &bytes, ElementType type) {
  std::vector<float> values(bytes.size() / elementBytes(type));
  for (size_t i = 0; i < values.size(); ++i)
    if (type == ElementType::f32)
      std::memcpy(&values[i], &bytes[4 * i], 4);
    else
      values[i] = floatFromBf16(reinterpret_cast<const uint16_t *>(bytes.data())[i]);
  return values;
}

/// The launch, its operands one behind the other in the arena, and what it should give.
struct Problem {
  explicit Problem(const Case &test) : test(test) {
    lhs = randomValues(test.batch * test.lhsRows() * test.ldLhs(), 1);
    rhs = randomValues(test.batch * test.rhsRows() * test.ldRhs(), 2);
    bias = randomValues(test.n, 3);
    dst = randomValues(test.batch * test.dstStride(), 4);
    launch.kind = KernelKind::MatMul;
    launch.name = "h.0/linear";
    launch.operands = {place(encode(lhs, test.type)), place(encode(rhs, test.type)),
                       test.hasBias ? place(encode(bias, ElementType::f32)) : BufferRef(),
                       place(encode(dst, test.dstType)),
                       test.hasWorkspace ? place(std::vector<std::byte>(8192)) : BufferRef()};
    auto number = [](ElementType type) { return static_cast<int64_t>(type); };
    launch.ints = {test.batch,
                   test.m,
                   test.n,
                   test.k,
                   test.transposeLhs,
                   test.transposeRhs,
                   test.ldLhs(),
                   test.ldRhs(),
                   test.ldDst(),
                   test.lhsStride(),
                   test.rhsStride(),
                   test.dstStride(),
                   number(test.type),
                   number(test.type),
                   number(test.dstType),
                   test.accumulate,
                   0};
  }

  BufferRef place(const std::vector<std::byte> &bytes) {
    BufferRef ref{Space::arena, arena.size(), bytes.size()};
    arena.insert(arena.end(), bytes.begin(), bytes.end());
    arena.resize((arena.size() + 63) / 64 * 64);
    return ref;
  }

  /// In f64; what lies between rows stays.
  std::vector<float> expected() const {
    std::vector<float> result = dst;
    for (int64_t b = 0; b < test.batch; ++b)
      for (int64_t i = 0; i < test.m; ++i)
        for (int64_t j = 0; j < test.n; ++j) {
          float &to = result[static_cast<size_t>(b * test.dstStride() + i * test.ldDst() + j)];
          double sum = (test.accumulate ? to : 0) + (test.hasBias ? bias[static_cast<size_t>(j)] : 0);
          for (int64_t l = 0; l < test.k; ++l) {
            int64_t left = test.transposeLhs ? l * test.ldLhs() + i : i * test.ldLhs() + l;
            int64_t right = test.transposeRhs ? j * test.ldRhs() + l : l * test.ldRhs() + j;
            sum += double(lhs[static_cast<size_t>(b * test.lhsStride() + left)]) *
                   double(rhs[static_cast<size_t>(b * test.rhsStride() + right)]);
          }
          to = static_cast<float>(sum);
          if (test.dstType == ElementType::bf16)
            to = floatFromBf16(toBf16(to));
        }
    return result;
  }

  Case test;
  std::vector<float> lhs, rhs, bias, dst;
  Launch launch;
  std::vector<std::byte> arena;
};

class MatMul : public testing::TestWithParam<Case> {};

TEST_P(MatMul, isTheProductInF64) {
  SimDevice sim;
  Problem problem(GetParam());
  std::byte *arena = sim.upload(problem.arena);
  ASSERT_TRUE(sim.load(nullptr, {}, GetParam().precision).ok());
  Program program;
  program.launches = {problem.launch};
  auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
  ASSERT_TRUE(prepared.ok()) << prepared.error().message;
  std::vector<float> expected = problem.expected();
  const BufferRef &dst = problem.launch.operands[3];
  for (int run = 0; run < 3; ++run) {
    ASSERT_TRUE(sim.device->copyIn(arena, problem.arena).ok());
    Status status = (*prepared)->run();
    ASSERT_TRUE(status.ok()) << status.error().message;
    std::vector<float> got = decode(sim.download<std::byte>(arena + dst.offset, dst.bytes), GetParam().dstType);
    EXPECT_EQ(got, expected) << "run " << run;
  }
  prepared = Error{"done"};
}

const Case kCases[] = {
    {.name = "plain"},
    {.name = "transposeLhs", .transposeLhs = true, .padLhs = 2},
    {.name = "transposeRhs", .transposeRhs = true, .padRhs = 1},
    {.name = "transposeBoth", .transposeLhs = true, .transposeRhs = true, .padDst = 3},
    {.name = "bias", .padDst = 1, .hasBias = true},
    {.name = "accumulate", .padDst = 2, .accumulate = true},
    {.name = "accumulateWithBias", .accumulate = true, .hasBias = true},
    {.name = "batch", .batch = 3, .padLhs = 1, .padDst = 1},
    {.name = "batchSharesLhs", .batch = 3, .transposeLhs = true, .sharesLhs = true},
    {.name = "batchFoldsWithBias", .batch = 3, .sharesRhs = true, .hasBias = true},
    {.name = "batchSharesRhs", .batch = 3, .transposeLhs = true, .sharesRhs = true},
    {.name = "plannedWorkspace", .hasWorkspace = true},
    {.name = "bf16", .type = ElementType::bf16, .dstType = ElementType::bf16},
    {.name = "bf16ToF32", .transposeLhs = true, .type = ElementType::bf16, .accumulate = true},
    {.name = "bf16Bias", .n = 300, .type = ElementType::bf16, .dstType = ElementType::bf16, .hasBias = true},
    {.name = "bf16BiasToF32", .type = ElementType::bf16, .hasBias = true},
    {.name = "tf32", .precision = "tf32"},
};
INSTANTIATE_TEST_SUITE_P(All, MatMul, testing::ValuesIn(kCases),
                         [](const auto &info) { return std::string(info.param.name); });

TEST(CudaMatMul, tf32IsUsedWhereThePlanSaysSoAndOnlyThere) {
  // 1 + 2^-12 is no TF32 number.
  float value = 1 + std::ldexp(1.0f, -12);
  for (const char *precision : {"fp32", "tf32"}) {
    SimDevice sim;
    Problem problem({.name = "one", .m = 1, .n = 1, .k = 1});
    std::byte *arena = sim.upload(problem.arena);
    ASSERT_TRUE(sim.load(nullptr, {}, precision).ok());
    for (int i : {0, 1})
      ASSERT_TRUE(
          sim.device->copyIn(arena + problem.launch.operands[i].offset, std::as_bytes(std::span(&value, 1))).ok());
    Program program;
    program.launches = {problem.launch};
    auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
    ASSERT_TRUE(prepared.ok() && (*prepared)->run().ok());
    float expected = std::string(precision) == "tf32" ? 1 : value * value;
    EXPECT_EQ(sim.download<float>(arena + problem.launch.operands[3].offset, 1)[0], expected) << precision;
    prepared = Error{"done"};
  }
}

struct Refusal {
  const char *message;
  void (*apply)(Launch &);
  Case test = {.name = "refused"};
};

/// The place of each integer in Kernels.def's matmul.
enum Int {
  batch,
  m,
  n,
  k,
  tl,
  tr,
  ldLhs,
  ldRhs,
  ldDst,
  lhsStride,
  rhsStride,
  dstStride,
  lhsType,
  rhsType,
  dstType,
  acc,
  layout
};

const Refusal kRefusals[] = {
    {"m is 0", [](Launch &l) { l.ints[m] = 0; }},
    {"rhsStride is -1", [](Launch &l) { l.ints[rhsStride] = -1; }},
    {"k is 2199023255552", [](Launch &l) { l.ints[k] = int64_t(1) << 41; }},
    {"batch is 4294967296", [](Launch &l) { l.ints[batch] = int64_t(1) << 32; }},
    {"lhs has rows of 3 elements, 2 apart", [](Launch &l) { l.ints[ldLhs] = 2; }},
    {"rhs has rows of 7 elements, 6 apart", [](Launch &l) { l.ints[ldRhs] = 6; }},
    {"dst has rows of 7 elements, 6 apart", [](Launch &l) { l.ints[ldDst] = 6; }},
    {"lhs holds 56 bytes, element 14 of f32 is outside", [](Launch &l) { l.operands[0].bytes = 56; }},
    {"rhs holds 80 bytes, element 20 of f32 is outside", [](Launch &l) { l.operands[1].bytes = 80; }},
    {"dst holds 136 bytes, element 34 of f32 is outside", [](Launch &l) { l.operands[3].bytes = 136; }},
    {"bias holds 24 bytes, 7 elements of f32 are needed",
     [](Launch &l) { l.operands[2].bytes = 24; },
     {.name = "bias", .hasBias = true}},
    {"the batches of dst overlap: 34 elements apart",
     [](Launch &l) { l.ints[dstStride] = 34; },
     {.name = "batch", .batch = 2}},
    {"must both be f32", [](Launch &l) { l.ints[lhsType] = int64_t(ElementType::bf16); }},
    {"must both be f32", [](Launch &l) { l.ints[dstType] = int64_t(ElementType::bf16); }},
    {"must both be f32", [](Launch &l) { l.ints[lhsType] = l.ints[rhsType] = int64_t(ElementType::f16); }},
    {"layout 1 of rhs: a GPU reads row-major matrices", [](Launch &l) { l.ints[layout] = 1; }},
    {"a bias, for a batch whose rows do not follow each other",
     [](Launch &) {},
     {.name = "biases", .batch = 2, .hasBias = true}},
};

TEST(CudaMatMul, refusesLayoutsThatAreNone) {
  SimDevice sim;
  ASSERT_TRUE(sim.load(nullptr, {}).ok());
  for (const Refusal &refusal : kRefusals) {
    Problem problem(refusal.test);
    std::byte *arena = sim.upload(problem.arena);
    Program program;
    program.launches = {problem.launch};
    refusal.apply(program.launches[0]);
    auto prepared = sim.device->prepare(program, {nullptr, nullptr, arena}, nullptr);
    ASSERT_FALSE(prepared.ok()) << refusal.message;
    EXPECT_THAT(prepared.error().message, HasSubstr(std::string("matmul 'h.0/linear': ")));
    EXPECT_THAT(prepared.error().message, HasSubstr(refusal.message));
  }
}

} // namespace
} // namespace llmc::cuda::test
