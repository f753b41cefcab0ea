// The memory plan, watched while a compiled plan trains: every access of a launch must hit values that live then, and
// values that are said to die too early are noticed.
#include "tests/e2e/EditedPlan.h"

#include <algorithm>
#include <fmt/format.h>
#include <gmock/gmock.h>

namespace llmc::test {
namespace {

using cuda::test::SimDevice;
using testing::HasSubstr;

/// Tells the simulator which values of the arena live while it runs a launch. Launches follow each other's numbers from
/// the program's first one, whose arguments say where the arena lies.
class Lifetimes {
public:
  explicit Lifetimes(Editable edited) : edited(std::move(edited)) {}

  void watch(SimDevice &sim) { sim.hook<void (*)(CudasimLiveRanges, void *)>("cudasimSetLiveRanges")(rangesOf, this); }
  size_t numWatched() const { return watched; }

private:
  static size_t rangesOf(void *user, const CudasimOperation *operation, CudasimRange *covered, CudasimRange *live,
                         size_t capacity) {
    return static_cast<Lifetimes *>(user)->ranges(*operation, *covered, live, capacity);
  }

  const std::string &symbolOf(const Launch &launch) {
    static const std::string contraction = "cublasLtMatmul";
    return launch.kind == KernelKind::MatMul ? contraction : edited.entryOf(launch).symbol;
  }

  /// The first launch is running: its parameters are its operands' addresses.
  void begin(const CudasimOperation &operation) {
    first = operation.number;
    auto *addresses = static_cast<const uint64_t *>(operation.parameters);
    for (const BufferRef &operand : edited.step().launches[0].operands)
      if (uint64_t address = *addresses++; operand.space == Space::arena)
        arena = address - operand.offset;
  }

  size_t ranges(const CudasimOperation &operation, CudasimRange &covered, CudasimRange *live, size_t capacity) {
    const Program &step = edited.step();
    if (operation.name == symbolOf(step.launches[0]))
      begin(operation);
    uint64_t launch = operation.number - first;
    if (arena == 0 || operation.number < first || launch >= step.launches.size())
      return SIZE_MAX;
    EXPECT_EQ(operation.name, symbolOf(step.launches[launch])) << "launch " << launch;
    ++watched;
    covered = {arena, arena + step.arenaBytes};
    std::vector<CudasimRange> found;
    for (const ValueRange &value : step.values)
      if (value.buffer.space == Space::arena && value.firstLaunch <= launch && launch <= value.lastLaunch)
        found.push_back({arena + value.buffer.offset, arena + value.buffer.offset + value.buffer.bytes});
    std::ranges::sort(found, {}, &CudasimRange::begin);
    if (found.size() <= capacity)
      std::ranges::copy(found, live);
    return found.size();
  }

  Editable edited;
  uint64_t first = 0, arena = 0;
  size_t watched = 0;
};

Outcome trainWatched(const Editable &launches, const Editable &values, size_t *numWatched = nullptr) {
  Lifetimes lifetimes(values);
  Outcome outcome = train(launches, [&](SimDevice &sim) { lifetimes.watch(sim); });
  if (numWatched)
    *numWatched = lifetimes.numWatched();
  return outcome;
}

TEST(CudaLifetime, everyAccessIsOfALiveValue) {
  Editable plan = compiled();
  size_t numWatched = 0;
  EXPECT_EQ(trainWatched(plan, plan, &numWatched).error, "");
  EXPECT_EQ(numWatched, 2 * plan.step().launches.size()) << "each launch of two steps";
}

TEST(CudaLifetime, valuesThatDieTooEarlyAreNoticed) {
  Editable plan = compiled();
  size_t numShortened = 0;
  for (size_t i = 0; i < plan.step().values.size(); i += 3) {
    Editable edited = plan;
    ValueRange &value = edited.step().values[i];
    if (value.buffer.space != Space::arena || value.buffer.bytes == 0 || value.firstLaunch == value.lastLaunch)
      continue;
    --value.lastLaunch;
    ++numShortened;
    EXPECT_THAT(trainWatched(plan, edited).error, HasSubstr("access outside the planned lifetime")) << value.name;
  }
  EXPECT_GT(numShortened, 5U);
}

TEST(CudaLifetime, anOperandMovedToADeadValueIsNoticed) {
  Editable plan = compiled(), edited = plan;
  Launch &launch = edited.first(KernelKind::AttentionGrad);
  auto index = static_cast<uint32_t>(&launch - edited.step().launches.data());
  uint64_t size = launch.operands[0].bytes;
  for (const ValueRange &value : plan.step().values)
    if (value.buffer.space == Space::arena && value.lastLaunch < index && value.buffer.bytes >= size)
      launch.operands[0].offset = value.buffer.offset;
  EXPECT_NE(train(edited), train(plan));
  EXPECT_THAT(trainWatched(edited, plan).error, HasSubstr("_attention_grad: access outside the planned lifetime"));
}

} // namespace
} // namespace llmc::test
