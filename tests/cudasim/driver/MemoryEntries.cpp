// Memory, copies and fills. Copies run late, when the scheduler comes to them: a host buffer that is reused too early,
// or read too early, shows.
#include "tests/cudasim/driver/Simulator.h"

#include <cstring>
#include <string_view>

using namespace llmc::cudasim;

namespace {

/// Pinned memory that holds the whole range, or null.
bool isPinned(Simulator &sim, const void *host, size_t bytes) {
  auto address = reinterpret_cast<uint64_t>(host);
  Allocation *found = sim.memory.find(address);
  return found && found->isHost && !found->isFreed && bytes <= found->bytes - (address - found->base);
}

std::optional<Fault> faultOf(const char *name, uint64_t address, const std::optional<Memory::Denial> &denial) {
  if (!denial)
    return std::nullopt;
  return Fault{.kind = denial->kind, .kernel = name, .address = address, .detail = denial->detail};
}

size_t hashOf(const void *data, size_t bytes) {
  return std::hash<std::string_view>()({static_cast<const char *>(data), bytes});
}

/// Host to device. Pinned memory is read when the copy runs and must not change until then; other memory is read now.
Submit copyIn(CUdeviceptr dst, const void *src, size_t bytes) {
  return [=](Simulator &sim) -> Work {
    bool pinned = isPinned(sim, src, bytes);
    size_t hash = pinned ? hashOf(src, bytes) : 0;
    auto snapshot = std::make_shared<std::vector<std::byte>>();
    if (!pinned)
      snapshot->assign(static_cast<const std::byte *>(src), static_cast<const std::byte *>(src) + bytes);
    uint64_t number = sim.numSubmitted++;
    return [=, &sim](const LaunchOrder &order) -> std::optional<Fault> {
      const char *name = "cuMemcpyHtoD";
      ++sim.counts.numCopies;
      const void *source = pinned ? src : snapshot->data();
      if (pinned && hashOf(src, bytes) != hash)
        return Fault{.kind = FaultKind::hostOverwrite,
                     .kernel = name,
                     .address = dst,
                     .detail = "the pinned source changed before the copy ran"};
      auto denial = sim.memory.noteRange(dst, bytes, true, order, sim.livenessOf(name, number, {}).get());
      if (!denial)
        std::memcpy(sim.memory.pointer(dst), source, bytes);
      return faultOf(name, dst, denial);
    };
  };
}

/// Device to host. Until the copy has run the host finds a pattern there.
Submit copyOut(void *dst, CUdeviceptr src, size_t bytes) {
  return [=](Simulator &sim) -> Work {
    std::memset(dst, 0xcb, bytes);
    uint64_t number = sim.numSubmitted++;
    return [=, &sim](const LaunchOrder &order) -> std::optional<Fault> {
      const char *name = "cuMemcpyDtoH";
      ++sim.counts.numCopies;
      auto denial = sim.memory.noteRange(src, bytes, false, order, sim.livenessOf(name, number, {}).get());
      if (!denial)
        std::memcpy(dst, sim.memory.pointer(src), bytes);
      return faultOf(name, src, denial);
    };
  };
}

Submit copyWithin(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return [=](Simulator &sim) -> Work {
    uint64_t number = sim.numSubmitted++;
    return [=, &sim](const LaunchOrder &order) -> std::optional<Fault> {
      const char *name = "cuMemcpyDtoD";
      ++sim.counts.numCopies;
      Simulator::Liveness live = sim.livenessOf(name, number, {});
      auto denial = sim.memory.noteRange(src, bytes, false, order, live.get());
      if (denial)
        return faultOf(name, src, denial);
      denial = sim.memory.noteRange(dst, bytes, true, order, live.get());
      if (!denial)
        std::memcpy(sim.memory.pointer(dst), sim.memory.pointer(src), bytes);
      return faultOf(name, dst, denial);
    };
  };
}

Submit fill(CUdeviceptr dst, uint32_t value, size_t count, size_t elementBytes) {
  return [=](Simulator &sim) -> Work {
    uint64_t number = sim.numSubmitted++;
    return [=, &sim](const LaunchOrder &order) -> std::optional<Fault> {
      const char *name = "cuMemset";
      auto denial =
          sim.memory.noteRange(dst, count * elementBytes, true, order, sim.livenessOf(name, number, {}).get());
      if (denial)
        return faultOf(name, dst, denial);
      std::byte *data = sim.memory.pointer(dst);
      for (size_t i = 0; i < count; ++i)
        std::memcpy(data + i * elementBytes, &value, elementBytes);
      return std::nullopt;
    };
  };
}

/// Enqueues on a stream; empty copies are none.
CUresult submit(CUstream handle, const char *name, size_t bytes, const Submit &work, bool touchesPageable = false) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture && touchesPageable)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (bytes > 0)
      sim.enqueue(*stream, name, work);
    return CUDA_SUCCESS;
  });
}

/// On the default stream, and waited for.
CUresult submitAndWait(const char *name, size_t bytes, const Submit &work) {
  return entry(Needs::context, [&](Simulator &sim) {
    if (sim.anyCapture())
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (bytes > 0)
      sim.enqueue(sim.legacy, name, work);
    return sim.finish(sim.scheduler.last(sim.legacy.chain));
  });
}

bool touchesPageable(const void *host, size_t bytes) {
  std::lock_guard guard(simulatorLock());
  return !isPinned(*simulator(), host, bytes);
}

CUresult allocate(Simulator &sim, CUdeviceptr *address, size_t bytes) {
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (bytes > sim.config.memoryBytes - sim.memory.allocatedBytes())
    return CUDA_ERROR_OUT_OF_MEMORY;
  *address = sim.memory.allocate(bytes, "allocation of " + std::to_string(bytes) + " bytes");
  return CUDA_SUCCESS;
}

} // namespace

extern "C" {

CUresult cuMemGetInfo(size_t *free, size_t *total) {
  return entry(Needs::context, [&](Simulator &sim) {
    *total = sim.config.memoryBytes;
    *free = *total - sim.memory.allocatedBytes();
    return CUDA_SUCCESS;
  });
}

CUresult cuMemAlloc(CUdeviceptr *address, size_t bytes) {
  return entry(Needs::context, [&](Simulator &sim) {
    return sim.anyCapture() ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : allocate(sim, address, bytes);
  });
}

/// What still uses the memory finds it gone: nobody may rely on a wait inside.
CUresult cuMemFree(CUdeviceptr address) {
  return entry(Needs::context, [&](Simulator &sim) {
    return address == 0 || sim.memory.free(address) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemAllocAsync(CUdeviceptr *address, size_t bytes, CUstream handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
      return CUDA_ERROR_NOT_SUPPORTED;
    CUresult result = allocate(sim, address, bytes);
    if (result != CUDA_SUCCESS)
      return result;
    // In the order of accesses the allocation is a first write, which writes nothing.
    sim.enqueue(*stream, "cuMemAllocAsync", [base = *address](Simulator &) -> Work {
      return [=](const LaunchOrder &order) -> std::optional<Fault> {
        Allocation *made = simulator()->memory.find(base);
        auto conflict = made->shadow.noteWrite(0, made->bytes, Access{.op = order.op()}, order);
        if (!conflict)
          return std::nullopt;
        return Fault{.kind = FaultKind::globalRace,
                     .kernel = "cuMemAllocAsync",
                     .address = base,
                     .detail = "not ordered before " + describeConflict(*conflict, order)};
      };
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream handle) {
  return entry(Needs::context, [&](Simulator &sim) {
    SimStream *stream = sim.streamOf(handle);
    if (!stream)
      return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture)
      return CUDA_ERROR_NOT_SUPPORTED;
    Allocation *found = sim.memory.find(address);
    if (!found || found->base != address || found->isFreed)
      return CUDA_ERROR_INVALID_VALUE;
    sim.enqueue(*stream, "cuMemFreeAsync", [address, bytes = found->bytes](Simulator &sim) -> Work {
      return [=, &sim](const LaunchOrder &order) -> std::optional<Fault> {
        auto denial = sim.memory.noteRange(address, bytes, true, order, nullptr);
        if (!denial)
          sim.memory.free(address);
        return faultOf("cuMemFreeAsync", address, denial);
      };
    });
    return CUDA_SUCCESS;
  });
}

CUresult cuMemHostAlloc(void **host, size_t bytes, unsigned int flags) {
  return entry(Needs::context, [&](Simulator &sim) {
    if (bytes == 0)
      return CUDA_ERROR_INVALID_VALUE;
    std::unique_ptr<std::byte[]> memory(new std::byte[bytes]);
    *host = memory.get();
    sim.memory.mapHost(*host, bytes, "pinned memory of " + std::to_string(bytes) + " bytes");
    sim.pinned[*host] = std::move(memory);
    return CUDA_SUCCESS;
  });
}

CUresult cuMemFreeHost(void *host) {
  return entry(Needs::context, [&](Simulator &sim) {
    if (sim.pinned.count(host) == 0)
      return CUDA_ERROR_INVALID_VALUE;
    // Copies that wait would read memory that is gone, so this waits for them, as the driver does.
    CUresult result = sim.finishAll();
    sim.memory.free(reinterpret_cast<uint64_t>(host));
    sim.pinned.erase(host);
    return result;
  });
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *address, void *host, unsigned int flags) {
  return entry(Needs::context, [&](Simulator &sim) {
    *address = reinterpret_cast<CUdeviceptr>(host);
    return isPinned(sim, host, 1) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t bytes) {
  return submitAndWait("cuMemcpyHtoD", bytes, copyIn(dst, src, bytes));
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t bytes) {
  return submitAndWait("cuMemcpyDtoH", bytes, copyOut(dst, src, bytes));
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t bytes, CUstream stream) {
  return submit(stream, "cuMemcpyHtoDAsync", bytes, copyIn(dst, src, bytes), touchesPageable(src, bytes));
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return submit(stream, "cuMemcpyDtoHAsync", bytes, copyOut(dst, src, bytes), touchesPageable(dst, bytes));
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return submit(stream, "cuMemcpyDtoDAsync", bytes, copyWithin(dst, src, bytes));
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count, CUstream stream) {
  return submit(stream, "cuMemsetD8Async", count, fill(dst, value, count, 1));
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t count, CUstream stream) {
  if (dst % 4 != 0)
    return CUDA_ERROR_INVALID_VALUE;
  return submit(stream, "cuMemsetD32Async", count, fill(dst, value, count, 4));
}

} // extern "C"
