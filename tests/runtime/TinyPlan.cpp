// B = 2, T = 3, V = 5: odd sizes, so that nothing is aligned by chance.
#include "tests/runtime/TinyPlan.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sstream>

namespace llmc::test {

namespace {
/// Deals out places in a space, 64-byte aligned.
struct Places {
  Space space;
  uint64_t end = 0;

  BufferRef next(uint64_t bytes) {
    BufferRef place{space, end, bytes};
    end += (bytes + 63) / 64 * 64;
    return place;
  }
};
} // namespace

static StateEntry makeEntry(Places &places, std::string name, StateKind kind, ElementType type,
                            std::vector<int64_t> shape, std::string role = "") {
  StateEntry entry;
  entry.name = std::move(name);
  entry.kind = kind;
  entry.type = type;
  entry.shape = std::move(shape);
  uint64_t elements = 1;
  for (int64_t dimension : entry.shape)
    elements *= static_cast<uint64_t>(dimension);
  entry.buffer = places.next(elements * elementBytes(type));
  entry.role = std::move(role);
  return entry;
}

static void addParameter(Plan &plan, Places &state, Places &gradients, const char *name, std::vector<int64_t> shape,
                         uint64_t fileOffset) {
  StateEntry parameter = makeEntry(state, name, StateKind::parameter, ElementType::f32, shape);
  parameter.fileOffset = fileOffset;
  parameter.decays = shape.size() > 1;
  parameter.gradient = gradients.next(parameter.buffer.bytes);
  plan.state.push_back(parameter);
  plan.state.push_back(makeEntry(state, std::string(name) + "/m", StateKind::moment, ElementType::f32, shape));
}

static Program makeProgram(ProgramKind kind, const Plan &plan, std::vector<const char *> outputs) {
  Program program;
  program.kind = kind;
  program.arenaBytes = 256;
  program.arenaLowerBoundBytes = 200;
  Launch zero;
  zero.kind = KernelKind::Zero;
  zero.name = "clear";
  zero.operands = {{Space::arena, 64, 128}};
  zero.bytes = 128;
  program.launches.push_back(zero);
  for (const char *output : outputs)
    for (const StateEntry &entry : plan.state)
      if (entry.name == output) {
        Launch launch = zero;
        launch.name = output;
        launch.operands = {entry.buffer};
        program.launches.push_back(launch);
      }
  if (kind == ProgramKind::accumulate || kind == ProgramKind::update) {
    Launch launch = zero;
    launch.name = "gradients";
    launch.operands = {{Space::gradients, 0, plan.gradientBytes}};
    program.launches.push_back(launch);
  }
  program.values = {{"scratch", "workspace", {Space::arena, 64, 128}, 0, 0}};
  return program;
}

TinyPlan::TinyPlan() : table(20), bias(4), mask(3), code(100), model("not an ONNX model") {
  for (size_t i = 0; i < table.size(); ++i)
    table[i] = 0.5f + static_cast<float>(i);
  bias = {-1, -2, -3, -4};
  mask = {0, 1, 0};
  for (size_t i = 0; i < code.size(); ++i)
    code[i] = static_cast<std::byte>(i);

  plan.producer = "llmc test";
  plan.modelName = "tiny.onnx";
  plan.precision = "fp32";
  plan.optimizer = "adamw";
  plan.batch = 2;
  plan.sequence = 3;
  plan.vocabulary = 5;
  plan.flopsPerToken = 10;
  plan.lossIsTokenMean = true;
  Places state{Space::state}, gradients{Space::gradients};
  addParameter(plan, state, gradients, "table", {5, 4}, 0);
  addParameter(plan, state, gradients, "bias", {4}, 128);
  plan.state.push_back(makeEntry(state, "mask", StateKind::constant, ElementType::f32, {3}));
  plan.state.back().fileOffset = 192;
  for (auto [name, role] : {std::pair("idx", "tokens"), std::pair("targets", "labels")}) {
    plan.state.push_back(makeEntry(state, name, StateKind::input, ElementType::i64, {2, 3}, role));
    plan.state.back().vocabulary = 5;
    plan.state.back().ignoreIndex = -1;
  }
  for (const char *name : kScalarNames)
    plan.state.push_back(makeEntry(state, name, StateKind::scalar, ElementType::f32, {}));
  plan.state.push_back(makeEntry(state, "loss", StateKind::output, ElementType::f32, {}, "loss"));
  plan.state.push_back(makeEntry(state, "grad_norm", StateKind::output, ElementType::f32, {}, "grad_norm"));
  Places arena{Space::arena};
  plan.state.push_back(makeEntry(arena, "logits", StateKind::output, ElementType::f32, {2, 3, 5}, "logits"));
  plan.stateBytes = state.end;
  plan.gradientBytes = gradients.end;

  TargetPrograms target;
  target.target = "fake";
  target.isa = "none";
  target.programs = {makeProgram(ProgramKind::stepFused, plan, {"loss"}),
                     makeProgram(ProgramKind::step, plan, {"loss", "grad_norm"}),
                     makeProgram(ProgramKind::accumulate, plan, {"loss"}),
                     makeProgram(ProgramKind::update, plan, {"grad_norm"}),
                     makeProgram(ProgramKind::forward, plan, {"loss", "logits"}),
                     makeProgram(ProgramKind::stepFusedRanks, plan, {"loss"}),
                     makeProgram(ProgramKind::stepRanks, plan, {"loss", "grad_norm"}),
                     makeProgram(ProgramKind::updateRanks, plan, {"grad_norm"})};
  target.entries = {{.name = "kernel0"}, {.name = "kernel1", .offset = 64}};
  target.codeBytes = code.size();
  plan.targets.push_back(std::move(target));
}

PlanPayload TinyPlan::payload() const {
  PlanPayload payload;
  payload.weights = {{0, std::as_bytes(std::span(table))},
                     {128, std::as_bytes(std::span(bias))},
                     {192, std::as_bytes(std::span(mask))}};
  payload.code = code;
  payload.model = std::as_bytes(std::span(model));
  return payload;
}

StateEntry &TinyPlan::entry(const std::string &name) {
  for (StateEntry &entry : plan.state)
    if (entry.name == name)
      return entry;
  ADD_FAILURE() << "no entry " << name;
  return plan.state.front();
}

TestFolder::TestFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "llmc-test-XXXXXX").string();
  folder = mkdtemp(pattern.data()) ? pattern : "";
  EXPECT_FALSE(folder.empty());
}

TestFolder::~TestFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(folder, ignored);
}

std::string TestFolder::write(const std::string &name, std::string_view content) const {
  std::ofstream(path(name), std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
  return path(name);
}

std::string readFile(const std::string &path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

} // namespace llmc::test
