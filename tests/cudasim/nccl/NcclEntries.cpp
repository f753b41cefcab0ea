// NCCL's entry points between processes of one machine. A collective waits on its stream until all ranks are at it,
// while the device's other streams go on; ranks that call different things are found by all of them.
#include "tests/cudasim/driver/Simulator.h"
#include "tests/cudasim/nccl/Control.h"
#include "tests/cudasim/nccl/Reduce.h"

#include <csignal>
#include <cstring>
#include <fmt/format.h>
#include <nccl.h>
#include <unistd.h>

using namespace llmc::cudasim;

namespace {

struct Comm {
  std::unique_ptr<Meeting> meeting;
  /// Collectives submitted, and done, here.
  uint64_t numSubmitted = 0;
  uint64_t numDone = 0;
  bool isAborted = false;
  ncclResult_t asyncError = ncclSuccess;
  std::string lastError;
};

/// The library's own state, under the driver's lock. Communicators are shared with the work that waits on streams.
struct NcclState {
  Simulator::Handles<std::shared_ptr<Comm>> comms;
  CudasimNcclFault planted = cudasimNcclNone;
  uint64_t plantedAt = 0;
  int groupDepth = 0;
  std::string lastError;
};

NcclState &state() {
  static NcclState instance;
  return instance;
}

ncclResult_t refuse(ncclResult_t result, std::string why) {
  state().lastError = std::move(why);
  return result;
}

std::shared_ptr<Comm> commOf(ncclComm_t handle) {
  std::shared_ptr<Comm> *found = state().comms.find(handle);
  return found ? *found : nullptr;
}

/// One collective on its way: published when its turn comes, ready when all ranks have published.
struct Pending {
  std::shared_ptr<Comm> comm;
  Call call;
  uint64_t number = 0;
  uint64_t src = 0;
  uint64_t dst = 0;
  bool isPublished = false;

  uint64_t sentBytes() const { return call.count * elementBytes(call.type); }
  bool sends() const { return call.collective != Collective::broadcast || call.root == comm->meeting->rank(); }
};

bool isReady(Simulator &sim, Pending &pending) {
  Comm &comm = *pending.comm;
  if (comm.isAborted)
    return true;
  bool isPlanted = state().planted != cudasimNcclNone && pending.number == state().plantedAt;
  if (isPlanted && state().planted == cudasimNcclDie)
    raise(SIGKILL);
  if (isPlanted || comm.numDone < pending.number)
    return false;
  if (!pending.isPublished) {
    if (!comm.meeting->mayPublish(pending.number))
      return false;
    const std::byte *data = pending.sends() ? sim.memory.pointer(pending.src) : nullptr;
    comm.meeting->publish(pending.number, pending.call, data, data ? pending.sentBytes() : 0);
    pending.isPublished = true;
  }
  return comm.meeting->allPublished(pending.number);
}

Fault faultOf(FaultKind kind, uint64_t address, std::string detail) {
  return {.kind = kind, .kernel = "NCCL", .address = address, .detail = std::move(detail)};
}

/// Another rank that calls something else, in words.
std::string mismatch(const Pending &pending) {
  const Meeting &meeting = *pending.comm->meeting;
  for (int rank = 0; rank < meeting.numRanks(); ++rank)
    if (!(meeting.call(rank) == pending.call))
      return fmt::format("collective {}: rank {} calls {}, rank {} {}", pending.number, meeting.rank(),
                         describe(pending.call), rank, describe(meeting.call(rank)));
  return "";
}

std::optional<Fault> complete(Simulator &sim, const Pending &pending, const LaunchOrder &order,
                              const LiveRanges *live) {
  Comm &comm = *pending.comm;
  if (comm.isAborted)
    return std::nullopt;
  comm.lastError = mismatch(pending);
  std::vector<std::byte> result;
  if (comm.lastError.empty())
    result = received(pending.call, *comm.meeting);
  comm.meeting->finish(pending.number);
  ++comm.numDone;
  if (!comm.lastError.empty()) {
    comm.asyncError = ncclInvalidUsage;
    return faultOf(FaultKind::collectiveMismatch, 0, comm.lastError);
  }
  if (pending.sends())
    if (auto denial = sim.memory.noteRange(pending.src, pending.sentBytes(), false, order, live))
      return faultOf(denial->kind, pending.src, denial->detail);
  if (auto denial = sim.memory.noteRange(pending.dst, result.size(), true, order, live))
    return faultOf(denial->kind, pending.dst, denial->detail);
  std::copy(result.begin(), result.end(), sim.memory.pointer(pending.dst));
  return std::nullopt;
}

ncclResult_t submit(ncclComm_t handle, const Call &call, const void *src, void *dst, cudaStream_t streamHandle) {
  std::lock_guard guard(simulatorLock());
  std::shared_ptr<Comm> comm = commOf(handle);
  SimStream *stream = simulator()->streamOf(reinterpret_cast<CUstream>(streamHandle));
  if (!comm || !stream)
    return refuse(ncclInvalidArgument, "a communicator or stream that does not exist");
  if (elementBytes(call.type) == 0 || call.reduction < ncclSum || call.reduction > ncclAvg)
    return refuse(ncclInvalidArgument, "an element type or reduction that the simulator does not know");
  if (call.root < 0 || call.root >= comm->meeting->numRanks())
    return refuse(ncclInvalidArgument, fmt::format("root {} of {} ranks", call.root, comm->meeting->numRanks()));
  if (call.count * elementBytes(call.type) > Meeting::kSlotBytes)
    return refuse(ncclInvalidArgument, "more than the simulator's slots hold");
  simulator()->enqueue(*stream, "NCCL", [=](Simulator &sim) -> Work {
    auto pending = std::make_shared<Pending>(
        Pending{comm, call, comm->numSubmitted++, reinterpret_cast<uint64_t>(src), reinterpret_cast<uint64_t>(dst)});
    uint64_t number = sim.numSubmitted++;
    return {[=, &sim](const LaunchOrder &order) {
              return complete(sim, *pending, order, sim.livenessOf("NCCL", number, {}).get());
            },
            [=, &sim] { return isReady(sim, *pending); }};
  });
  return ncclSuccess;
}

} // namespace

extern "C" void cudasimNcclPlant(CudasimNcclFault fault, uint64_t collective) {
  std::lock_guard guard(simulatorLock());
  state().planted = fault;
  state().plantedAt = collective;
}

extern "C" {

ncclResult_t ncclGetVersion(int *version) { return *version = NCCL_VERSION_CODE, ncclSuccess; }

const char *ncclGetErrorString(ncclResult_t result) {
  switch (result) {
  case ncclSuccess:
    return "no error";
  case ncclInvalidArgument:
    return "invalid argument";
  case ncclInvalidUsage:
    return "invalid usage";
  case ncclRemoteError:
    return "remote process exited or there was a network error";
  case ncclInProgress:
    return "NCCL operation in progress";
  default:
    return "unhandled system error";
  }
}

const char *ncclGetLastError(ncclComm_t handle) {
  std::lock_guard guard(simulatorLock());
  std::shared_ptr<Comm> comm = handle ? commOf(handle) : nullptr;
  return comm ? comm->lastError.c_str() : state().lastError.c_str();
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
  static std::atomic<int> numMade;
  std::memset(id, 0, sizeof *id);
  std::string name = fmt::format("/cudasim-nccl-{}-{}", getpid(), ++numMade);
  std::memcpy(id->internal, name.data(), name.size());
  return ncclSuccess;
}

ncclResult_t ncclCommInitRankConfig(ncclComm_t *handle, int numRanks, ncclUniqueId id, int rank, ncclConfig_t *config) {
  bool blocks = !config || config->blocking != 0;
  auto comm = std::make_shared<Comm>();
  {
    std::lock_guard guard(simulatorLock());
    if (rank < 0 || rank >= numRanks)
      return refuse(ncclInvalidArgument, fmt::format("rank {} of {}", rank, numRanks));
    llmc::Result<std::unique_ptr<Meeting>> meeting = Meeting::join(id.internal, rank, numRanks);
    if (!meeting)
      return refuse(ncclInvalidUsage, meeting.error().message);
    comm->meeting = std::move(*meeting);
    *handle = reinterpret_cast<ncclComm_t>(state().comms.add(std::make_unique<std::shared_ptr<Comm>>(comm)));
  }
  while (blocks && !comm->meeting->allJoined())
    usleep(200);
  return blocks || comm->meeting->allJoined() ? ncclSuccess : ncclInProgress;
}

/// Waits for what is on the streams.
ncclResult_t ncclCommFinalize(ncclComm_t handle) {
  std::lock_guard guard(simulatorLock());
  if (!commOf(handle))
    return refuse(ncclInvalidArgument, "a communicator that does not exist");
  return simulator()->finishAll() == CUDA_SUCCESS ? ncclSuccess : ncclUnhandledCudaError;
}

ncclResult_t ncclCommDestroy(ncclComm_t handle) {
  std::lock_guard guard(simulatorLock());
  return state().comms.remove(handle) ? ncclSuccess : refuse(ncclInvalidArgument, "a communicator that does not exist");
}

/// From any thread, while another waits for a stream: what waits for other ranks ends without a result.
ncclResult_t ncclCommAbort(ncclComm_t handle) {
  std::lock_guard guard(simulatorLock());
  std::shared_ptr<Comm> comm = commOf(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "a communicator that does not exist");
  comm->isAborted = true;
  state().comms.remove(handle);
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t handle, ncclResult_t *error) {
  std::lock_guard guard(simulatorLock());
  std::shared_ptr<Comm> comm = commOf(handle);
  if (!comm)
    return refuse(ncclInvalidArgument, "a communicator that does not exist");
  if (comm->asyncError == ncclSuccess)
    if (int dead = comm->meeting->deadRank(); dead >= 0) {
      comm->asyncError = ncclRemoteError;
      comm->lastError = fmt::format("rank {} is gone", dead);
    }
  *error = comm->asyncError != ncclSuccess ? comm->asyncError
           : comm->meeting->allJoined()    ? ncclSuccess
                                           : ncclInProgress;
  return ncclSuccess;
}

ncclResult_t ncclCommCount(const ncclComm_t handle, int *count) {
  std::lock_guard guard(simulatorLock());
  std::shared_ptr<Comm> comm = commOf(handle);
  return comm ? (*count = comm->meeting->numRanks(), ncclSuccess) : ncclInvalidArgument;
}

ncclResult_t ncclCommUserRank(const ncclComm_t handle, int *rank) {
  std::lock_guard guard(simulatorLock());
  std::shared_ptr<Comm> comm = commOf(handle);
  return comm ? (*rank = comm->meeting->rank(), ncclSuccess) : ncclInvalidArgument;
}

/// Calls are submitted one by one in a group too: their order is all that matters here.
ncclResult_t ncclGroupStart() {
  std::lock_guard guard(simulatorLock());
  return ++state().groupDepth, ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  std::lock_guard guard(simulatorLock());
  if (state().groupDepth == 0)
    return refuse(ncclInvalidUsage, "a group that was not started");
  return --state().groupDepth, ncclSuccess;
}

ncclResult_t ncclAllReduce(const void *src, void *dst, size_t count, ncclDataType_t type, ncclRedOp_t reduction,
                           ncclComm_t comm, cudaStream_t stream) {
  return submit(comm, {Collective::allReduce, count, type, reduction, 0}, src, dst, stream);
}

ncclResult_t ncclReduceScatter(const void *src, void *dst, size_t receivedPerRank, ncclDataType_t type,
                               ncclRedOp_t reduction, ncclComm_t handle, cudaStream_t stream) {
  int numRanks = 1;
  if (ncclCommCount(handle, &numRanks) != ncclSuccess)
    return refuse(ncclInvalidArgument, "a communicator or stream that does not exist");
  return submit(handle, {Collective::reduceScatter, receivedPerRank * numRanks, type, reduction, 0}, src, dst, stream);
}

ncclResult_t ncclAllGather(const void *src, void *dst, size_t sentPerRank, ncclDataType_t type, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit(comm, {Collective::allGather, sentPerRank, type, ncclSum, 0}, src, dst, stream);
}

ncclResult_t ncclBroadcast(const void *src, void *dst, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
                           cudaStream_t stream) {
  return submit(comm, {Collective::broadcast, count, type, ncclSum, root}, src, dst, stream);
}

} // extern "C"
