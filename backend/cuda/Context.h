// One GPU as this process uses it: the driver, the device's primary context, the stream on which everything is ordered,
// and how much memory is taken. Errors name the device by its PCI id and UUID, which is what its administrator needs.
#pragma once

#include "backend/cuda/Driver.h"

#include <array>
#include <atomic>
#include <cstddef>

namespace llmc::cuda {

class Context {
public:
  /// Loads the driver and takes the `ordinal`-th GPU that this process sees. Fails, in words for the person at the
  /// terminal, where there is no driver, it is older than CUDA 13, or there is no such GPU.
  static Result<std::unique_ptr<Context>> open(const std::string &driverPath, int ordinal);
  ~Context();
  Context(const Context &) = delete;
  Context &operator=(const Context &) = delete;

  const Driver &driver() const { return *api; }
  /// Before the driver's calls in each thread.
  Status makeCurrent() const;
  /// What a call gave; an error ends with the device's identity.
  Status check(CUresult result, const std::string &what) const;

  /// "NVIDIA H200"
  const std::string &name() const { return deviceName; }
  /// "NVIDIA H200, PCI 0000:51:00.0, UUID GPU-...": for errors.
  std::string identity() const;
  const std::array<char, 16> &uuid() const { return deviceUuid; }
  /// 90 for sm_90.
  int computeCapability() const { return capability; }
  Result<int> attribute(CUdevice_attribute which) const;
  /// In this stream's order memory is filled and copied and programs run.
  CUstream stream() const { return mainStream; }

  /// A kernel hangs: from now on nothing that would wait for it is given back, and the process should end.
  void abandon() { abandoned = true; }
  bool isAbandoned() const { return abandoned; }

  /// What DeviceMemory has taken: now, and at most.
  uint64_t allocatedBytes() const { return allocated; }
  uint64_t peakBytes() const { return peak; }
  void noteAllocated(uint64_t bytes);
  void noteFreed(uint64_t bytes) { allocated -= bytes; }

private:
  explicit Context(std::unique_ptr<Driver> api) : api(std::move(api)) {}
  Status start(int ordinal);
  Status readIdentity();

  std::unique_ptr<Driver> api;
  CUdevice device = 0;
  CUcontext context = nullptr;
  CUstream mainStream = nullptr;
  std::string deviceName, pciId;
  std::array<char, 16> deviceUuid{};
  int capability = 0;
  bool abandoned = false;
  std::atomic<uint64_t> allocated{0}, peak{0};
};

/// A handle of the driver that is given back with its owner.
template <typename Handle, auto Destroy> class Owned {
public:
  Owned() = default;
  Owned(const Driver &driver, Handle handle) : driver(&driver), handle(handle) {}
  Owned(Owned &&other) noexcept : driver(other.driver), handle(std::exchange(other.handle, nullptr)) {}
  Owned &operator=(Owned &&other) noexcept {
    std::swap(driver, other.driver);
    std::swap(handle, other.handle);
    return *this;
  }
  ~Owned() {
    if (handle)
      (driver->*Destroy)(handle);
  }
  Handle get() const { return handle; }
  explicit operator bool() const { return handle != nullptr; }

private:
  const Driver *driver = nullptr;
  Handle handle = nullptr;
};
using Event = Owned<CUevent, &Driver::cuEventDestroy>;
using Stream = Owned<CUstream, &Driver::cuStreamDestroy>;
using Graph = Owned<CUgraph, &Driver::cuGraphDestroy>;
using GraphExec = Owned<CUgraphExec, &Driver::cuGraphExecDestroy>;

/// An event, for times or for order only.
Result<Event> makeEvent(const Context &context, bool hasTiming);
/// A stream that does not wait for the default one; `isUrgent`: its work goes before the others'.
Result<Stream> makeStream(const Context &context, bool isUrgent);

} // namespace llmc::cuda
