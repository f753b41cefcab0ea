// The GPUs of all ranks as one NCCL communicator. The ranks meet through the network they already have; from then on
// gradients go from GPU to GPU.
#pragma once

#include "backend/cuda/Context.h"
#include "backend/cuda/Nccl.h"
#include "runtime/Comm.h"

#include <chrono>

namespace llmc::cuda {

class Ranks {
public:
  /// All ranks call it together. Fails where two ranks have the same GPU, or NCCL does not come together in time.
  static Result<std::unique_ptr<Ranks>> join(const Context &context, const std::string &libraryPath, CommApi &comm,
                                             std::chrono::milliseconds timeout);
  ~Ranks();
  Ranks(const Ranks &) = delete;
  Ranks &operator=(const Ranks &) = delete;

  /// Puts the sum over all ranks of `count` elements (f32 or bf16), in place, on a stream.
  Status sum(CUdeviceptr buffer, uint64_t count, ElementType type, CUstream stream);
  /// What has gone wrong since, here or at another rank. Ends the communicator when something has.
  Status look();
  /// Ends what waits for other ranks; afterwards only destruction is allowed.
  void abort();
  std::chrono::milliseconds timeout() const { return limit; }

private:
  Ranks(std::unique_ptr<Nccl> nccl, std::chrono::milliseconds limit) : nccl(std::move(nccl)), limit(limit) {}
  /// Polls a call that goes on in the background until it has ended.
  Status settle(ncclResult_t result, const std::string &what);
  Status failed(ncclResult_t result, const std::string &what);

  std::unique_ptr<Nccl> nccl;
  std::chrono::milliseconds limit;
  ncclComm_t communicator = nullptr;
};

} // namespace llmc::cuda
