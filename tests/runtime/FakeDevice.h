// A device that computes nothing like a GPT, but something that shows what it was asked: the loss is loss_scale times
// the sum of the labels that count, each accumulate adds loss_scale to every gradient, each update takes lr from every
// parameter.
#pragma once

#include "runtime/Device.h"

#include <map>
#include <string>
#include <vector>

namespace llmc::test {

/// One run of a program: what it saw.
struct FakeRun {
  ProgramKind kind;
  std::map<std::string, uint32_t> scalars; ///< bits
  std::vector<int64_t> tokens, labels;
  float scalar(const std::string &name) const;
};

class FakeDevice : public DeviceApi {
public:
  /// `log` outlives the device, which the code under test may own.
  struct Log {
    std::vector<FakeRun> runs;
    std::map<std::string, uint64_t> allocated; ///< bytes by what
    size_t numAlive = 0;                       ///< allocations not yet released
    std::vector<ProgramKind> prepared;
    std::vector<std::byte> code;
    std::string refused; ///< what no memory is given for
    int failAtRun = -1;  ///< this run (0-based) fails
    bool isNan = false;  ///< losses are NaN
  };
  explicit FakeDevice(Log &log) : log(log) {}

  std::string describe() const override { return "fake"; }
  Result<size_t> pickTarget(const Plan &plan) const override;
  Result<std::byte *> allocate(uint64_t bytes, const char *what) override;
  void release(std::byte *memory) override;
  Status copyIn(std::byte *deviceDst, std::span<const std::byte> hostSrc) override;
  Status copyOut(std::span<std::byte> hostDst, const std::byte *deviceSrc) override;
  Status zero(std::byte *deviceDst, uint64_t bytes) override;
  Status loadCode(const Plan &plan, const TargetPrograms &target, std::span<const std::byte> code) override;
  Result<std::unique_ptr<PreparedProgram>> prepare(const Program &program, const DeviceSpaces &spaces,
                                                   CommApi *comm) override;
  uint64_t peakBytes() const override { return 12345; }

private:
  Log &log;
  mutable const Plan *plan = nullptr; ///< the one pickTarget saw: fake kernels find their buffers by name
};

} // namespace llmc::test
