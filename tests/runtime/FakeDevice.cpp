// Runs through the plan's entries by name.
#include "tests/runtime/FakeDevice.h"

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace llmc::test {

float FakeRun::scalar(const std::string &name) const { return std::bit_cast<float>(scalars.at(name)); }

Result<size_t> FakeDevice::pickTarget(const Plan &seen) const {
  plan = &seen;
  for (size_t i = 0; i < seen.targets.size(); ++i)
    if (seen.targets[i].target == "fake")
      return i;
  return Error{"the plan has no program for fake"};
}

Result<std::byte *> FakeDevice::allocate(uint64_t bytes, const char *what) {
  if (what == log.refused)
    return Error{"no memory for " + log.refused};
  log.allocated[what] = bytes;
  if (bytes == 0)
    return static_cast<std::byte *>(nullptr);
  ++log.numAlive;
  uint64_t rounded = (bytes + 4095) / 4096 * 4096;
  auto *memory = static_cast<std::byte *>(std::aligned_alloc(4096, rounded));
  std::memset(memory, 0, rounded);
  return memory;
}

void FakeDevice::release(std::byte *memory) {
  --log.numAlive;
  std::free(memory);
}

Status FakeDevice::copyIn(std::byte *deviceDst, std::span<const std::byte> hostSrc) {
  std::memcpy(deviceDst, hostSrc.data(), hostSrc.size());
  return {};
}

Status FakeDevice::copyOut(std::span<std::byte> hostDst, const std::byte *deviceSrc) {
  std::memcpy(hostDst.data(), deviceSrc, hostDst.size());
  return {};
}

Status FakeDevice::zero(std::byte *deviceDst, uint64_t bytes) {
  if (bytes > 0)
    std::memset(deviceDst, 0, bytes);
  return {};
}

Status FakeDevice::loadCode(const Plan &, const TargetPrograms &target, std::span<const std::byte> code) {
  log.code.assign(code.begin(), code.end());
  return {};
}

namespace {

template <typename T> T *at(const DeviceSpaces &spaces, const BufferRef &buffer) {
  std::byte *base = buffer.space == Space::gradients ? spaces.gradients
                    : buffer.space == Space::arena   ? spaces.arena
                                                     : spaces.state;
  return reinterpret_cast<T *>(base + buffer.offset);
}

/// Where element i of a value lies.
uint64_t placeOf(const PieceRows &rows, uint64_t i) {
  return rows.length == 0 ? i : i / rows.length * rows.stride + i % rows.length;
}

class FakeProgram : public PreparedProgram {
public:
  FakeProgram(const Plan &plan, const Program &program, const DeviceSpaces &spaces, FakeDevice::Log &log)
      : plan(plan), program(program), spaces(spaces), log(log) {}

  Status runProfiled(std::span<double> launchMs) override {
    for (size_t i = 0; i < launchMs.size(); ++i)
      launchMs[i] = 1.0 + static_cast<double>(i);
    return run();
  }

  Status run() override {
    if (static_cast<int>(log.runs.size()) == log.failAtRun)
      return Error{"kernel failed"};
    FakeRun run{program.kind, {}, {}, {}};
    for (const StateEntry &entry : plan.state) {
      if (entry.kind == StateKind::scalar)
        run.scalars[entry.name] = *at<uint32_t>(spaces, entry.buffer);
      if (entry.kind == StateKind::input) {
        auto *ids = at<int64_t>(spaces, entry.buffer);
        (entry.role == "tokens" ? run.tokens : run.labels).assign(ids, ids + entry.buffer.bytes / 8);
      }
    }
    write(run);
    log.runs.push_back(run);
    return {};
  }

private:
  void write(const FakeRun &run) {
    float loss = 0;
    for (int64_t label : run.labels)
      loss += label == -1 ? 0 : static_cast<float>(label) * run.scalar("loss_scale");
    bool updates = run.kind != ProgramKind::accumulate && run.kind != ProgramKind::forward;
    for (const StateEntry &entry : plan.state) {
      uint64_t elements = entry.buffer.bytes / 4;
      bool isUpdate = run.kind == ProgramKind::update || run.kind == ProgramKind::updateRanks;
      if (entry.role == "loss" && !isUpdate)
        *at<float>(spaces, entry.buffer) = log.isNan ? NAN : loss;
      if (entry.role == "grad_norm" && updates)
        *at<float>(spaces, entry.buffer) = 7;
      for (uint64_t i = 0; entry.role == "logits" && run.kind == ProgramKind::forward && i < elements; ++i)
        at<float>(spaces, entry.buffer)[i] = static_cast<float>(i);
      for (uint64_t i = 0; entry.kind == StateKind::parameter && i < elements; ++i) {
        if (run.kind == ProgramKind::accumulate)
          at<float>(spaces, entry.gradient)[placeOf(entry.rows, i)] += run.scalar("loss_scale");
        if (updates)
          at<float>(spaces, entry.buffer)[placeOf(entry.rows, i)] -= run.scalar("lr");
      }
    }
  }

  const Plan &plan;
  const Program &program;
  DeviceSpaces spaces;
  FakeDevice::Log &log;
};

} // namespace

Result<std::unique_ptr<PreparedProgram>> FakeDevice::prepare(const Program &program, const DeviceSpaces &spaces,
                                                             CommApi *) {
  log.prepared.push_back(program.kind);
  return std::unique_ptr<PreparedProgram>(new FakeProgram(*plan, program, spaces, log));
}

} // namespace llmc::test
