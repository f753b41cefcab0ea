// Data goes in as columns of numbers, texts as numbers into one pool: a page of GPT-2 stays small. The script in page/
// turns them into tables and drawings.
#include "tools/report/ReportPage.h"

#include "runtime/AtomicFile.h"
#include "tools/report/Collectives.h"
#include "tools/report/KernelCost.h"
#include "tools/report/PageFiles.h"
#include "tools/report/ProgramMemory.h"

#include <algorithm>
#include <fmt/format.h>

namespace llmc {

size_t TextPool::add(const std::string &text) {
  auto [found, isNew] = numbers.try_emplace(text, texts.size());
  if (isNew)
    texts.push_back(text);
  return found->second;
}

/// Milliseconds and the like in five digits: what nobody can see need not be stored.
static OrderedJson shortNumber(double value) { return std::stod(fmt::format("{:.5g}", value)); }

namespace {

class PageData {
public:
  PageData(const PlanView &view, const PageExtras &extras) : view(view), extras(extras) {}

  OrderedJson build() {
    const Plan &plan = *view.plan;
    OrderedJson json = {{"model", plan.modelName},
                        {"producer", plan.producer},
                        {"precision", plan.precision},
                        {"optimizer", plan.optimizer},
                        {"batch", plan.batch},
                        {"sequence", plan.sequence},
                        {"vocabulary", plan.vocabulary},
                        {"flopsPerToken", plan.flopsPerToken},
                        {"isa", view.targets.front()->isa},
                        {"categories", kMemoryCategories}};
    json["device"] = {{"name", view.device.description},
                      {"f32", shortNumber(view.device.f32Gflops)},
                      {"bf16", shortNumber(view.device.bf16Gflops)},
                      {"memory", shortNumber(view.device.memoryGbs)}};
    json["sections"] = OrderedJson::array();
    for (const SectionBytes &section : view.sections)
      json["sections"].push_back({section.name, section.bytes});
    json["programs"] = OrderedJson::array();
    for (const Program &program : view.targets.front()->programs)
      json["programs"].push_back(programData(program));
    json["first"] = &mainProgram(view) - view.targets.front()->programs.data();
    addExtras(json);
    json["texts"] = pool.getTexts();
    return json;
  }

private:
  OrderedJson programData(const Program &program) {
    ProgramMemory memory = programMemory(*view.plan, program);
    OrderedJson json = {{"kind", programKindName(program.kind)},
                        {"arena", program.arenaBytes},
                        {"bound", program.arenaLowerBoundBytes},
                        {"padded", memory.paddedLowerBoundBytes},
                        {"peakLaunch", memory.peakLaunch},
                        {"peak", memory.peak},
                        {"resident", memory.resident}};
    for (size_t category = categoryIndex("activations"); category < kMemoryCategories.size(); ++category) {
      OrderedJson live = OrderedJson::array();
      for (const CategoryBytes &bytes : memory.live)
        live.push_back(bytes[category]);
      json["live"].push_back(std::move(live));
    }
    json["collectives"] = collectiveRows(program);
    json["launches"] = launchColumns(program);
    json["values"] = valueColumns(program);
    return json;
  }

  OrderedJson collectiveRows(const Program &program) {
    OrderedJson rows = OrderedJson::array();
    for (const Collective &one : collectivesOf(program)) {
      const LaunchTime *waited = timeOf(view, program.kind, one.waitLaunch);
      rows.push_back({pool.add(one.start->name), one.start->operands.size(), one.bytes, one.startLaunch, one.waitLaunch,
                      shortNumber(one.flopsMeanwhile), waited ? shortNumber(waited->meanMs) : OrderedJson()});
    }
    return rows;
  }

  OrderedJson launchColumns(const Program &program) {
    OrderedJson columns = {{"kernel", {}}, {"ops", {}},   {"name", {}},  {"shape", {}}, {"types", {}},
                           {"flops", {}},  {"bytes", {}}, {"bound", {}}, {"by", {}}};
    for (size_t i = 0; i < program.launches.size(); ++i) {
      const Launch &launch = program.launches[i];
      Roofline bound = roofline(launch, view.plan->precision, view.device);
      columns["kernel"].push_back(pool.add(kernelInfo(launch.kind).name));
      columns["ops"].push_back(pool.add(kernelText(*view.targets.front(), launch)));
      columns["name"].push_back(pool.add(launch.name));
      columns["shape"].push_back(pool.add(shapeText(launch)));
      columns["types"].push_back(pool.add(typesText(launch)));
      columns["flops"].push_back(int64_t(launch.flops));
      columns["bytes"].push_back(int64_t(launch.bytes));
      columns["bound"].push_back(shortNumber(bound.ms));
      columns["by"].push_back(bound.isByMemory ? 1 : 0);
      if (const LaunchTime *time = timeOf(view, program.kind, i))
        columns["ms"].push_back(shortNumber(time->meanMs));
    }
    return columns;
  }

  OrderedJson valueColumns(const Program &program) {
    OrderedJson columns = {{"name", {}}, {"category", {}}, {"offset", {}}, {"bytes", {}}, {"first", {}}, {"last", {}}};
    for (const ValueRange &value : program.values) {
      columns["name"].push_back(pool.add(value.name));
      columns["category"].push_back(categoryIndex(value.category));
      columns["offset"].push_back(value.buffer.offset);
      columns["bytes"].push_back(value.buffer.bytes);
      columns["first"].push_back(value.firstLaunch);
      columns["last"].push_back(value.lastLaunch);
    }
    return columns;
  }

  OrderedJson graphData(const PageGraph &page) {
    GraphLayout layout = layoutGraph(page.graph);
    OrderedJson json = {{"title", page.title},
                        {"note", page.note},
                        {"width", layout.width},
                        {"height", layout.height},
                        {"label", {}},
                        {"sub", {}},
                        {"detail", {}},
                        {"kind", {}},
                        {"x", {}},
                        {"y", {}},
                        {"from", {}},
                        {"to", {}}};
    for (size_t i = 0; i < page.graph.nodes.size(); ++i) {
      const GraphNode &node = page.graph.nodes[i];
      json["label"].push_back(pool.add(node.label));
      json["sub"].push_back(pool.add(node.name));
      json["detail"].push_back(pool.add(node.detail));
      json["kind"].push_back(pool.add(node.kind));
      json["x"].push_back(layout.places[i].x);
      json["y"].push_back(layout.places[i].y);
      for (size_t input : node.inputs) {
        json["from"].push_back(input);
        json["to"].push_back(i);
      }
    }
    return json;
  }

  void addExtras(OrderedJson &json) {
    for (const PageGraph &graph : extras.graphs)
      json["graphs"].push_back(graphData(graph));
    for (const PageParameter &parameter : extras.ledger)
      json["ledger"].push_back({parameter.name, parameter.type, parameter.shape, parameter.role, parameter.uses});
    for (const auto &[pass, seconds] : extras.passSeconds)
      json["passes"].push_back({pass, shortNumber(seconds)});
    std::map<std::array<size_t, 4>, size_t> places;
    for (const PageRemark &remark : extras.remarks) {
      std::array<size_t, 4> key = {pool.add(remark.pass), pool.add(remark.kind), pool.add(remark.node),
                                   pool.add(remark.message)};
      auto [found, isNew] = places.try_emplace(key, places.size());
      if (isNew)
        json["remarks"].push_back({key[0], key[1], key[2], key[3], 0, OrderedJson::array()});
      OrderedJson &count = json["remarks"][found->second][4], &programs = json["remarks"][found->second][5];
      count = count.get<int64_t>() + 1;
      size_t program = pool.add(remark.program);
      if (std::find(programs.begin(), programs.end(), program) == programs.end())
        programs.push_back(program);
    }
  }

  const PlanView &view;
  const PageExtras &extras;
  TextPool pool;
};

} // namespace

/// `text` with each `from` made a `to`.
static std::string replaced(std::string text, const std::string &from, const std::string &to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

static std::string escaped(const std::string &text) {
  return replaced(replaced(replaced(text, "&", "&amp;"), "<", "&lt;"), "\"", "&quot;");
}

/// The page's frame with its marks filled in; what is put in is not looked at again.
static std::string filled(std::string_view frame, const std::map<std::string_view, std::string> &parts) {
  std::string text;
  while (!frame.empty()) {
    size_t begin = std::min(frame.find('@'), frame.size()), end = frame.find('@', begin + 1);
    text += frame.substr(0, begin);
    if (begin == frame.size())
      break;
    auto part = end == frame.npos ? parts.end() : parts.find(frame.substr(begin + 1, end - begin - 1));
    text += part == parts.end() ? "@" : part->second;
    frame.remove_prefix(part == parts.end() ? begin + 1 : end + 1);
  }
  return text;
}

std::string reportPage(const PlanView &view, const PageExtras &extras) {
  // A "<" in the data could end it early.
  return filled(kPageHtml, {{"TITLE", escaped(view.plan->modelName) + " · llmc"},
                            {"STYLE", kPageCss},
                            {"SCRIPT", kPageScript},
                            {"DATA", replaced(jsonText(PageData(view, extras).build()), "<", "\\u003c")}});
}

Status writeReportPage(const std::string &path, const PlanView &view, const PageExtras &extras) {
  std::string page = reportPage(view, extras);
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(page))));
  return file->commit();
}

} // namespace llmc
