// The state behind the driver's entry points: one device with its memory, streams, events, modules and graphs. Like the
// driver it simulates it is one per process; every entry point takes its lock.
#pragma once

#include "tests/cudasim/Launch.h"
#include "tests/cudasim/driver/Control.h"
#include "tests/cudasim/driver/Scheduler.h"

#include <cuda.h>
#include <memory>
#include <mutex>
#include <set>

namespace llmc::cudasim {

class Simulator;

/// Work that can be submitted, more than once if it is a graph's: makes what runs from what the host's memory holds
/// now.
using Submit = std::function<Work(Simulator &)>;

struct GraphNode {
  std::string name;
  /// Which of the graph's captured streams it came from.
  size_t chain = 0;
  std::vector<size_t> after;
  Submit submit;
};

struct Graph {
  std::vector<GraphNode> nodes;
  size_t numChains = 0;
};

struct GraphExec {
  Graph graph;
  std::vector<uint32_t> chains;
  /// The end of the launch before, for a graph never runs beside itself.
  uint32_t lastEnd = 0;
};

struct SimStream {
  uint32_t chain = 0;
  bool isBlocking = true;
  /// While capturing: the graph, which of its chains this stream is, and the nodes that come before its next one.
  std::shared_ptr<Graph> capture;
  bool isOrigin = false;
  size_t captureChain = 0;
  std::vector<size_t> tail;
};

struct SimEvent {
  /// The operation that it marks, 0: never recorded.
  uint32_t op = 0;
  bool hasTiming = true;
  /// Recorded while capturing: the graph and the nodes that it stands for.
  std::shared_ptr<Graph> capture;
  std::vector<size_t> nodes;
};

struct SimModule;
struct SimFunction {
  const Kernel *kernel = nullptr;
  SimModule *module = nullptr;
  uint32_t maxDynamicSharedBytes = 48 * 1024;
};
struct SimModule {
  Module module;
  std::map<std::string, SimFunction> functions;
};

class Simulator {
public:
  explicit Simulator(const CudasimConfig &config);

  /// Handles are pointers; the ones that were never given out, or given back, are found here.
  template <typename T> class Handles {
  public:
    T *add(std::unique_ptr<T> object) { return all.emplace(object.get(), std::move(object)).first->first; }
    T *find(const void *handle) const {
      auto found = all.find(static_cast<T *>(const_cast<void *>(handle)));
      return found == all.end() ? nullptr : found->first;
    }
    bool remove(const void *handle) { return all.erase(static_cast<T *>(const_cast<void *>(handle))) != 0; }
    auto begin() const { return all.begin(); }
    auto end() const { return all.end(); }

  private:
    std::map<T *, std::unique_ptr<T>> all;
  };

  SimStream *streamOf(CUstream handle) { return handle ? streams.find(handle) : &legacy; }
  bool anyCapture() const;

  /// Puts work on a stream, or into the graph that the stream captures.
  void enqueue(SimStream &stream, const std::string &name, const Submit &submit);
  /// The operations that a stream's next one comes after, beside the stream's own last: the default stream's rules.
  std::vector<uint32_t> before(const SimStream &stream) const;

  /// Waits; a fault becomes this process's sticky error.
  CUresult finish(uint32_t op) { return settle(scheduler.finish(op)); }
  /// Whoever asks again and again gets somewhere, but never waits.
  CUresult query(uint32_t op) {
    if (CUresult result = settle(scheduler.advance(op)); result != CUDA_SUCCESS)
      return result;
    return scheduler.isDone(op) ? finish(op) : CUDA_ERROR_NOT_READY;
  }
  CUresult finishAll() { return settle(scheduler.finishAll()); }
  CUresult settle(const std::optional<Fault> &fault);

  /// What a launch or copy needs to run: its number and the ranges that are live for it.
  struct Liveness {
    LiveRanges ranges;
    bool isChecked = false;
    const LiveRanges *get() const { return isChecked ? &ranges : nullptr; }
  };
  Liveness livenessOf(const char *name, uint64_t number, std::span<const std::byte> parameters) const;

  CudasimConfig config;
  CudasimCounts counts{};
  uint64_t numSubmitted = 0;
  uint64_t numWaits = 0;
  bool isInitialized = false;
  int contextUsers = 0;
  CUresult sticky = CUDA_SUCCESS;
  std::string faultText;
  CudasimLiveRanges liveRanges = nullptr;
  void *liveRangesUser = nullptr;
  Memory memory;
  std::map<void *, std::unique_ptr<std::byte[]>> pinned;
  Scheduler scheduler;
  std::mt19937_64 random;
  SimStream legacy;
  Handles<SimStream> streams;
  Handles<SimEvent> events;
  Handles<SimModule> modules;
  Handles<std::shared_ptr<Graph>> graphs;
  Handles<GraphExec> graphExecs;
};

enum class Needs { nothing, init, context };

/// The process's simulator, under the lock that the caller holds.
std::unique_ptr<Simulator> &simulator();
std::recursive_mutex &simulatorLock();
/// The context that is current in this thread.
CUcontext &currentContext();
CUcontext primaryContext();

/// The body of an entry point: locks, and answers itself where the driver is not ready or has failed before.
template <typename F> CUresult entry(Needs needs, F f) {
  std::lock_guard guard(simulatorLock());
  Simulator &sim = *simulator();
  if (needs != Needs::nothing && !sim.isInitialized)
    return CUDA_ERROR_NOT_INITIALIZED;
  if (sim.sticky != CUDA_SUCCESS)
    return sim.sticky;
  if (needs == Needs::context && (currentContext() == nullptr || sim.contextUsers == 0))
    return CUDA_ERROR_INVALID_CONTEXT;
  return f(sim);
}

} // namespace llmc::cudasim
