// The profiler writes the launches of a program's run one after the other, so an event is known by its place; kernel
// and name must agree with what stands there in the plan.
#include "tools/report/MeasuredTimes.h"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace llmc {

using Json = nlohmann::json;

/// A member that is a string; "" where there is none.
static std::string textAt(const Json &object, const char *key) {
  auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

static const Program *findProgram(const TargetPrograms &target, const std::string &name) {
  for (const Program &program : target.programs)
    if (name == programKindName(program.kind))
      return &program;
  return nullptr;
}

namespace {

class TraceReader {
public:
  explicit TraceReader(const TargetPrograms &target) : target(target) {}

  Status add(const Json &event) {
    if (!event.is_object() || !event.contains("args") || !event["args"].is_object())
      return {};
    std::string programName = textAt(event["args"], "program");
    if (programName.empty())
      return {}; // no launch
    const Program *program = findProgram(target, programName);
    if (!program)
      return Error{fmt::format("of another plan: this one has no program '{}'", programName)};
    std::vector<LaunchTime> &launches = times[program->kind];
    launches.resize(program->launches.size());
    uint32_t &place = next[program->kind];
    if (place == program->launches.size())
      place = 0;
    const Launch *launch = launches.empty() ? nullptr : &program->launches[place];
    std::string name = textAt(event, "name"), kernel = textAt(event["args"], "kernel");
    if (!launch || kernel != kernelInfo(launch->kind).name || name != launch->name)
      return Error{fmt::format("of another plan: launch {} of {} is {} '{}' in the trace, {} '{}' in the plan", place,
                               programName, kernel, name, launch ? kernelInfo(launch->kind).name : "none",
                               launch ? launch->name : "")};
    auto duration = event.find("dur");
    if (duration == event.end() || !duration->is_number())
      return Error{fmt::format("not a trace of llmc-run: '{}' has no duration", name)};
    double ms = duration->get<double>() / 1e3;
    LaunchTime &time = launches[place++];
    time.leastMs = time.runs == 0 ? ms : std::min(time.leastMs, ms);
    time.meanMs += (ms - time.meanMs) / double(++time.runs);
    return {};
  }

  MeasuredTimes times;

private:
  const TargetPrograms &target;
  std::map<ProgramKind, uint32_t> next; ///< the launch that a program's next event is
};

} // namespace

Result<MeasuredTimes> readTrace(const std::string &path, const TargetPrograms &target) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{path + ": cannot be opened"};
  Json trace = Json::parse(file, nullptr, /*allow_exceptions=*/false);
  if (!trace.is_object() || !trace.contains("traceEvents") || !trace["traceEvents"].is_array())
    return Error{path + ": not a trace: expected JSON with \"traceEvents\", as llmc-run --profile writes it"};
  TraceReader reader(target);
  for (const Json &event : trace["traceEvents"])
    if (Status status = reader.add(event); !status)
      return inContext(path, status.error());
  if (reader.times.empty())
    return Error{path + ": a trace without launches"};
  return std::move(reader.times);
}

double totalMs(const MeasuredTimes &times, ProgramKind kind) {
  double ms = 0;
  if (auto found = times.find(kind); found != times.end())
    for (const LaunchTime &time : found->second)
      ms += time.meanMs;
  return ms;
}

} // namespace llmc
