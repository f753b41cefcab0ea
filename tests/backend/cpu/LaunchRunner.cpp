// What a launch is made of, whatever device runs it; and the tests' numbers.
#include "tests/backend/cpu/LaunchRunner.h"

#include "runtime/ElementConvert.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <sstream>

namespace llmc::test {

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

static std::vector<std::string> words(const char *list) {
  std::istringstream stream(list);
  std::vector<std::string> result;
  for (std::string word; stream >> word;)
    result.push_back(word.ends_with('?') ? word.substr(0, word.size() - 1) : word);
  return result;
}

size_t indexIn(const char *list, const std::string &name) {
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

} // namespace llmc::test
