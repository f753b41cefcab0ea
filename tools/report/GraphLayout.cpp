// Layers by longest path; what waits for nothing (a value computed again, a weight packed) goes to where it is read.
// Within a layer, nodes stand in the order of their inputs, around the middle.
#include "tools/report/GraphLayout.h"

#include <algorithm>
#include <limits>

namespace llmc {

static constexpr int kColumnStep = kNodeWidth + 20, kRowStep = kNodeHeight + 26, kBetween = 120;

namespace {

class Layouter {
public:
  explicit Layouter(const Graph &graph) : graph(graph), layer(graph.nodes.size()), column(graph.nodes.size()) {}

  GraphLayout run() {
    findLayers();
    size_t numDown = countLayers(0, turn()), numBack = countLayers(turn(), graph.nodes.size());
    placeColumns(0, turn(), numDown);
    placeColumns(turn(), graph.nodes.size(), numBack);
    GraphLayout layout;
    layout.places.resize(graph.nodes.size());
    size_t numRows = std::max(numDown, numBack);
    int left = spread(layout, 0, turn(), numDown, numRows, 0, /*isDown=*/true);
    int right = spread(layout, turn(), graph.nodes.size(), numBack, numRows, turn() == 0 ? 0 : left + kBetween, false);
    layout.width = std::max(left, right);
    layout.height = int(numRows) * kRowStep;
    return layout;
  }

private:
  size_t turn() const { return std::min(graph.turn, graph.nodes.size()); }
  bool isBack(size_t node) const { return node >= turn(); }

  /// Layers count from 0 in each part; inputs of the other part do not matter.
  void findLayers() {
    std::vector<size_t> least(graph.nodes.size(), std::numeric_limits<size_t>::max());
    for (size_t node = 0; node < graph.nodes.size(); ++node)
      for (size_t input : graph.nodes[node].inputs)
        if (isBack(input) == isBack(node))
          layer[node] = std::max(layer[node], layer[input] + 1);
    std::vector<bool> waits = findWaiting();
    for (size_t node = graph.nodes.size(); node-- > 0;) {
      if (!waits[node] && least[node] != std::numeric_limits<size_t>::max())
        layer[node] = least[node] - 1;
      for (size_t input : graph.nodes[node].inputs)
        if (isBack(input) == isBack(node))
          least[input] = std::min(least[input], layer[node]);
    }
  }

  /// Nodes that depend on where their part begins.
  std::vector<bool> findWaiting() const {
    std::vector<bool> waits(graph.nodes.size());
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      waits[node] = node == 0 || node == turn();
      for (size_t input : graph.nodes[node].inputs)
        waits[node] = waits[node] || (isBack(input) == isBack(node) && waits[input]);
    }
    return waits;
  }

  size_t countLayers(size_t begin, size_t end) const {
    size_t count = 0;
    for (size_t node = begin; node < end; ++node)
      count = std::max(count, layer[node] + 1);
    return count;
  }

  /// Columns of a part, in steps of a node, from 0.
  void placeColumns(size_t begin, size_t end, size_t numLayers) {
    std::vector<std::vector<size_t>> rows(numLayers);
    for (size_t node = begin; node < end; ++node)
      rows[layer[node]].push_back(node);
    for (std::vector<size_t> &row : rows) {
      std::stable_sort(row.begin(), row.end(), [&](size_t a, size_t b) { return wanted(a) < wanted(b); });
      placeRow(row);
    }
    double least = 0;
    for (size_t node = begin; node < end; ++node)
      least = std::min(least, column[node]);
    for (size_t node = begin; node < end; ++node)
      column[node] -= least;
  }

  /// The mean of the inputs' columns, of its own part.
  double wanted(size_t node) const {
    double sum = 0, count = 0;
    for (size_t input : graph.nodes[node].inputs)
      if (isBack(input) == isBack(node)) {
        sum += column[input];
        ++count;
      }
    return count > 0 ? sum / count : 0;
  }

  /// Left to right with a step between, around 0.
  void placeRow(const std::vector<size_t> &row) {
    for (size_t i = 0; i < row.size(); ++i)
      column[row[i]] = double(i) - double(row.size() - 1) / 2;
  }

  /// Gives the nodes of a part their places, its layers spread over all rows; the right border.
  int spread(GraphLayout &layout, size_t begin, size_t end, size_t numLayers, size_t numRows, int left,
             bool isDown) const {
    int right = left;
    for (size_t node = begin; node < end; ++node) {
      size_t row = numLayers > 1 ? layer[node] * (numRows - 1) / (numLayers - 1) : 0;
      layout.places[node] = {left + int(column[node] * kColumnStep), int(isDown ? row : numRows - 1 - row) * kRowStep};
      right = std::max(right, layout.places[node].x + kNodeWidth);
    }
    return right;
  }

  const Graph &graph;
  std::vector<size_t> layer;
  std::vector<double> column; ///< in steps of a node
};

} // namespace

GraphLayout layoutGraph(const Graph &graph) { return Layouter(graph).run(); }

} // namespace llmc
