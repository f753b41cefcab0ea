// Launches are known by their address in the plan, which does not move while a session is open.
#include "runtime/Profiler.h"

#include "runtime/AtomicFile.h"

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace llmc {

void Profiler::record(const Program &program, std::span<const double> launchMs) {
  double endUs = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
  double totalMs = 0;
  for (double ms : launchMs)
    totalMs += ms;
  double atUs = endUs - totalMs * 1e3;
  for (size_t i = 0; i < launchMs.size(); ++i) {
    const Launch &launch = program.launches[i];
    Cost &cost = costs[&launch];
    cost.ms += launchMs[i];
    cost.flops += launch.flops;
    cost.bytes += launch.bytes;
    ++cost.runs;
    programs[&launch] = &program;
    if (events.size() < kMaxTraceEvents)
      events.push_back({&launch, &program, atUs, launchMs[i] * 1e3});
    atUs += launchMs[i] * 1e3;
  }
}

void Profiler::recordCollectives(std::span<const CommSpan> collectives) {
  auto toMs = [](CommSpan::Time::duration time) { return std::chrono::duration<double, std::milli>(time).count(); };
  for (const CommSpan &span : collectives) {
    if (span.bytes == 0) // a barrier
      continue;
    ++network.collectives;
    network.bytes += span.bytes;
    network.ms += toMs(span.end - span.met);
    network.meetingMs += toMs(span.met - span.start);
    if (spans.size() < kMaxTraceEvents)
      spans.push_back(span);
  }
}

/// JSON text of a string that may be no UTF-8.
static std::string quoted(const std::string &text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The row of the network: far below the streams'.
static constexpr int kNetworkRow = 1000;

static std::string nameRow(int row, const char *name) {
  return fmt::format(R"({{"name":"thread_name","ph":"M","pid":0,"tid":{0},"args":{{"name":"{1}"}}}})", row, name);
}

std::string Profiler::eventText(const Event &event) {
  const Launch &launch = *event.launch;
  double seconds = std::max(event.durationUs, 1e-3) / 1e6;
  const char *kernel = kernelInfo(launch.kind).name;
  return fmt::format(R"({{"name":{},"cat":"{}","ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
                     R"("args":{{"kernel":"{}","program":"{}","gflop_s":{:.1f},"gb_s":{:.1f}}}}})",
                     quoted(launch.name), kernel, launch.stream, event.startUs, event.durationUs, kernel,
                     programKindName(event.program->kind), launch.flops / seconds / 1e9, launch.bytes / seconds / 1e9);
}

std::string Profiler::spanText(const CommSpan &span) const {
  auto us = [](CommSpan::Time::duration time) { return std::chrono::duration<double, std::micro>(time).count(); };
  return fmt::format(R"({{"name":{},"cat":"network","ph":"X","pid":0,"tid":{},"ts":{:.3f},"dur":{:.3f},)"
                     R"("args":{{"operation":"{}","bytes":{},"waited_for_ranks_ms":{:.3f},"gb_s":{:.2f}}}}})",
                     quoted(span.label), kNetworkRow, us(span.start - start), us(span.end - span.start), span.operation,
                     span.bytes, us(span.met - span.start) / 1e3,
                     static_cast<double>(span.bytes) / std::max(us(span.end - span.met), 1e-3) / 1e3);
}

Status Profiler::writeTrace(const std::string &path) const {
  std::string text = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n" + nameRow(0, "launches");
  if (!spans.empty())
    text += ",\n" + nameRow(kNetworkRow, "network");
  for (const Event &event : events)
    text += ",\n" + eventText(event);
  for (const CommSpan &span : spans)
    text += ",\n" + spanText(span);
  text += "\n]}\n";
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return file->commit();
}

std::string Profiler::table(size_t numLaunches) const {
  std::map<KernelKind, Cost> kinds;
  std::vector<std::pair<const Launch *, Cost>> launches(costs.begin(), costs.end());
  double totalMs = 0;
  for (const auto &[launch, cost] : launches) {
    Cost &kind = kinds[launch->kind];
    kind.ms += cost.ms;
    kind.flops += cost.flops;
    kind.bytes += cost.bytes;
    kind.runs += cost.runs;
    totalMs += cost.ms;
  }
  auto row = [&](const Cost &cost, const std::string &name) {
    double seconds = std::max(cost.ms, 1e-9) / 1e3;
    return fmt::format("{:6.1f} %  {:10.3f} ms  {:8.1f} GFLOP/s  {:7.1f} GB/s  {:6} x  {}\n",
                       100 * cost.ms / std::max(totalMs, 1e-9), cost.ms, cost.flops / seconds / 1e9,
                       cost.bytes / seconds / 1e9, cost.runs, name);
  };
  std::vector<std::pair<KernelKind, Cost>> sorted(kinds.begin(), kinds.end());
  std::sort(sorted.begin(), sorted.end(), [](auto &a, auto &b) { return a.second.ms > b.second.ms; });
  std::string text = "kinds of kernels by time\n";
  for (const auto &[kind, cost] : sorted)
    text += row(cost, kernelInfo(kind).name);
  // Equal times keep the plan's order.
  std::sort(launches.begin(), launches.end(),
            [](auto &a, auto &b) { return std::pair(-a.second.ms, a.first) < std::pair(-b.second.ms, b.first); });
  text += "costliest launches\n";
  for (size_t i = 0; i < std::min(numLaunches, launches.size()); ++i)
    text += row(launches[i].second,
                fmt::format("{} [{}] {}", kernelInfo(launches[i].first->kind).name,
                            programKindName(programs.at(launches[i].first)->kind), launches[i].first->name));
  if (network.collectives > 0)
    text += fmt::format("network: {} collectives, {:.1f} MB a rank, {:.3f} ms and {:.3f} ms until all ranks had come\n",
                        network.collectives, static_cast<double>(network.bytes) / 1e6, network.ms, network.meetingMs);
  return text;
}

} // namespace llmc
