// Keys stand in the order in which people read them.
#include "tools/report/PlanJson.h"

#include "tools/report/Collectives.h"
#include "tools/report/KernelCost.h"
#include "tools/report/ProgramMemory.h"

#include <fmt/format.h>

namespace llmc {

static constexpr std::array<const char *, 4> kSpaceNames = {"none", "state", "gradients", "arena"};
static constexpr std::array<const char *, 6> kStateNames = {"parameter", "constant", "moment",
                                                            "input",     "scalar",   "output"};

static std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    size_t end = std::min(text.find(' '), text.size());
    result.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

static OrderedJson bufferJson(const BufferRef &buffer) {
  return {{"space", kSpaceNames[size_t(buffer.space)]}, {"offset", buffer.offset}, {"bytes", buffer.bytes}};
}

/// The operands by the names of Kernels.def; those that repeat ("operands...") share one.
static OrderedJson operandsJson(const Launch &launch) {
  std::vector<std::string> names = words(kernelInfo(launch.kind).operands);
  OrderedJson operands = OrderedJson::array();
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    if (launch.operands[i].space == Space::none)
      continue;
    std::string name = names[std::min(i, names.size() - 1)];
    name.erase(std::find_if(name.begin(), name.end(), [](char c) { return c == '?' || c == '.'; }), name.end());
    OrderedJson operand = {{"name", name}};
    operand.update(bufferJson(launch.operands[i]));
    operands.push_back(std::move(operand));
  }
  return operands;
}

template <typename T> static OrderedJson argumentsJson(const char *names, const std::vector<T> &values) {
  OrderedJson arguments = OrderedJson::object();
  std::vector<std::string> list = words(names);
  for (size_t i = 0; i < std::min(list.size(), values.size()); ++i)
    arguments[list[i]] = values[i];
  return arguments;
}

static OrderedJson categoriesJson(const CategoryBytes &bytes) {
  OrderedJson json = OrderedJson::object();
  for (size_t i = 0; i < bytes.size(); ++i)
    json[kMemoryCategories[i]] = bytes[i];
  return json;
}

static OrderedJson launchJson(const PlanView &view, const TargetPrograms &target, const Program &program, size_t i,
                              double stepMs) {
  const Launch &launch = program.launches[i];
  Roofline bound = roofline(launch, view.plan->precision, view.device);
  OrderedJson json = {{"kernel", kernelInfo(launch.kind).name},
                      {"name", launch.name},
                      {"ops", kernelText(target, launch)},
                      {"shape", shapeText(launch)},
                      {"types", typesText(launch)},
                      {"flops", launch.flops},
                      {"bytes", launch.bytes},
                      {"flops_per_byte", intensity(launch)},
                      {"bound_ms", bound.ms},
                      {"bound_by", bound.isByMemory ? "memory" : "compute"},
                      {"stream", launch.stream}};
  if (std::optional<double> expected = expectedMs(launch, view.device))
    json["expected_ms"] = *expected;
  if (const LaunchTime *time = timeOf(view, program.kind, i)) {
    json["measured_ms"] = time->meanMs;
    json["least_ms"] = time->leastMs;
    json["share"] = stepMs > 0 ? time->meanMs / stepMs : 0;
  }
  if (launch.entry >= 0)
    json["entry"] = launch.entry;
  json["ints"] = argumentsJson(kernelInfo(launch.kind).ints, launch.ints);
  json["floats"] = argumentsJson(kernelInfo(launch.kind).floats, launch.floats);
  json["operands"] = operandsJson(launch);
  return json;
}

static OrderedJson programJson(const PlanView &view, const TargetPrograms &target, const Program &program) {
  ProgramMemory memory = programMemory(*view.plan, program);
  double flops = 0, bytes = 0, boundMs = 0, measuredMs = totalMs(view.times, program.kind);
  OrderedJson launches = OrderedJson::array(), values = OrderedJson::array();
  for (size_t i = 0; i < program.launches.size(); ++i) {
    flops += program.launches[i].flops;
    bytes += program.launches[i].bytes;
    boundMs += roofline(program.launches[i], view.plan->precision, view.device).ms;
    launches.push_back(launchJson(view, target, program, i, measuredMs));
  }
  for (const ValueRange &value : program.values) {
    OrderedJson json = {{"name", value.name}, {"category", value.category}};
    json.update(bufferJson(value.buffer));
    json["first_launch"] = value.firstLaunch;
    json["last_launch"] = value.lastLaunch;
    values.push_back(std::move(json));
  }
  OrderedJson json = {
      {"kind", programKindName(program.kind)}, {"flops", flops}, {"bytes", bytes}, {"bound_ms", boundMs}};
  if (std::optional<double> expected = expectedMs(program, view.device))
    json["expected_ms"] = *expected;
  if (measuredMs > 0)
    json["measured_ms"] = measuredMs;
  json["arena_bytes"] = program.arenaBytes;
  json["arena_lower_bound_bytes"] = program.arenaLowerBoundBytes;
  json["arena_padded_lower_bound_bytes"] = memory.paddedLowerBoundBytes;
  json["peak"] = {
      {"launch", memory.peakLaunch}, {"bytes", sum(memory.peak)}, {"by_category", categoriesJson(memory.peak)}};
  json["collectives"] = collectivesJson(view, program);
  json["launches"] = std::move(launches);
  json["values"] = std::move(values);
  return json;
}

static OrderedJson stateJson(const Plan &plan) {
  OrderedJson entries = OrderedJson::array();
  for (const StateEntry &entry : plan.state) {
    OrderedJson json = {{"name", entry.name},   {"kind", kStateNames[size_t(entry.kind)]},
                        {"role", entry.role},   {"type", elementTypeName(entry.type)},
                        {"shape", entry.shape}, {"decays", entry.decays}};
    json.update(bufferJson(entry.buffer));
    if (entry.gradient.space != Space::none)
      json["gradient"] = bufferJson(entry.gradient);
    entries.push_back(std::move(json));
  }
  return entries;
}

static OrderedJson kernelJson(const TargetPrograms &target, const CodeEntry &entry) {
  if (target.target != "cuda")
    return {{"name", entry.name}, {"offset", entry.offset}};
  return {{"name", entry.name},
          {"symbol", entry.symbol},
          {"grid", entry.gridX},
          {"block", entry.blockX},
          {"shared_bytes", entry.sharedBytes}};
}

static OrderedJson targetJson(const PlanView &view, const TargetPrograms &target) {
  OrderedJson kernels = OrderedJson::array(), programs = OrderedJson::array();
  for (const CodeEntry &entry : target.entries)
    kernels.push_back(kernelJson(target, entry));
  for (const Program &program : target.programs)
    programs.push_back(programJson(view, target, program));
  return {{"target", target.target},
          {"isa", target.isa},
          {"code_bytes", target.codeBytes},
          {"kernels", std::move(kernels)},
          {"programs", std::move(programs)}};
}

static OrderedJson deviceJson(const DeviceRates &device) {
  return {{"name", device.name},
          {"description", device.description},
          {"f32_gflops", device.f32Gflops},
          {"tf32_gflops", device.tf32Gflops},
          {"bf16_gflops", device.bf16Gflops},
          {"memory_gb_s", device.memoryGbs},
          {"measured", device.isMeasured}};
}

OrderedJson planJson(const PlanView &view) {
  const Plan &plan = *view.plan;
  OrderedJson sections = OrderedJson::object();
  for (const SectionBytes &section : view.sections)
    sections[section.name] = section.bytes;
  OrderedJson targets = OrderedJson::array();
  for (const TargetPrograms *target : view.targets)
    targets.push_back(targetJson(view, *target));
  return {{"format", 1},
          {"hash", fmt::format("{:016x}", view.hash)},
          {"producer", plan.producer},
          {"model", plan.modelName},
          {"precision", plan.precision},
          {"optimizer", plan.optimizer},
          {"loss_is_token_mean", plan.lossIsTokenMean},
          {"batch", plan.batch},
          {"sequence", plan.sequence},
          {"vocabulary", plan.vocabulary},
          {"flops_per_token", plan.flopsPerToken},
          {"sections", std::move(sections)},
          {"device", deviceJson(view.device)},
          {"state_bytes", plan.stateBytes},
          {"gradient_bytes", plan.gradientBytes},
          {"state", stateJson(plan)},
          {"targets", std::move(targets)}};
}

std::string jsonText(const OrderedJson &json, int indent) {
  return json.dump(indent, ' ', false, OrderedJson::error_handler_t::replace);
}

} // namespace llmc
