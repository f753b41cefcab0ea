// The numbers of a plan's reports, on plans of a few launches made by hand.
#include "tools/report/Collectives.h"
#include "tools/report/KernelCost.h"
#include "tools/report/PlanDiff.h"
#include "tools/report/PlanJson.h"
#include "tools/report/PlanText.h"
#include "tools/report/ProgramMemory.h"

#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace llmc;
using testing::ContainsRegex;
using testing::HasSubstr;

namespace {

Launch matmul(int64_t m, int64_t n, int64_t k, ElementType type) {
  Launch launch;
  launch.kind = KernelKind::MatMul;
  launch.name = "fc";
  launch.ints = {1, m, n, k, 0, 1, k, k, n, m * k, n * k, m * n, int64_t(type), int64_t(type), 0, 0, 0};
  launch.operands = {{Space::arena, 0, 4096}, {Space::state, 0, 4096}, {}, {Space::arena, 4096, 4096}, {}};
  launch.flops = 2.0 * double(m * n * k);
  launch.bytes = 12288;
  return launch;
}

Launch zero(const std::string &name) {
  Launch launch;
  launch.kind = KernelKind::Zero;
  launch.name = name;
  launch.operands = {{Space::arena, 0, 4096}};
  launch.bytes = 4096;
  return launch;
}

StateEntry parameter(const std::string &name, std::vector<int64_t> shape, BufferRef buffer) {
  StateEntry entry;
  entry.name = name;
  entry.shape = std::move(shape);
  entry.buffer = buffer;
  return entry;
}

DeviceRates slowDevice() { return {"slow", "a slow device", 1, 2, 4, 1}; }

/// Three launches over two values of 100 bytes and one of 64, the second of them only at the first launch.
Plan smallPlan() {
  Plan plan;
  plan.producer = "test";
  plan.modelName = "m.onnx";
  plan.precision = "fp32";
  plan.optimizer = "sgd";
  plan.state = {parameter("w", {32, 32}, {Space::state, 0, 4096})};
  plan.stateBytes = 4096;
  plan.gradientBytes = 512;
  Program program;
  program.kind = ProgramKind::step;
  program.launches = {zero("clear"), matmul(32, 32, 32, ElementType::f32), zero("clear again")};
  program.values = {{"a", "activations", {Space::arena, 0, 100}, 0, 2},
                    {"b", "workspace", {Space::arena, 128, 100}, 0, 0},
                    {"c", "gradients", {Space::arena, 128, 64}, 1, 2}};
  program.arenaBytes = 256;
  program.arenaLowerBoundBytes = 200;
  TargetPrograms target;
  target.target = "cpu";
  target.isa = "x86-64-v3";
  target.programs = {program};
  plan.targets = {target};
  return plan;
}

PlanView viewOf(const Plan &plan) {
  PlanView view;
  view.plan = &plan;
  view.targets = {&plan.targets.front()};
  view.device = slowDevice();
  return view;
}

TEST(KernelCost, ShapesAreSizesOnly) {
  EXPECT_EQ(shapeText(matmul(6, 8, 4, ElementType::f32)), "m 6, n 8, k 4, transposeRhs");
  EXPECT_EQ(shapeText(zero("clear")), "");
  EXPECT_EQ(typesText(matmul(6, 8, 4, ElementType::f32)), "f32");
  EXPECT_EQ(typesText(matmul(6, 8, 4, ElementType::bf16)), "bf16 f32");
  EXPECT_EQ(typesText(zero("clear")), "");
  EXPECT_DOUBLE_EQ(intensity(matmul(32, 32, 32, ElementType::f32)), 65536.0 / 12288);
}

TEST(KernelCost, RooflineTakesTheSlowerOfComputeAndMemory) {
  // 65536 operations at 1, 2 or 4 GFLOP/s; 12288 bytes at 1 GB/s.
  Launch plain = matmul(32, 32, 32, ElementType::f32), half = matmul(32, 32, 32, ElementType::bf16);
  EXPECT_DOUBLE_EQ(roofline(plain, "fp32", slowDevice()).ms, 0.065536);
  EXPECT_DOUBLE_EQ(roofline(plain, "tf32", slowDevice()).ms, 0.032768);
  EXPECT_DOUBLE_EQ(roofline(half, "bf16", slowDevice()).ms, 0.016384);
  EXPECT_FALSE(roofline(half, "bf16", slowDevice()).isByMemory);
  EXPECT_DOUBLE_EQ(roofline(zero("clear"), "fp32", slowDevice()).ms, 0.004096);
  EXPECT_TRUE(roofline(zero("clear"), "fp32", slowDevice()).isByMemory);
}

/// 4 GFLOP/s for contractions of bf16, 8 for large ones, 16 and 32 for attention, 0.5 GB/s.
DeviceRates tunedDevice() {
  DeviceRates device = slowDevice();
  device.reached = {4, 8, 16, 32, 0.5};
  return device;
}

TEST(KernelCost, ExpectsWhatTunedKernelsReach) {
  Launch half = matmul(32, 32, 32, ElementType::bf16), large = matmul(32, kLargeDimension, 32, ElementType::bf16);
  large.bytes = 0;
  EXPECT_EQ(expectedMs(half, slowDevice()), std::nullopt);
  EXPECT_DOUBLE_EQ(*expectedMs(half, tunedDevice()), std::max(65536.0 / 4e6, 12288 / 0.5e6));
  EXPECT_DOUBLE_EQ(*expectedMs(large, tunedDevice()), 2.0 * 32 * 32 * kLargeDimension / 8e6);
  EXPECT_DOUBLE_EQ(*expectedMs(zero("clear"), tunedDevice()), 4096 / 0.5e6);
  // Nobody measured f32.
  EXPECT_EQ(expectedMs(matmul(32, 32, 32, ElementType::f32), tunedDevice()), std::nullopt);
}

TEST(KernelCost, ExpectsAProgramWhereItKnowsEachLaunch) {
  Program program;
  program.launches = {zero("clear"), matmul(32, 32, 32, ElementType::bf16)};
  EXPECT_DOUBLE_EQ(*expectedMs(program, tunedDevice()),
                   *expectedMs(program.launches[0], tunedDevice()) + *expectedMs(program.launches[1], tunedDevice()));
  program.launches.push_back(matmul(32, 32, 32, ElementType::f32));
  EXPECT_EQ(expectedMs(program, tunedDevice()), std::nullopt);
}

TEST(PlanText, SaysHowManyTokensAreExpected) {
  Plan plan = smallPlan();
  plan.batch = 2;
  plan.sequence = 10;
  plan.targets[0].programs[0].launches[1] = matmul(32, 32, 32, ElementType::bf16);
  PlanView view = viewOf(plan);
  view.device = tunedDevice();
  // 8.192 us for each of two clears, 24.576 us for the product.
  EXPECT_NE(planText("p", view, mainProgram(view), false).find("expected 0.04 ms: 488.3 k tokens/s"),
            std::string::npos);
}

TEST(DeviceRates, NamesAreKnownAndOthersRefused) {
  for (const std::string &name : deviceNames())
    if (name != "this") {
      Result<DeviceRates> device = findDevice(name, 1);
      ASSERT_TRUE(device.ok()) << name;
      EXPECT_GT(device->memoryGbs, 0) << name;
      EXPECT_GE(device->bf16Gflops, device->f32Gflops) << name;
      EXPECT_FALSE(device->isMeasured);
    }
  Result<DeviceRates> none = findDevice("b200", 1);
  ASSERT_FALSE(none.ok());
  EXPECT_THAT(none.error().message, HasSubstr("no device 'b200'; there are this, h200"));
}

TEST(DeviceRates, ThisMachineIsMeasured) {
  Result<DeviceRates> device = findDevice("this", 1);
  ASSERT_TRUE(device.ok());
  EXPECT_TRUE(device->isMeasured);
  EXPECT_GT(device->f32Gflops, 1); // any x86-64-v3 core
  EXPECT_GE(device->bf16Gflops, 0.9 * device->f32Gflops);
  EXPECT_GT(device->memoryGbs, 0.5);
}

TEST(CollectiveTable, SaysWhatRunsWhileAMessageTravels) {
  Plan plan = smallPlan();
  EXPECT_EQ(collectiveTable(plan.targets[0], 8), "");
  auto half = [](KernelKind kind, int64_t position) {
    Launch launch;
    launch.kind = kind;
    launch.name = "c_fc.weight";
    launch.operands = {{Space::arena, 0, 4000}, {Space::arena, 4032, 1000}};
    launch.ints = {position, 0};
    return launch;
  };
  Program ranks = plan.targets[0].programs[0];
  ranks.kind = ProgramKind::stepRanks;
  ranks.launches = {half(KernelKind::AllReduceStart, 0), matmul(32, 32, 32, ElementType::f32),
                    half(KernelKind::AllReduceStart, 1), half(KernelKind::AllReduceWait, 0),
                    half(KernelKind::AllReduceWait, 1)};
  plan.targets[0].programs.push_back(ranks);
  PlanView view;
  view.plan = &plan;
  view.times[ProgramKind::stepRanks] = {{}, {}, {}, {0.5, 0.25, 2}, {}};
  OrderedJson json = collectivesJson(view, ranks);
  EXPECT_EQ(json[0].dump(),
            R"({"op":"all_reduce","position":0,"name":"c_fc.weight","type":"f32","parts":2,"bytes":5000,)"
            R"("start_launch":0,"wait_launch":3,"launches_meanwhile":2,"flops_meanwhile":65536.0,)"
            R"("waited_ms":0.5})");
  EXPECT_FALSE(json[1].contains("waited_ms")) << "not measured";
  std::string table = collectiveTable(plan.targets[0], 8);
  EXPECT_THAT(table, HasSubstr("collectives of step-ranks: 2 messages, 10 kB a rank\n"));
  EXPECT_THAT(table, ContainsRegex(" 0 +2 +5 k +2 +65.54 k  c_fc.weight\n"));
  EXPECT_THAT(table, ContainsRegex(" 1 +2 +5 k +1 +0  c_fc.weight\n"));
  EXPECT_THAT(collectiveTable(plan.targets[0], 1), HasSubstr("... 1 more; --all shows them"));
}

TEST(ProgramMemory, SumsWhatLivesByCategory) {
  Plan plan = smallPlan();
  ProgramMemory memory = programMemory(plan, plan.targets[0].programs[0]);
  EXPECT_EQ(memory.lowerBoundBytes, 200u);
  EXPECT_EQ(memory.paddedLowerBoundBytes, 256u);
  EXPECT_EQ(memory.peakLaunch, 0u);
  EXPECT_EQ(memory.peak, (CategoryBytes{4096, 0, 0, 100, 0, 100}));
  EXPECT_EQ(memory.live[2], (CategoryBytes{0, 0, 0, 100, 64, 0}));
  EXPECT_FALSE(memory.usesKeptGradients);
  plan.targets[0].programs[0].launches[0].operands = {{Space::gradients, 0, 64}};
  memory = programMemory(plan, plan.targets[0].programs[0]);
  EXPECT_TRUE(memory.usesKeptGradients);
  EXPECT_EQ(memory.resident[4], 512u);
}

TEST(PlanText, NamesMemoryKernelsAndPadding) {
  Plan plan = smallPlan();
  PlanView view = viewOf(plan);
  std::string text = planText("m.plan", view, mainProgram(view), true);
  EXPECT_THAT(text, HasSubstr("m.plan: m.onnx in fp32 with sgd"));
  EXPECT_THAT(text, HasSubstr("28.00%, of it 28.00% padding"));
  EXPECT_THAT(text, HasSubstr("step on x86-64-v3: 3 launches, 65.54 kFLOP"));
  EXPECT_THAT(text, HasSubstr("matmul f32 [m 32, n 32, k 32, transposeRhs] fc"));
}

class TraceTest : public testing::Test {
protected:
  Result<MeasuredTimes> read(const std::string &content) {
    std::string path = testing::TempDir() + "/llmc-trace-test.json";
    std::ofstream(path) << content;
    Result<MeasuredTimes> times = readTrace(path, plan.targets.front());
    std::remove(path.c_str());
    return times;
  }
  static std::string event(const char *name, const char *kernel, const char *program, double us) {
    return fmt::format(R"({{"name":"{}","ph":"X","ts":0,"dur":{},"args":{{"kernel":"{}","program":"{}"}}}},)", name, us,
                       kernel, program);
  }
  static std::string trace(std::string events) {
    if (!events.empty())
      events.pop_back();
    return "{\"traceEvents\":[" + events + "]}";
  }
  std::string error(const std::string &content) {
    Result<MeasuredTimes> times = read(content);
    return times.ok() ? "" : times.error().message;
  }
  Plan plan = smallPlan();
};

TEST_F(TraceTest, TimesGoToTheirLaunches) {
  std::string run = event("clear", "zero", "step", 1000) + event("fc", "matmul", "step", 3000) +
                    event("clear again", "zero", "step", 2000);
  Result<MeasuredTimes> times = read(trace(run + R"({"name":"process_name","ph":"M","args":{"name":"rank 0"}},)" +
                                           event("clear", "zero", "step", 2000)));
  ASSERT_TRUE(times.ok()) << times.error().message;
  const std::vector<LaunchTime> &step = times->at(ProgramKind::step);
  ASSERT_EQ(step.size(), 3u);
  EXPECT_EQ(step[0].runs, 2u);
  EXPECT_DOUBLE_EQ(step[0].meanMs, 1.5);
  EXPECT_DOUBLE_EQ(step[0].leastMs, 1);
  EXPECT_DOUBLE_EQ(step[1].meanMs, 3);
  EXPECT_DOUBLE_EQ(totalMs(*times, ProgramKind::step), 6.5);
  EXPECT_EQ(totalMs(*times, ProgramKind::forward), 0);
  PlanView view = viewOf(plan);
  view.times = *times;
  EXPECT_THAT(planText("m.plan", view, mainProgram(view), false), HasSubstr("measured 6.50 ms"));
  OrderedJson json = planJson(view);
  EXPECT_EQ(json["targets"][0]["programs"][0]["launches"][1]["measured_ms"], 3.0);
}

TEST_F(TraceTest, RefusesWhatIsNoTraceOfThisPlan) {
  EXPECT_THAT(readTrace("/no/such/file", plan.targets.front()).error().message, HasSubstr("cannot be opened"));
  EXPECT_THAT(error("{"), HasSubstr("not a trace: expected JSON with \"traceEvents\""));
  EXPECT_THAT(error("{\"traceEvents\":1}"), HasSubstr("not a trace"));
  EXPECT_THAT(error(trace("")), HasSubstr("a trace without launches"));
  EXPECT_THAT(error(trace(event("clear", "zero", "forward", 1))),
              HasSubstr("of another plan: this one has no program 'forward'"));
  EXPECT_THAT(error(trace(event("fc", "matmul", "step", 1))),
              HasSubstr("launch 0 of step is matmul 'fc' in the trace, zero 'clear' in the plan"));
  EXPECT_THAT(error("{\"traceEvents\":[{\"name\":\"clear\",\"args\":{\"kernel\":\"zero\",\"program\":\"step\"}}]}"),
              HasSubstr("'clear' has no duration"));
}

TEST(PlanDiff, NamesWhatDiffers) {
  Plan before = smallPlan(), after = smallPlan();
  EXPECT_EQ(planDiff(viewOf(before), viewOf(after)), "");
  after.precision = "bf16";
  after.state.push_back(parameter("b", {32}, {Space::state, 4096, 128}));
  after.targets[0].programs[0].launches[1] = matmul(32, 32, 32, ElementType::bf16);
  after.targets[0].programs[0].arenaBytes = 2 << 20;
  std::string text = planDiff(viewOf(before), viewOf(after));
  EXPECT_THAT(text, HasSubstr("precision: fp32 -> bf16\n"));
  EXPECT_THAT(text, HasSubstr("state b: none -> f32 32\n"));
  EXPECT_THAT(text, HasSubstr("step: arena: 0.00 MiB -> 2.00 MiB\n"));
  EXPECT_THAT(text, HasSubstr("step: - 1 x matmul [m 32, n 32, k 32, transposeRhs] f32\n"));
  EXPECT_THAT(text, HasSubstr("step: + 1 x matmul [m 32, n 32, k 32, transposeRhs] bf16 f32\n"));
  EXPECT_THAT(text, testing::Not(HasSubstr("launches")));
}

} // namespace
