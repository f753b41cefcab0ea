// Vector clocks: for each launch, how far into every stream what has ended before it reaches.
#include "backend/cuda/ProgramOrder.h"

#include <algorithm>
#include <map>

namespace llmc::cuda {

BufferRef messageOf(const Launch &launch) {
  BufferRef message = launch.operands.front();
  const BufferRef &last = launch.operands.back();
  message.bytes = last.offset + last.bytes - message.offset;
  return message;
}

static bool isCollective(const Launch &launch) {
  return launch.kind == KernelKind::AllReduceStart || launch.kind == KernelKind::AllReduceWait;
}

/// The memory that a launch reads or writes.
static std::vector<BufferRef> touchedBy(const Launch &launch) {
  if (isCollective(launch) && !launch.operands.empty())
    return {messageOf(launch)};
  return launch.operands;
}

static bool overlap(const std::vector<BufferRef> &one, const std::vector<BufferRef> &other) {
  return std::any_of(one.begin(), one.end(), [&](const BufferRef &a) {
    return std::any_of(other.begin(), other.end(), [&](const BufferRef &b) {
      return a.space != Space::none && a.space == b.space && a.offset < b.offset + b.bytes &&
             b.offset < a.offset + a.bytes;
    });
  });
}

/// Streams by their numbers in the plan, the device's own for 0; the collectives' last.
static void assignStreams(const Program &program, bool hasRanks, ProgramOrder &order) {
  std::map<uint32_t, size_t> indices{{0, 0}};
  for (const Launch &launch : program.launches) {
    size_t index = indices.emplace(launch.stream, indices.size()).first->second;
    order.steps.push_back({.stream = index, .waits = {}});
  }
  order.numStreams = indices.size();
  for (size_t i = 0; i < order.steps.size() && hasRanks; ++i)
    if (program.launches[i].kind == KernelKind::AllReduceStart)
      order.steps[i].stream = order.commStream = indices.size();
  order.numStreams += order.commStream != 0;
}

ProgramOrder orderOf(const Program &program, bool hasRanks) {
  ProgramOrder order;
  assignStreams(program, hasRanks, order);
  if (order.numStreams == 1)
    return order;
  using Clock = std::vector<size_t>; // by stream: the launches before this index have ended
  std::vector<Clock> clocks, ofStream(order.numStreams, Clock(order.numStreams));
  std::vector<std::vector<BufferRef>> touched;
  for (const Launch &launch : program.launches)
    touched.push_back(touchedBy(launch));
  for (size_t i = 0; i < order.steps.size(); ++i) {
    ProgramOrder::Step &step = order.steps[i];
    Clock &now = ofStream[step.stream];
    for (size_t j = i; j-- > 0;) {
      ProgramOrder::Step &before = order.steps[j];
      if (before.stream == step.stream || j < now[before.stream] || !overlap(touched[i], touched[j]))
        continue;
      step.waits.push_back(j);
      before.isAwaited = true;
      for (size_t s = 0; s < now.size(); ++s)
        now[s] = std::max(now[s], clocks[j][s]);
    }
    now[step.stream] = i + 1;
    clocks.push_back(now);
  }
  return order;
}

} // namespace llmc::cuda
