// Capture of streams into graphs, and their launches: the nodes go to chains of their own, so that what the graph does
// not order may run in any order.
#include "tests/cudasim/driver/Simulator.h"

using namespace llmc::cudasim;

namespace {

/// The nodes that no other node comes after.
std::vector<size_t> leavesOf(const Graph &graph) {
  std::vector<bool> isLeaf(graph.nodes.size(), true);
  for (const GraphNode &node : graph.nodes)
    for (size_t before : node.after)
      isLeaf[before] = false;
  std::vector<size_t> leaves;
  for (size_t i = 0; i < isLeaf.size(); ++i)
    if (isLeaf[i])
      leaves.push_back(i);
  return leaves;
}

void launchGraph(Simulator &sim, GraphExec &exec, SimStream &stream) {
  std::vector<uint32_t> after = sim.before(stream);
  after.push_back(exec.lastEnd);
  uint32_t begin = sim.scheduler.add(stream.chain, "cuGraphLaunch", after, nullptr);
  std::vector<uint32_t> ops, ends{begin};
  for (const GraphNode &node : exec.graph.nodes) {
    std::vector<uint32_t> before{begin};
    for (size_t index : node.after)
      before.push_back(ops[index]);
    ops.push_back(sim.scheduler.add(exec.chains[node.chain], node.name, before, node.submit(sim)));
  }
  for (size_t leaf : leavesOf(exec.graph))
    ends.push_back(ops[leaf]);
  exec.lastEnd = sim.scheduler.add(stream.chain, "end of cuGraphLaunch", ends, nullptr);
}

} // namespace

extern "C" {

CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    if (stream == &sim.legacy)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    stream->capture = std::make_shared<Graph>();
    stream->isOrigin = true;
    stream->captureChain = stream->capture->numChains++;
    stream->tail.clear();
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamEndCapture(CUstream handle, CUgraph *graphHandle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    *graphHandle = nullptr;
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!stream->capture)
      return CUDA_ERROR_ILLEGAL_STATE;
    if (!stream->isOrigin)
      return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
    std::shared_ptr<Graph> graph = stream->capture;
    std::vector<size_t> tail = stream->tail;
    for (const auto &[other, owned] : sim.streams)
      if (other->capture == graph) {
        other->capture.reset();
        other->tail.clear();
        other->isOrigin = false;
      }
    for (size_t leaf : leavesOf(*graph))
      if (std::find(tail.begin(), tail.end(), leaf) == tail.end())
        return CUDA_ERROR_STREAM_CAPTURE_UNJOINED;
    *graphHandle = reinterpret_cast<CUgraph>(sim.graphs.add(std::make_unique<std::shared_ptr<Graph>>(graph)));
    return CUDA_SUCCESS;
  });
}

/// Only their number: the nodes have no handles here.
CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count) {
  return entry(Needs::context, [&](Simulator &sim) {
    std::shared_ptr<Graph> *graph = sim.graphs.find(handle);
    if (!graph)
      return CUDA_ERROR_INVALID_HANDLE;
    if (nodes)
      return CUDA_ERROR_NOT_SUPPORTED;
    *count = (*graph)->nodes.size();
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphInstantiate(CUgraphExec *execHandle, CUgraph handle, unsigned long long flags) {
  return entry(Needs::context, [&](Simulator &sim) {
    std::shared_ptr<Graph> *graph = sim.graphs.find(handle);
    if (!graph)
      return CUDA_ERROR_INVALID_HANDLE;
    auto exec = std::make_unique<GraphExec>();
    exec->graph = **graph;
    for (size_t i = 0; i < exec->graph.numChains; ++i)
      exec->chains.push_back(sim.scheduler.newChain());
    *execHandle = reinterpret_cast<CUgraphExec>(sim.graphExecs.add(std::move(exec)));
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphLaunch(CUgraphExec execHandle, CUstream handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    GraphExec *exec = sim.graphExecs.find(execHandle);
    if (!stream || !exec)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    ++sim.counts.numGraphLaunches;
    launchGraph(sim, *exec, *stream);
    return CUDA_SUCCESS;
  });
}

CUresult cuGraphExecDestroy(CUgraphExec handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    return sim.graphExecs.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
  });
}

CUresult cuGraphDestroy(CUgraph handle) {
  return entry(Needs::context,
               [&](Simulator &sim) { return sim.graphs.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

} // extern "C"
