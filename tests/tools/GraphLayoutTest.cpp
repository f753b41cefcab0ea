// Places of nodes: nothing overlaps, inputs come first on the way, what is computed again lies where it is read.
#include "tools/report/GraphLayout.h"

#include <cstdlib>
#include <gtest/gtest.h>
#include <random>

using namespace llmc;

namespace {

Graph graphOf(std::vector<std::vector<size_t>> inputs, size_t turn) {
  Graph graph;
  for (std::vector<size_t> &list : inputs)
    graph.nodes.push_back({"op", "", "", "other", std::move(list)});
  graph.turn = turn;
  return graph;
}

void expectApart(const GraphLayout &layout) {
  for (size_t i = 0; i < layout.places.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      EXPECT_TRUE(std::abs(layout.places[i].x - layout.places[j].x) >= kNodeWidth ||
                  std::abs(layout.places[i].y - layout.places[j].y) >= kNodeHeight)
          << i << " and " << j;
}

TEST(GraphLayout, GoesDownThenUp) {
  // 0 -> 1 -> 2, then back: 3 reads 2 and 1, 4 reads 3 and 0.
  GraphLayout layout = layoutGraph(graphOf({{}, {0}, {1}, {2, 1}, {3, 0}}, 3));
  expectApart(layout);
  EXPECT_LT(layout.places[0].y, layout.places[1].y);
  EXPECT_LT(layout.places[1].y, layout.places[2].y);
  EXPECT_EQ(layout.places[3].y, layout.places[2].y); // the turn
  EXPECT_EQ(layout.places[4].y, layout.places[0].y);
  EXPECT_GE(layout.places[3].x, layout.places[2].x + kNodeWidth);
}

TEST(GraphLayout, PutsNodesBesideTheirReaders) {
  // 3 and 4 wait for nothing on the way back and are read by 6, at the end of a long way.
  GraphLayout layout = layoutGraph(graphOf({{}, {0}, {1}, {0}, {3}, {2}, {5, 4}}, 2));
  EXPECT_EQ(layout.places[4].y, layout.places[5].y);
  // 3 is read late, but stands where what it waits for leaves it.
  layout = layoutGraph(graphOf({{}, {0}, {1}, {0}, {2}, {4, 3}}, 6));
  EXPECT_EQ(layout.places[3].y, layout.places[1].y);
}

TEST(GraphLayout, TakesNothing) {
  GraphLayout layout = layoutGraph({});
  EXPECT_TRUE(layout.places.empty());
  EXPECT_EQ(layout.height, 0);
}

TEST(GraphLayout, LeavesRoomInRandomGraphs) {
  std::mt19937 random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<std::vector<size_t>> inputs(200);
    for (size_t node = 1; node < inputs.size(); ++node)
      for (size_t count = random() % 4; count > 0; --count)
        inputs[node].push_back(random() % 3 ? random() % node : node - 1);
    Graph graph = graphOf(inputs, random() % 200);
    GraphLayout layout = layoutGraph(graph);
    expectApart(layout);
    for (size_t node = 0; node < inputs.size(); ++node)
      for (size_t input : inputs[node])
        if ((input < graph.turn) == (node < graph.turn)) {
          EXPECT_EQ(layout.places[input].y < layout.places[node].y, node < graph.turn);
        }
  }
}

} // namespace
