// Attention launches on one device: by a library where one takes them, else by the plan's own kernels, and a word to
// the person at the terminal about each reason for that.
#pragma once

#include "backend/cuda/Attention.h"
#include "backend/cuda/CudaKernel.h"

#include <functional>
#include <map>
#include <set>
#include <tuple>

namespace llmc::cuda {

class Attentions {
public:
  /// No library: every launch is declined for the reason given. `context` must outlive it.
  Attentions(Context &context, Result<std::unique_ptr<AttentionLibrary>> library,
             std::function<void(const std::string &)> notice)
      : context(context), library(std::move(library)), notice(std::move(notice)) {}

  /// The launch, made ready for a stream of the program; null: the library declines it, and the notice has been given.
  MadeKernel makeKernel(const Launch &launch, const DeviceSpaces &spaces, uint32_t streamIndex);

private:
  Result<CUdeviceptr> workspaceOf(uint32_t streamIndex, uint64_t bytes);

  using Key = std::tuple<KernelKind, std::vector<int64_t>, std::vector<double>, bool>;
  Context &context;
  Result<std::unique_ptr<AttentionLibrary>> library;
  std::function<void(const std::string &)> notice;
  std::map<Key, Result<std::shared_ptr<AttentionPlan>>> plans; ///< layers ask for the same again and again
  std::set<std::string> noticed;
  struct Workspace {
    DeviceMemory memory;
    uint64_t bytes;
  };
  std::map<uint32_t, std::vector<Workspace>> workspaces; ///< by stream: kernels of one stream follow each other
};

} // namespace llmc::cuda
