// A sum over all ranks' GPUs as a launch, with the marks by which a rank that does not come is found.
#pragma once

#include "backend/cuda/CudaKernel.h"
#include "backend/cuda/Ranks.h"

namespace llmc::cuda {

/// What collectives write while they run, for whoever waits for them: the message that was begun last and the one that
/// ended last, counted from 1.
class CollectiveProgress {
public:
  static Result<CollectiveProgress> make(Context &context, const Program &program, Copies &copies);
  /// Puts a mark on the stream: the collective of `position` begins, or has ended.
  Status mark(const Context &context, size_t position, bool hasEnded, CUstream stream) const;
  /// Before a run.
  void reset() const {
    for (int word : {0, 1})
      words.as<volatile uint32_t>()[word] = 0;
  }
  uint32_t begun() const { return words.as<volatile uint32_t>()[0]; }
  uint32_t ended() const { return words.as<volatile uint32_t>()[1]; }
  size_t size() const { return labels.size(); }
  /// The op of a message by its position.
  const std::string &label(size_t position) const { return labels[position]; }

private:
  DeviceMemory numbers; ///< 1, 2, 3, ...: the marks are copies of them
  PinnedMemory words;
  CUdeviceptr mapped = 0;          ///< the words' address for the GPU
  std::vector<std::string> labels; ///< by position
};

/// The start of a collective. `ranks` and `progress` must outlive it. Fails where the parts do not follow each other as
/// Kernels.def says, or are no whole number of f32 or bf16 elements.
MadeKernel makeAllReduceKernel(const Context &context, Ranks &ranks, const Launch &launch, const DeviceSpaces &spaces,
                               const CollectiveProgress &progress);

} // namespace llmc::cuda
