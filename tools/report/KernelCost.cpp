// Everything follows from the names in Kernels.def, so that a new kernel needs no word here.
#include "tools/report/KernelCost.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <optional>
#include <string_view>

namespace llmc {

/// Calls `visit(name, value)` for each integer argument, in order.
template <typename F> static void forEachInt(const Launch &launch, F visit) {
  std::string_view names = kernelInfo(launch.kind).ints;
  for (size_t i = 0; i < launch.ints.size() && !names.empty(); ++i) {
    size_t end = std::min(names.find(' '), names.size());
    visit(names.substr(0, end), launch.ints[i]);
    names.remove_prefix(std::min(end + 1, names.size()));
  }
}

static bool isType(std::string_view name) { return name == "type" || name.ends_with("Type"); }

/// Arguments that say where things lie or how the work is cut, not how large it is.
static bool isPlace(std::string_view name) {
  return name == "layout" || name.starts_with("ld") ||
         name.find("Stride") != std::string_view::npos || name.find("Offset") != std::string_view::npos ||
         name.ends_with("Block") || name.ends_with("Layout");
}

/// Arguments that are yes or no.
static bool isFlag(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kFlags = {"transpose", "transposeLhs", "transposeRhs", "accumulate",
                                                             "causal"};
  return std::find(kFlags.begin(), kFlags.end(), name) != kFlags.end();
}

std::string shapeText(const Launch &launch) {
  std::string text;
  forEachInt(launch, [&](std::string_view name, int64_t value) {
    if (isType(name) || isPlace(name) || value == 0 || (value == 1 && (name == "batch" || name.starts_with("size"))))
      return;
    text += text.empty() ? "" : ", ";
    text += isFlag(name) ? std::string(name) : fmt::format("{} {}", name, value);
  });
  return text;
}

/// The element type of the first operand that has one.
static std::optional<ElementType> firstType(const Launch &launch) {
  std::optional<ElementType> first;
  forEachInt(launch, [&](std::string_view name, int64_t value) {
    if (isType(name) && !first && value >= 0 && value <= int64_t(ElementType::boolean))
      first = static_cast<ElementType>(value);
  });
  return first;
}

std::string typesText(const Launch &launch) {
  std::string text;
  forEachInt(launch, [&](std::string_view name, int64_t value) {
    if (!isType(name) || value < 0 || value > int64_t(ElementType::boolean))
      return;
    std::string word = elementTypeName(static_cast<ElementType>(value));
    if ((" " + text + " ").find(" " + word + " ") == std::string::npos)
      text += (text.empty() ? "" : " ") + word;
  });
  return text;
}

double intensity(const Launch &launch) { return launch.bytes > 0 ? launch.flops / launch.bytes : 0; }

Roofline roofline(const Launch &launch, const std::string &precision, const DeviceRates &device) {
  std::optional<ElementType> type = firstType(launch);
  double gflops = type == ElementType::bf16                         ? device.bf16Gflops
                  : type == ElementType::f32 && precision == "tf32" ? device.tf32Gflops
                                                                    : device.f32Gflops;
  double computeMs = launch.flops / gflops / 1e6, memoryMs = launch.bytes / device.memoryGbs / 1e6;
  return {std::max(computeMs, memoryMs), memoryMs >= computeMs};
}

static bool isLarge(const Launch &launch) {
  bool large = false;
  forEachInt(launch, [&](std::string_view name, int64_t value) {
    large |= (name == "m" || name == "n" || name == "k") && value >= kLargeDimension;
  });
  return large;
}

/// The rate of the multiply-adds of a launch, 0 where its time follows from its bytes alone.
static std::optional<double> reachedGflops(const Launch &launch, const ReachedRates &reached) {
  bool isContraction = launch.kind == KernelKind::MatMul, isAttention = launch.kind == KernelKind::Attention,
       isAttentionGrad = launch.kind == KernelKind::AttentionGrad;
  if (!isContraction && !isAttention && !isAttentionGrad)
    return 0;
  if (firstType(launch) != ElementType::bf16)
    return std::nullopt;
  if (isContraction)
    return isLarge(launch) ? reached.largeBf16Gflops : reached.bf16Gflops;
  return isAttention ? reached.attentionGflops : reached.attentionGradientGflops;
}

std::optional<double> expectedMs(const Launch &launch, const DeviceRates &device) {
  if (!device.reached)
    return std::nullopt;
  std::optional<double> gflops = reachedGflops(launch, *device.reached);
  if (!gflops)
    return std::nullopt;
  double computeMs = *gflops > 0 ? launch.flops / *gflops / 1e6 : 0;
  return std::max(computeMs, launch.bytes / device.reached->memoryGbs / 1e6);
}

std::optional<double> expectedMs(const Program &program, const DeviceRates &device) {
  double ms = 0;
  for (const Launch &launch : program.launches) {
    std::optional<double> expected = expectedMs(launch, device);
    if (!expected)
      return std::nullopt;
    ms += *expected;
  }
  return ms;
}

} // namespace llmc
