// Submission and waiting, and the hooks for tests.
#include "tests/cudasim/driver/Simulator.h"

#include <cstdlib>
#include <unistd.h>

namespace llmc::cudasim {

namespace {

constexpr CudasimConfig kDefaultConfig{.seed = 1,
                                       .memoryBytes = uint64_t(8) << 30,
                                       .numDevices = 1,
                                       .computeCapability = 80,
                                       .driverVersion = 13000,
                                       .dropEventWait = 0};

/// For processes that a test starts and cannot call.
CudasimConfig environmentConfig() {
  CudasimConfig config = kDefaultConfig;
  if (const char *seed = std::getenv("CUDASIM_SEED"))
    config.seed = std::strtoull(seed, nullptr, 10);
  if (const char *devices = std::getenv("CUDASIM_DEVICES"))
    config.numDevices = std::atoi(devices);
  return config;
}

CUresult codeOf(FaultKind kind) {
  switch (kind) {
  case FaultKind::outOfBounds:
  case FaultKind::useAfterFree:
    return CUDA_ERROR_ILLEGAL_ADDRESS;
  case FaultKind::misaligned:
    return CUDA_ERROR_MISALIGNED_ADDRESS;
  default:
    return CUDA_ERROR_LAUNCH_FAILED;
  }
}

} // namespace

std::unique_ptr<Simulator> &simulator() {
  static auto instance = std::make_unique<Simulator>(environmentConfig());
  return instance;
}

std::recursive_mutex &simulatorLock() {
  static std::recursive_mutex lock;
  return lock;
}

CUcontext &currentContext() {
  thread_local CUcontext current = nullptr;
  return current;
}

CUcontext primaryContext() {
  static int place;
  return reinterpret_cast<CUcontext>(&place);
}

/// Lets other threads in: one of them may end the wait.
static void letOthersIn() {
  simulatorLock().unlock();
  usleep(200);
  simulatorLock().lock();
}

Simulator::Simulator(const CudasimConfig &config)
    : config(config), scheduler(config.seed, letOthersIn), random(config.seed + 1) {
  legacy.chain = scheduler.newChain();
}

bool Simulator::anyCapture() const {
  for (const auto &[handle, stream] : streams)
    if (stream->capture)
      return true;
  return false;
}

std::vector<uint32_t> Simulator::before(const SimStream &stream) const {
  if (&stream != &legacy)
    return stream.isBlocking ? std::vector<uint32_t>{scheduler.last(legacy.chain)} : std::vector<uint32_t>();
  std::vector<uint32_t> after;
  for (const auto &[handle, other] : streams)
    if (other->isBlocking)
      after.push_back(scheduler.last(other->chain));
  return after;
}

void Simulator::enqueue(SimStream &stream, const std::string &name, const Submit &submit) {
  if (!stream.capture) {
    scheduler.add(stream.chain, name, before(stream), submit(*this));
    return;
  }
  std::vector<GraphNode> &nodes = stream.capture->nodes;
  nodes.push_back({name, stream.captureChain, stream.tail, submit});
  stream.tail = {nodes.size() - 1};
}

CUresult Simulator::settle(const std::optional<Fault> &fault) {
  if (!fault)
    return CUDA_SUCCESS;
  faultText = fault->describe();
  sticky = codeOf(fault->kind);
  return sticky;
}

Simulator::Liveness Simulator::livenessOf(const char *name, uint64_t number,
                                          std::span<const std::byte> parameters) const {
  Liveness liveness;
  if (!liveRanges)
    return liveness;
  CudasimOperation operation{name, number, parameters.empty() ? nullptr : parameters.data(), parameters.size()};
  CudasimRange covered{};
  std::vector<CudasimRange> live(1024);
  size_t count = liveRanges(liveRangesUser, &operation, &covered, live.data(), live.size());
  if (count > live.size())
    return liveness;
  liveness.isChecked = true;
  liveness.ranges.covered = {covered.begin, covered.end};
  for (size_t i = 0; i < count; ++i)
    liveness.ranges.live.push_back({live[i].begin, live[i].end});
  return liveness;
}

} // namespace llmc::cudasim

using namespace llmc::cudasim;

extern "C" void cudasimReset(const CudasimConfig *config) {
  std::lock_guard guard(simulatorLock());
  simulator() = std::make_unique<Simulator>(*config);
}

extern "C" const char *cudasimLastFault() {
  std::lock_guard guard(simulatorLock());
  return simulator()->faultText.c_str();
}

extern "C" CudasimCounts cudasimCounts() {
  std::lock_guard guard(simulatorLock());
  return simulator()->counts;
}

extern "C" void cudasimSetLiveRanges(CudasimLiveRanges ranges, void *user) {
  std::lock_guard guard(simulatorLock());
  simulator()->liveRanges = ranges;
  simulator()->liveRangesUser = user;
}
