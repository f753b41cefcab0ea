// A program made ready on the GPU: its kernels, the streams and events of its order, and, from its second run on, the
// whole of it as one graph. The first run launches directly, so that libraries load their code outside of a capture.
#pragma once

#include "backend/cuda/CollectiveKernel.h"
#include "backend/cuda/ProgramOrder.h"

#include <chrono>

namespace llmc::cuda {

class CudaProgram : public PreparedProgram {
public:
  struct Parts {
    Context *context = nullptr;
    Ranks *ranks = nullptr;                ///< null: one rank
    std::chrono::milliseconds stepTimeout; ///< of a run in which nothing ends
    ProgramOrder order;
    std::vector<Launch> launches;
    std::vector<std::unique_ptr<CudaKernel>> kernels; ///< by launch; null: it only waits
    std::unique_ptr<CollectiveProgress> progress;     ///< with ranks; its collectives refer to it
    DeviceMemory statusWords;                         ///< of launches that can fail on data, in order
    std::vector<size_t> statusLaunches;               ///< which those are
    DeviceSpaces spaces;
    Copies *copies = nullptr;
  };
  static Result<std::unique_ptr<CudaProgram>> make(Parts parts);
  ~CudaProgram() override;

  Status run() override;
  Status runProfiled(std::span<double> launchMs) override;

private:
  struct Timer {
    Event begin, end;
  };
  explicit CudaProgram(Parts parts) : parts(std::move(parts)) {}
  CUstream stream(size_t index) const;
  /// Puts everything on the streams; between two events for each launch where there are timers.
  Status submit(const std::vector<Timer> *timers);
  Status submitStep(size_t index, const Timer *timer);
  Status fork();
  Status join();
  Status capture();
  Status begin();
  Status finish();
  Status watch(std::chrono::steady_clock::time_point begun);
  Status checkData();
  Status check(CUresult result, const char *what) const { return parts.context->check(result, what); }

  Parts parts;
  std::vector<Stream> streams; ///< from stream 1 on
  std::vector<Event> ended;    ///< by launch; empty where nobody waits
  std::vector<Event> joined;   ///< of each stream from 1 on
  Event forked, done;
  PinnedMemory statuses; ///< the host's copy of the status words
  GraphExec graph;
  bool hasRun = false;
  std::vector<Timer> timers;
  uint32_t lastBegun = 0, lastEnded = 0;
  std::chrono::steady_clock::time_point lastProgress, lastLook;
};

} // namespace llmc::cuda
