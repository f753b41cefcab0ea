// Places for the nodes of a training step's graph: forward pass downwards on the left, backward pass upwards on the
// right, so that what the backward pass reads of the forward pass lies beside it.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace llmc {

struct GraphNode {
  std::string label;          ///< what it does: "matmul"
  std::string name;           ///< where it comes from: ONNX nodes
  std::string detail;         ///< further lines: types, attributes, what is fused
  std::string kind;           ///< how it is drawn: "contraction", "attention", "fusion", "other"
  std::vector<size_t> inputs; ///< nodes before this one
};

struct Graph {
  std::vector<GraphNode> nodes; ///< in an order in which inputs come first
  /// Where the backward pass begins: the first node whose way goes back; nodes.size() for a graph that only goes down.
  size_t turn = 0;
};

struct GraphPlace {
  int x = 0, y = 0; ///< upper left corner
};

struct GraphLayout {
  std::vector<GraphPlace> places; ///< of each node; no two are nearer than a node's size
  int width = 0, height = 0;
};

inline constexpr int kNodeWidth = 176, kNodeHeight = 36;

/// A layout in layers: each node below its inputs on the way down, above them on the way back.
GraphLayout layoutGraph(const Graph &graph);

} // namespace llmc
