// Buffers are allocated with bytes after their end that must stay untouched: a masked tail that writes too far is
// found.
#include "tests/backend/codegen/FusionCase.h"
#include "tests/backend/codegen/ExecutableCode.h"
#include "tests/backend/codegen/GpuCase.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"

#include <bit>
#include <cstring>
#include <gtest/gtest.h>

using namespace mlir;

namespace llmc {

MLIRContext &testContext() {
  static MLIRContext context;
  context.loadDialect<LlmcDialect>();
  return context;
}

static std::string join(const std::vector<std::string> &types, const char *before, bool named) {
  std::string text;
  for (size_t i = 0; i < types.size(); ++i)
    text += (i ? ", " : "") + (named ? before + std::to_string(i) + ": " : std::string()) + "tensor<" + types[i] + ">";
  return text;
}

OwningOpRef<ModuleOp> parseFusion(const FusionSpec &spec) {
  int64_t cols = spec.space.back();
  std::string outputs = "(" + join(spec.outputs, "", false) + ")", space;
  for (size_t d = 0; d < spec.space.size(); ++d)
    space += (d ? ", " : "") + std::to_string(spec.space[d]);
  std::string text = "llmc.program @test \"graph\" (" + join(spec.inputs, "%x", true) + ") -> () {\n  ";
  text += "%y:" + std::to_string(spec.outputs.size()) + " = llmc.fusion(";
  for (size_t i = 0; i < spec.inputs.size(); ++i)
    text += (i ? ", %x" : "%x") + std::to_string(i);
  text += ") {space = array<i64: " + space + ">, rowBlock = " + std::to_string(spec.rowBlock) +
          " : i64, colBlock = " + std::to_string(std::min(spec.colBlock, cols)) + " : i64} : (" +
          join(spec.inputs, "", false) + ") -> " + outputs + " {\n  ^bb0(" + join(spec.inputs, "%a", true) + "):\n" +
          spec.body + "\n  }\n  llmc.return\n}\n";
  return parseSourceString<ModuleOp>(text, ParserConfig(&testContext()));
}

FusionOp fusionIn(ModuleOp module) {
  FusionOp found;
  module.walk([&](FusionOp fusion) { found = fusion; });
  return found;
}

//===-- Buffers

static float roundToBf16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return value;
  bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u;
  return std::bit_cast<float>(bits);
}

HostTensor randomTensor(RankedTensorType type, const FusionSpec &spec, unsigned seed) {
  HostTensor tensor = HostTensor::zeros(type);
  uint64_t state = seed * 0x9e3779b97f4a7c15ull + 1;
  auto draw = [&] {
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return double(state >> 11) / double(1ull << 53);
  };
  for (double &value : tensor.floats) {
    float number = float(spec.low + (spec.high - spec.low) * draw());
    value = type.getElementType().isBF16() ? roundToBf16(number) : number;
  }
  for (int64_t &value : tensor.integers)
    value = type.getElementType().isInteger(1)
                ? draw() < 0.5
                : spec.integerLow + int64_t(draw() * double(spec.integerHigh - spec.integerLow + 1));
  return tensor;
}

template <typename T> static void append(std::vector<std::byte> &bytes, T value) {
  bytes.resize(bytes.size() + sizeof(T));
  std::memcpy(bytes.data() + bytes.size() - sizeof(T), &value, sizeof(T));
}

std::vector<std::byte> toBytes(const HostTensor &tensor) {
  std::vector<std::byte> bytes;
  Type element = tensor.type.getElementType();
  for (double value : tensor.floats) {
    if (element.isBF16())
      append(bytes, uint16_t(std::bit_cast<uint32_t>(roundToBf16(float(value))) >> 16));
    else
      append(bytes, float(value));
  }
  for (int64_t value : tensor.integers) {
    if (element.isInteger(1))
      append(bytes, uint8_t(value));
    else if (element.isInteger(32))
      append(bytes, int32_t(value));
    else
      append(bytes, value);
  }
  return bytes;
}

template <typename T> static T readAt(const std::byte *bytes, int64_t i) {
  T value;
  std::memcpy(&value, bytes + i * int64_t(sizeof(T)), sizeof(T));
  return value;
}

HostTensor fromBytes(RankedTensorType type, const std::byte *bytes) {
  HostTensor tensor = HostTensor::zeros(type);
  Type element = type.getElementType();
  for (int64_t i = 0; i < tensor.size(); ++i) {
    if (element.isBF16())
      tensor.floats[i] = std::bit_cast<float>(uint32_t(readAt<uint16_t>(bytes, i)) << 16);
    else if (element.isF32())
      tensor.floats[i] = readAt<float>(bytes, i);
    else if (element.isInteger(1))
      tensor.integers[i] = readAt<uint8_t>(bytes, i);
    else
      tensor.integers[i] = element.isInteger(32) ? readAt<int32_t>(bytes, i) : readAt<int64_t>(bytes, i);
  }
  return tensor;
}

//===-- Running

namespace {
/// 64-byte aligned, with a guard after its end.
struct GuardedBuffer {
  static constexpr size_t kGuard = 128;
  explicit GuardedBuffer(size_t size) : size(size), storage(size + kGuard + 64, std::byte(0xab)) {
    data = reinterpret_cast<std::byte *>((reinterpret_cast<uintptr_t>(storage.data()) + 63) / 64 * 64);
  }
  bool isGuardWhole() const {
    return std::all_of(data + size, data + size + kGuard, [](std::byte b) { return b == std::byte(0xab); });
  }
  size_t size;
  std::vector<std::byte> storage;
  std::byte *data;
};
} // namespace

std::vector<HostTensor> runFusion(FusionOp fusion, const FusionSpec &spec, GeneratedKernel kernel,
                                  const std::vector<HostTensor> &inputs) {
  std::vector<std::unique_ptr<GuardedBuffer>> buffers;
  std::vector<void *> operands;
  for (const HostTensor &input : inputs) {
    std::vector<std::byte> bytes = toBytes(input);
    buffers.push_back(std::make_unique<GuardedBuffer>(bytes.size()));
    std::memcpy(buffers.back()->data, bytes.data(), bytes.size());
    operands.push_back(buffers.back()->data);
  }
  for (auto [i, output] : llvm::enumerate(fusion.getOutputs())) {
    if (i < spec.inPlace.size() && spec.inPlace[i] >= 0) {
      EXPECT_TRUE(fusion.canShareBuffer(spec.inPlace[i], i));
      operands.push_back(operands[spec.inPlace[i]]);
      continue;
    }
    buffers.push_back(std::make_unique<GuardedBuffer>(tensorBytes(cast<RankedTensorType>(output.getType()))));
    operands.push_back(buffers.back()->data);
  }
  int64_t rows = fusion.getRows(), cols = fusion.getCols(), rowBlock = fusion.getRowBlock(),
          colBlock = fusion.getColBlock();
  for (int64_t row = 0; row < rows; row += rowBlock)
    for (int64_t col = 0; col < cols; col += colBlock)
      kernel(operands.data(), row, std::min(rows, row + rowBlock), col, std::min(cols, col + colBlock));
  std::vector<HostTensor> results;
  for (auto [i, output] : llvm::enumerate(fusion.getOutputs()))
    results.push_back(
        fromBytes(cast<RankedTensorType>(output.getType()), static_cast<std::byte *>(operands[inputs.size() + i])));
  for (const auto &buffer : buffers)
    EXPECT_TRUE(buffer->isGuardWhole()) << "written past the end";
  return results;
}

/// Whether got is want to the rounding of its type: f32 to `tolerance` of `scale`, bf16 to half a unit in the last
/// place and that.
static bool isNear(double got, double want, Type type, double tolerance, double scale) {
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) == std::isnan(got);
  if (std::isinf(want) || std::isinf(got) || !isa<FloatType>(type))
    return got == want;
  double rounding = type.isBF16() ? std::ldexp(std::fabs(want), -8) : 0;
  return std::fabs(got - want) <= rounding + tolerance * scale;
}

static void expectNear(const HostTensor &got, const HostTensor &want, double tolerance, double scale) {
  for (int64_t i = 0; i < want.size(); ++i)
    if (std::isfinite(want.asDouble(i)))
      scale = std::max(scale, std::fabs(want.asDouble(i)));
  for (int64_t i = 0; i < want.size(); ++i)
    if (!isNear(got.asDouble(i), want.asDouble(i), want.type.getElementType(), tolerance, scale)) {
      ADD_FAILURE() << "element " << i << " of " << want.size() << ": got " << got.asDouble(i) << ", expected "
                    << want.asDouble(i);
      return;
    }
}

void forEachIsa(FusionOp fusion, function_ref<void(const CpuIsa &, GeneratedKernel)> run) {
  for (const CpuIsa &isa : cpuIsas()) {
    SCOPED_TRACE(isa.name);
    FailureOr<CodeBlob> blob = compileFusions({fusion}, isa);
    ASSERT_TRUE(succeeded(blob));
    if (canRun(isa))
      run(isa, ExecutableCode(*blob).entry(0));
  }
}

void expectMatchesHost(const FusionSpec &spec) {
  OwningOpRef<ModuleOp> module = parseFusion(spec);
  ASSERT_TRUE(module) << spec.body;
  FusionOp fusion = fusionIn(*module);
  std::vector<HostTensor> inputs;
  for (Value input : fusion.getInputs())
    inputs.push_back(randomTensor(cast<RankedTensorType>(input.getType()), spec, unsigned(inputs.size())));
  SmallVector<HostTensor> expected;
  ASSERT_TRUE(succeeded(fusion.evaluate(inputs, expected)));
  auto compare = [&](const std::vector<HostTensor> &results) {
    ASSERT_EQ(results.size(), expected.size());
    for (size_t i = 0; i < results.size(); ++i) {
      SCOPED_TRACE("result " + std::to_string(i));
      expectNear(results[i], expected[i], spec.tolerance, spec.leastScale);
    }
  };
  forEachIsa(fusion, [&](const CpuIsa &, GeneratedKernel kernel) { compare(runFusion(fusion, spec, kernel, inputs)); });
  SCOPED_TRACE("GPU");
  compare(runOnGpu(fusion, spec, inputs));
}

} // namespace llmc
