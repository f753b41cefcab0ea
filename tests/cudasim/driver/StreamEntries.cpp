// Streams and events. An event marks the last operation of its stream; while a stream captures, it marks nodes, and who
// waits for it joins the capture.
#include "tests/cudasim/driver/Simulator.h"

using namespace llmc::cudasim;

namespace {

void addAll(std::vector<size_t> &into, const std::vector<size_t> &nodes) {
  for (size_t node : nodes)
    if (std::find(into.begin(), into.end(), node) == into.end())
      into.push_back(node);
}

/// A stream that waits for a captured event captures too, from there on.
CUresult waitCaptured(SimStream &stream, const SimEvent &event) {
  if (stream.capture && stream.capture != event.capture)
    return CUDA_ERROR_ILLEGAL_STATE;
  if (!stream.capture) {
    stream.capture = event.capture;
    stream.captureChain = stream.capture->numChains++;
    stream.tail.clear();
  }
  addAll(stream.tail, event.nodes);
  return CUDA_SUCCESS;
}

} // namespace

extern "C" {

CUresult cuStreamCreateWithPriority(CUstream *handle, unsigned int flags, int priority) {
  return entry(Needs::context, [&](Simulator &sim) {
    auto stream = std::make_unique<SimStream>();
    stream->chain = sim.scheduler.newChain();
    stream->isBlocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
    *handle = reinterpret_cast<CUstream>(sim.streams.add(std::move(stream)));
    return CUDA_SUCCESS;
  });
}

/// Its pending work still runs.
CUresult cuStreamDestroy(CUstream handle) {
  return entry(Needs::context,
               [&](Simulator &sim) { return sim.streams.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

CUresult cuStreamQuery(CUstream handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return sim.query(sim.scheduler.last(stream->chain));
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    return stream->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim.finish(sim.scheduler.last(stream->chain));
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent eventHandle, unsigned int flags) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    SimEvent *event = sim.events.find(eventHandle);
    if (!stream || !event)
      return CUDA_ERROR_INVALID_HANDLE;
    if (++sim.numWaits == sim.config.dropEventWait)
      return CUDA_SUCCESS;
    if (event->capture)
      return waitCaptured(*stream, *event);
    if (stream->capture)
      return CUDA_ERROR_ILLEGAL_STATE; // a graph cannot wait for what lies outside of it
    std::vector<uint32_t> after = sim.before(*stream);
    after.push_back(event->op);
    sim.scheduler.add(stream->chain, "cuStreamWaitEvent", after, nullptr);
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    *status = stream->capture ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent *handle, unsigned int flags) {
  return entry(Needs::context, [&](Simulator &sim) {
    auto event = std::make_unique<SimEvent>();
    event->hasTiming = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *handle = reinterpret_cast<CUevent>(sim.events.add(std::move(event)));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy(CUevent handle) {
  return entry(Needs::context,
               [&](Simulator &sim) { return sim.events.remove(handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE; });
}

CUresult cuEventRecord(CUevent handle, CUstream streamHandle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(streamHandle);
    SimEvent *event = sim.events.find(handle);
    if (!stream || !event)
      return CUDA_ERROR_INVALID_HANDLE;
    event->capture = stream->capture;
    event->nodes = stream->tail;
    if (!stream->capture)
      event->op = sim.scheduler.add(stream->chain, "cuEventRecord", sim.before(*stream), nullptr);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimEvent *event = sim.events.find(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    return event->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim.query(event->op);
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimEvent *event = sim.events.find(handle);
    if (!event)
      return CUDA_ERROR_INVALID_HANDLE;
    return event->capture ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : sim.finish(event->op);
  });
}

/// A thousandth of a millisecond for each operation that ran between the two: an order, no time.
CUresult cuEventElapsedTime(float *milliseconds, CUevent startHandle, CUevent endHandle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimEvent *start = sim.events.find(startHandle), *end = sim.events.find(endHandle);
    if (!start || !end || !start->hasTiming || !end->hasTiming || start->op == 0 || end->op == 0)
      return CUDA_ERROR_INVALID_HANDLE;
    if (!sim.scheduler.isDone(start->op) || !sim.scheduler.isDone(end->op))
      return CUDA_ERROR_NOT_READY;
    *milliseconds = 1e-3f * (static_cast<float>(sim.scheduler.finishedAt(end->op)) -
                             static_cast<float>(sim.scheduler.finishedAt(start->op)));
    return CUDA_SUCCESS;
  });
}

} // extern "C"
