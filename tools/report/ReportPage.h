// The HTML page of a plan or of a compilation: one file with its data, styles and script inside, nothing fetched. What
// the data lacks (graphs, ledger, passes, remarks) the page leaves out.
#pragma once

#include "tools/report/GraphLayout.h"
#include "tools/report/PlanJson.h"

namespace llmc {

/// Texts of the page's data, each stored once and named by its number.
class TextPool {
public:
  size_t add(const std::string &text);
  const std::vector<std::string> &getTexts() const { return texts; }

private:
  std::vector<std::string> texts;
  std::map<std::string, size_t> numbers;
};

/// One tab of the page's graph.
struct PageGraph {
  std::string title;
  std::string note; ///< what it shows, in a sentence
  Graph graph;
};

struct PageParameter {
  std::string name, type, shape, role, uses;
};
struct PageRemark {
  std::string pass, program, kind, node, message;
};

/// What a page shows beside the plan. Empty lists are left out.
struct PageExtras {
  std::vector<PageGraph> graphs;
  std::vector<PageParameter> ledger;
  std::vector<std::pair<std::string, double>> passSeconds;
  std::vector<PageRemark> remarks; ///< equal ones are counted
};

/// The page as text.
std::string reportPage(const PlanView &view, const PageExtras &extras);
/// Writes it, whole or not at all.
Status writeReportPage(const std::string &path, const PlanView &view, const PageExtras &extras);

} // namespace llmc
