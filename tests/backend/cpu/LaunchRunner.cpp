// Operands lie one after the other in an arena, each followed by a page of a known byte.
#include "tests/backend/cpu/LaunchRunner.h"

#include "runtime/ElementConvert.h"

#include <algorithm>
#include <cstdlib>
#include <gtest/gtest.h>
#include <sstream>

namespace llmc::test {

static constexpr std::byte kGuard{0xa5};
static constexpr uint64_t kGuardBytes = 4096;

IsaLevel testIsa() {
  IsaLevel level = detectIsaLevel().value_or(IsaLevel::v3);
  const char *name = std::getenv("LLMC_TEST_ISA");
  return name ? std::min(level, isaLevelOf(name).value()) : level;
}

std::vector<float> randomNumbers(size_t n, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(n);
  for (float &value : values)
    value = normal(generator);
  return values;
}

std::vector<uint16_t> asBf16(const std::vector<float> &values) {
  std::vector<uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), toBf16);
  return bits;
}

std::vector<float> fromBf16(const std::vector<uint16_t> &values) {
  std::vector<float> floats(values.size());
  std::transform(values.begin(), values.end(), floats.begin(), floatFromBf16);
  return floats;
}

std::vector<float> toBf16Precision(std::vector<float> values) { return fromBf16(asBf16(values)); }

std::unique_ptr<DeviceApi> openTestDevice(int threads) {
  auto device = makeCappedCpuDevice({.threads = threads, .maxIsa = testIsa()});
  TargetPrograms target;
  target.target = "cpu";
  target.isa = isaLevelName(testIsa());
  Status loaded = device->loadCode(target, {});
  EXPECT_TRUE(loaded.ok()) << (loaded.ok() ? "" : loaded.error().message);
  return device;
}

static std::vector<std::string> words(const char *list) {
  std::istringstream stream(list);
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word.ends_with('?') ? word.substr(0, word.size() - 1) : word);
  return result;
}

static size_t indexIn(const char *list, const std::string &name) {
  std::vector<std::string> all = words(list);
  auto at = std::find(all.begin(), all.end(), name);
  EXPECT_NE(at, all.end()) << name;
  return static_cast<size_t>(at - all.begin());
}

LaunchRunner::LaunchRunner(KernelKind kind, int threads) : threads(threads) {
  const KernelInfo &info = kernelInfo(kind);
  launch.kind = kind;
  launch.name = "node";
  launch.ints.resize(words(info.ints).size());
  launch.floats.resize(words(info.floats).size());
  launch.operands.resize(words(info.operands).size());
}

LaunchRunner &LaunchRunner::ints(const std::map<std::string, int64_t> &values) {
  for (const auto &[name, value] : values)
    launch.ints[indexIn(kernelInfo(launch.kind).ints, name)] = value;
  return *this;
}

LaunchRunner &LaunchRunner::number(const std::string &name, double value) {
  launch.floats[indexIn(kernelInfo(launch.kind).floats, name)] = value;
  return *this;
}

LaunchRunner &LaunchRunner::place(const std::string &name, const void *data, size_t bytes) {
  auto *first = static_cast<const std::byte *>(data);
  initial[name].assign(first, first + bytes);
  return *this;
}

Result<std::unique_ptr<PreparedProgram>> LaunchRunner::prepare() {
  device = openTestDevice(threads);
  uint64_t arenaBytes = 0;
  for (const auto &[name, bytes] : initial) {
    launch.operands[indexIn(kernelInfo(launch.kind).operands, name)] = {Space::arena, arenaBytes, bytes.size()};
    arenaBytes += (bytes.size() + 63) / 64 * 64 + kGuardBytes;
  }
  for (const auto &[name, placed] : aliases)
    launch.operands[indexIn(kernelInfo(launch.kind).operands, name)] =
        launch.operands[indexIn(kernelInfo(launch.kind).operands, placed)];
  Result<std::byte *> memory = device->allocate(arenaBytes, "the arena");
  LLMC_RETURN_IF_ERROR(memory);
  arena = *memory;
  std::fill_n(arena, arenaBytes, kGuard);
  for (const auto &[name, bytes] : initial)
    std::copy(bytes.begin(), bytes.end(),
              arena + launch.operands[indexIn(kernelInfo(launch.kind).operands, name)].offset);

  Program program;
  program.launches = {launch};
  program.arenaBytes = arenaBytes;
  DeviceSpaces spaces;
  spaces.arena = arena;
  return device->prepare(program, spaces, /*comm=*/nullptr);
}

Status LaunchRunner::run() {
  auto prepared = prepare();
  LLMC_RETURN_IF_ERROR(prepared);
  LLMC_RETURN_IF_ERROR((*prepared)->run());
  for (const BufferRef &ref : launch.operands)
    if (ref.space == Space::arena)
      for (uint64_t i = 0; i < kGuardBytes; ++i)
        if (arena[ref.offset + ref.bytes + i] != kGuard)
          return Error{"a guard byte was overwritten"};
  return {};
}

std::span<const std::byte> LaunchRunner::content(const std::string &name) const {
  const BufferRef &ref = launch.operands[indexIn(kernelInfo(launch.kind).operands, name)];
  return {arena + ref.offset, ref.bytes};
}

} // namespace llmc::test
