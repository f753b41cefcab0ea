// What a session asks of a device: memory, and running launches in order. One conformance test runs on every device.
#pragma once

#include "runtime/Comm.h"

#include <memory>
#include <span>

namespace llmc {

/// Bases of the spaces of one open plan on a device; nullptr where a space is not allocated.
struct DeviceSpaces {
  std::byte *state = nullptr;
  std::byte *gradients = nullptr;
  std::byte *arena = nullptr;
};

/// A program made ready on a device: code bound, library primitives created, workspaces checked. Owned by who prepared
/// it.
class PreparedProgram {
public:
  virtual ~PreparedProgram() = default;
  /// Runs all launches in order and waits for the last. May be called again and again; allocates nothing.
  virtual Status run() = 0;
  /// As run(), and writes each launch's time in milliseconds (one per launch).
  virtual Status runProfiled(std::span<double> launchMs) = 0;
};

/// A device. One session drives it, from one thread unless a function says otherwise.
class DeviceApi {
public:
  virtual ~DeviceApi() = default;
  /// "x86-64-v4-bf16", "NVIDIA H200": for the metrics' first line.
  virtual std::string describe() const = 0;
  /// Which of the plan's targets this device runs best, by index into plan.targets; an error that names what the plan
  /// has and what the device is.
  virtual Result<size_t> pickTarget(const Plan &plan) const = 0;
  /// Zeroed memory, 4096-byte aligned, freed with the device or by release(). Bytes may be 0 (nullptr).
  virtual Result<std::byte *> allocate(uint64_t bytes, const char *what) = 0;
  virtual void release(std::byte *memory) = 0;
  /// Copies between host memory and device memory; returns when done. Several threads may copy in at once, each to a
  /// place of its own.
  virtual Status copyIn(std::byte *deviceDst, std::span<const std::byte> hostSrc) = 0;
  virtual Status copyOut(std::span<std::byte> hostDst, const std::byte *deviceSrc) = 0;
  virtual Status zero(std::byte *deviceDst, uint64_t bytes) = 0;
  /// Loads the code of a target of the plan (its bytes from the plan's code section) and sets the device to the plan's
  /// precision. Must outlive what is prepared from it.
  virtual Status loadCode(const Plan &plan, const TargetPrograms &target, std::span<const std::byte> code) = 0;
  /// Makes a program of the loaded target ready to run in these spaces. Its collectives go through `comm`, which must
  /// outlive it; null is one rank, whose sums are the parts.
  virtual Result<std::unique_ptr<PreparedProgram>> prepare(const Program &program, const DeviceSpaces &spaces,
                                                           CommApi *comm) = 0;
  /// Peak bytes this process (CPU: VmHWM) or device (GPU: allocated) has used.
  virtual uint64_t peakBytes() const = 0;
};

} // namespace llmc
