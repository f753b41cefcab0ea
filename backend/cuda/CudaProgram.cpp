// Submission in the program's order, capture, and waiting with an eye on what may never end.
#include "backend/cuda/CudaProgram.h"

#include "runtime/KernelArguments.h"

#include <fmt/format.h>
#include <thread>

namespace llmc::cuda {

using Clock = std::chrono::steady_clock;

Result<std::unique_ptr<CudaProgram>> CudaProgram::make(Parts parts) {
  std::unique_ptr<CudaProgram> program(new CudaProgram(std::move(parts)));
  Context &context = *program->parts.context;
  const ProgramOrder &order = program->parts.order;
  auto addEvent = [&](Event &event, bool hasTiming) -> Status {
    Result<Event> made = makeEvent(context, hasTiming);
    LLMC_RETURN_IF_ERROR(made);
    event = std::move(*made);
    return {};
  };
  LLMC_RETURN_IF_ERROR(addEvent(program->done, false));
  LLMC_RETURN_IF_ERROR(addEvent(program->forked, false));
  for (size_t i = 1; i < order.numStreams; ++i) {
    Result<Stream> stream = makeStream(context, /*isUrgent=*/i == order.commStream);
    LLMC_RETURN_IF_ERROR(stream);
    program->streams.push_back(std::move(*stream));
    LLMC_RETURN_IF_ERROR(addEvent(program->joined.emplace_back(), false));
  }
  program->ended.resize(order.steps.size());
  for (size_t i = 0; i < order.steps.size(); ++i)
    if (order.steps[i].isAwaited)
      LLMC_RETURN_IF_ERROR(addEvent(program->ended[i], false));
  if (!program->parts.statusLaunches.empty()) {
    Result<PinnedMemory> statuses =
        PinnedMemory::allocate(context, program->parts.statusLaunches.size() * sizeof(uint64_t));
    LLMC_RETURN_IF_ERROR(statuses);
    program->statuses = std::move(*statuses);
  }
  return program;
}

CudaProgram::~CudaProgram() { (void)parts.context->makeCurrent(); } // for the handles that go now

CUstream CudaProgram::stream(size_t index) const {
  return index == 0 ? parts.context->stream() : streams[index - 1].get();
}

/// The other streams begin where the main one has come to.
Status CudaProgram::fork() {
  const Driver &driver = parts.context->driver();
  if (!parts.statusLaunches.empty())
    LLMC_RETURN_IF_ERROR(
        check(driver.cuMemsetD8Async(parts.statusWords.address(), 0, statuses.bytes().size(), stream(0)),
              "clearing the status words"));
  if (streams.empty())
    return {};
  LLMC_RETURN_IF_ERROR(check(driver.cuEventRecord(forked.get(), stream(0)), "starting the streams"));
  for (const Stream &other : streams)
    LLMC_RETURN_IF_ERROR(check(driver.cuStreamWaitEvent(other.get(), forked.get(), 0), "starting the streams"));
  return {};
}

Status CudaProgram::join() {
  const Driver &driver = parts.context->driver();
  for (size_t i = 0; i < streams.size(); ++i) {
    LLMC_RETURN_IF_ERROR(check(driver.cuEventRecord(joined[i].get(), streams[i].get()), "joining the streams"));
    LLMC_RETURN_IF_ERROR(check(driver.cuStreamWaitEvent(stream(0), joined[i].get(), 0), "joining the streams"));
  }
  if (parts.statusLaunches.empty())
    return {};
  return check(driver.cuMemcpyDtoHAsync(statuses.bytes().data(), parts.statusWords.address(), statuses.bytes().size(),
                                        stream(0)),
               "reading the status words");
}

Status CudaProgram::submitStep(size_t index, const Timer *timer) {
  const Driver &driver = parts.context->driver();
  const ProgramOrder::Step &step = parts.order.steps[index];
  CUstream on = stream(step.stream);
  // What a launch waits for on other streams is its time too, which is how a wait for a collective shows; but a
  // collective's own time begins when its message is there.
  bool timesWaits = parts.launches[index].kind != KernelKind::AllReduceStart;
  if (timer && timesWaits)
    LLMC_RETURN_IF_ERROR(check(driver.cuEventRecord(timer->begin.get(), on), "timing"));
  for (size_t before : step.waits)
    LLMC_RETURN_IF_ERROR(check(driver.cuStreamWaitEvent(on, ended[before].get(), 0), "waiting"));
  if (timer && !timesWaits)
    LLMC_RETURN_IF_ERROR(check(driver.cuEventRecord(timer->begin.get(), on), "timing"));
  if (parts.kernels[index])
    LLMC_RETURN_IF_ERROR(parts.kernels[index]->submit(on));
  if (timer)
    LLMC_RETURN_IF_ERROR(check(driver.cuEventRecord(timer->end.get(), on), "timing"));
  return step.isAwaited ? check(driver.cuEventRecord(ended[index].get(), on), "marking the end") : Status();
}

Status CudaProgram::submit(const std::vector<Timer> *timers) {
  LLMC_RETURN_IF_ERROR(fork());
  for (size_t i = 0; i < parts.launches.size(); ++i)
    if (Status status = submitStep(i, timers ? &(*timers)[i] : nullptr); !status)
      return inContext(fmt::format("{} '{}'", kernelInfo(parts.launches[i].kind).name, parts.launches[i].name),
                       status.error());
  return join();
}

Status CudaProgram::capture() {
  const Driver &driver = parts.context->driver();
  LLMC_RETURN_IF_ERROR(
      check(driver.cuStreamBeginCapture(stream(0), CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "capturing the program"));
  Status submitted = submit(nullptr);
  CUgraph captured = nullptr;
  CUresult ended = driver.cuStreamEndCapture(stream(0), &captured);
  Graph owner(driver, captured);
  LLMC_RETURN_IF_ERROR(submitted);
  LLMC_RETURN_IF_ERROR(check(ended, "capturing the program"));
  CUgraphExec made = nullptr;
  LLMC_RETURN_IF_ERROR(check(driver.cuGraphInstantiate(&made, captured, 0), "making a graph of the program"));
  graph = GraphExec(driver, made);
  return {};
}

Status CudaProgram::begin() {
  if (parts.progress)
    parts.progress->reset();
  return parts.context->makeCurrent();
}

Status CudaProgram::run() {
  LLMC_RETURN_IF_ERROR(begin());
  if (hasRun && !graph)
    LLMC_RETURN_IF_ERROR(capture());
  if (graph)
    LLMC_RETURN_IF_ERROR(check(parts.context->driver().cuGraphLaunch(graph.get(), stream(0)), "launching the program"));
  else
    LLMC_RETURN_IF_ERROR(submit(nullptr));
  hasRun = true;
  return finish();
}

Status CudaProgram::runProfiled(std::span<double> launchMs) {
  assert(launchMs.size() == parts.launches.size());
  LLMC_RETURN_IF_ERROR(begin());
  while (timers.size() < parts.launches.size()) {
    Result<Event> first = makeEvent(*parts.context, /*hasTiming=*/true), second = makeEvent(*parts.context, true);
    LLMC_RETURN_IF_ERROR(first);
    LLMC_RETURN_IF_ERROR(second);
    timers.push_back({std::move(*first), std::move(*second)});
  }
  LLMC_RETURN_IF_ERROR(submit(&timers));
  LLMC_RETURN_IF_ERROR(finish());
  for (size_t i = 0; i < timers.size(); ++i) {
    float ms = 0;
    LLMC_RETURN_IF_ERROR(check(
        parts.context->driver().cuEventElapsedTime(&ms, timers[i].begin.get(), timers[i].end.get()), "reading a time"));
    launchMs[i] = static_cast<double>(ms);
  }
  return {};
}

/// Waits for the end by asking, so that a rank that does not come and a kernel that does not end are noticed.
Status CudaProgram::finish() {
  const Driver &driver = parts.context->driver();
  LLMC_RETURN_IF_ERROR(check(driver.cuEventRecord(done.get(), stream(0)), "marking the program's end"));
  Clock::time_point begun = Clock::now();
  lastProgress = lastLook = begun;
  lastBegun = lastEnded = 0;
  for (;;) {
    CUresult result = driver.cuEventQuery(done.get());
    if (result == CUDA_SUCCESS)
      return checkData();
    if (result != CUDA_ERROR_NOT_READY)
      return check(result, "running the program; this process can no longer use the GPU");
    LLMC_RETURN_IF_ERROR(watch(begun));
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

Status CudaProgram::watch(Clock::time_point begun) {
  constexpr auto kLookEvery = std::chrono::milliseconds(10);
  Clock::time_point now = Clock::now();
  if (now - begun > parts.stepTimeout) {
    parts.context->abandon();
    return Error{fmt::format("the program has not ended within {} ms: a kernel hangs ({})", parts.stepTimeout.count(),
                             parts.context->identity())};
  }
  if (!parts.ranks || !parts.progress || now - lastLook < kLookEvery)
    return {};
  lastLook = now;
  LLMC_RETURN_IF_ERROR(parts.ranks->look());
  if (uint32_t isBegun = parts.progress->begun(), hasEnded = parts.progress->ended();
      isBegun != lastBegun || hasEnded != lastEnded || isBegun == hasEnded) {
    lastBegun = isBegun;
    lastEnded = hasEnded;
    lastProgress = now;
  }
  if (now - lastProgress <= parts.ranks->timeout())
    return {};
  parts.ranks->abort();
  return Error{fmt::format("collective {} ('{}') has not ended within {} ms: a rank has not come to it", lastBegun - 1,
                           parts.progress->label(lastBegun - 1), parts.ranks->timeout().count())};
}

/// The status words: the first launch that could not work with its data, in the words of the CPU's kernel.
Status CudaProgram::checkData() {
  for (size_t i = 0; i < parts.statusLaunches.size(); ++i) {
    uint64_t status = statuses.as<uint64_t>()[i];
    if (status == 0)
      continue;
    const Launch &launch = parts.launches[parts.statusLaunches[i]];
    const BufferRef &ids = operandArgument(launch, "ids");
    int64_t id = 0;
    if (status > ids.bytes / sizeof id)
      return Error{fmt::format("{} '{}': a status word of {}", kernelInfo(launch.kind).name, launch.name, status)};
    LLMC_RETURN_IF_ERROR(parts.copies->out(std::as_writable_bytes(std::span(&id, 1)),
                                           addressOf(ids, parts.spaces) + (status - 1) * sizeof id));
    return Error{fmt::format("{} '{}': token id {} at position {} is outside [0, {})", kernelInfo(launch.kind).name,
                             launch.name, id, status - 1, integerArgument(launch, "v"))};
  }
  return {};
}

} // namespace llmc::cuda
