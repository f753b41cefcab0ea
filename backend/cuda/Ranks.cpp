// NCCL in its non-blocking mode: a call may go on in the background, so that a rank that never comes is noticed here
// and not waited for inside the library.
#include "backend/cuda/Ranks.h"

#include <algorithm>
#include <fmt/format.h>
#include <thread>

namespace llmc::cuda {

/// Fails where a GPU serves two ranks: NCCL would say so in words of its own, or hang.
static Status requireOwnGpus(const Context &context, CommApi &comm) {
  std::vector<std::array<char, 16>> all(static_cast<size_t>(comm.worldSize()));
  LLMC_RETURN_IF_ERROR(comm.allGather(std::as_bytes(std::span(&context.uuid(), 1)),
                                      std::as_writable_bytes(std::span(all)), "the ranks' GPUs"));
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (auto first = std::find(all.begin(), all.end(), all[rank]) - all.begin(); first < static_cast<int64_t>(rank))
      return Error{fmt::format("ranks {} and {} have the same GPU: each needs one of its own{}", first, rank,
                               static_cast<int>(rank) == comm.rank() ? " (" + context.identity() + ")" : "")};
  return {};
}

Result<std::unique_ptr<Ranks>> Ranks::join(const Context &context, const std::string &libraryPath, CommApi &comm,
                                           std::chrono::milliseconds timeout) {
  LLMC_RETURN_IF_ERROR(requireOwnGpus(context, comm));
  Result<std::unique_ptr<Nccl>> nccl = Nccl::load(libraryPath);
  LLMC_RETURN_IF_ERROR(nccl);
  std::unique_ptr<Ranks> ranks(new Ranks(std::move(*nccl), timeout));
  ncclUniqueId id{};
  if (comm.rank() == 0)
    LLMC_RETURN_IF_ERROR(ranks->nccl->check(ranks->nccl->ncclGetUniqueId(&id), "starting NCCL"));
  LLMC_RETURN_IF_ERROR(comm.broadcast(std::as_writable_bytes(std::span(&id, 1)), 0, "NCCL's meeting place"));
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = 0;
  ncclResult_t result =
      ranks->nccl->ncclCommInitRankConfig(&ranks->communicator, comm.worldSize(), id, comm.rank(), &config);
  LLMC_RETURN_IF_ERROR(ranks->settle(result, "joining the ranks' GPUs"));
  return ranks;
}

Ranks::~Ranks() {
  if (communicator)
    nccl->ncclCommAbort(communicator); // what is on its way has ended, or never will
}

Status Ranks::failed(ncclResult_t result, const std::string &what) {
  std::string words = communicator ? nccl->ncclGetLastError(communicator) : "";
  Status status = nccl->check(result, what);
  abort();
  return words.empty() ? status : Status(Error{status.error().message + ": " + words});
}

Status Ranks::settle(ncclResult_t result, const std::string &what) {
  auto begin = std::chrono::steady_clock::now();
  while (result == ncclInProgress) {
    if (std::chrono::steady_clock::now() - begin > limit) {
      abort();
      return Error{fmt::format("{}: a rank has not come within {} ms", what, limit.count())};
    }
    std::this_thread::sleep_for(std::chrono::microseconds(100));
    if (ncclResult_t asked = nccl->ncclCommGetAsyncError(communicator, &result); asked != ncclSuccess)
      return failed(asked, what);
  }
  return result == ncclSuccess ? Status() : failed(result, what);
}

Status Ranks::sum(CUdeviceptr buffer, uint64_t count, ElementType type, CUstream stream) {
  if (!communicator)
    return Error{"the ranks' GPUs are no longer connected"};
  auto *memory = reinterpret_cast<void *>(buffer);
  return settle(nccl->ncclAllReduce(memory, memory, count, type == ElementType::f32 ? ncclFloat32 : ncclBfloat16,
                                    ncclSum, communicator, reinterpret_cast<cudaStream_t>(stream)),
                "summing over ranks");
}

Status Ranks::look() {
  if (!communicator)
    return Error{"the ranks' GPUs are no longer connected"};
  ncclResult_t result = ncclSuccess;
  if (ncclResult_t asked = nccl->ncclCommGetAsyncError(communicator, &result); asked != ncclSuccess)
    return failed(asked, "summing over ranks");
  return result == ncclSuccess || result == ncclInProgress ? Status() : failed(result, "summing over ranks");
}

void Ranks::abort() {
  if (communicator)
    nccl->ncclCommAbort(communicator);
  communicator = nullptr;
}

} // namespace llmc::cuda
