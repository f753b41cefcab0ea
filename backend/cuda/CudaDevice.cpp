// The device keeps the context, its memory, the loaded PTX and, once they are needed, cublasLt and NCCL; programs are
// made of kernels kind by kind.
#include "backend/cuda/CudaDevice.h"

#include "backend/cuda/AttentionKernel.h"
#include "backend/cuda/CudaProgram.h"
#include "backend/cuda/MatMul.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

namespace llmc {

using namespace cuda;

/// 80 for "sm_80"; nothing for what is no GPU's architecture.
static std::optional<int> architectureOf(const TargetPrograms &target) {
  int number = 0;
  if (target.target != "cuda" || !target.isa.starts_with("sm_"))
    return std::nullopt;
  const char *begin = target.isa.data() + 3, *end = target.isa.data() + target.isa.size();
  auto [stop, error] = std::from_chars(begin, end, number);
  return error == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

namespace {

class CudaDevice : public DeviceApi {
public:
  static Result<std::unique_ptr<DeviceApi>> open(const CudaDeviceOptions &options) {
    std::unique_ptr<CudaDevice> device(new CudaDevice(options));
    Result<std::unique_ptr<Context>> context = Context::open(options.driverLibrary, options.ordinal);
    LLMC_RETURN_IF_ERROR(context);
    device->context = std::move(*context);
    Result<std::unique_ptr<Copies>> copies = Copies::make(*device->context);
    LLMC_RETURN_IF_ERROR(copies);
    device->copies = std::move(*copies);
    return std::unique_ptr<DeviceApi>(std::move(device));
  }
  ~CudaDevice() override {
    settle();
    unloadCode();
  }

  std::string describe() const override { return context->name(); }

  Result<size_t> pickTarget(const Plan &plan) const override {
    std::optional<size_t> best;
    std::string has;
    for (size_t i = 0; i < plan.targets.size(); ++i) {
      const TargetPrograms &target = plan.targets[i];
      has += (i ? ", " : "") + target.target + " " + target.isa;
      std::optional<int> architecture = architectureOf(target);
      if (architecture && *architecture <= context->computeCapability() &&
          (!best || *architecture > *architectureOf(plan.targets[*best])))
        best = i;
    }
    if (best)
      return *best;
    return Error{fmt::format("the plan has {}; this device is {}; llmc-compile --target cuda makes programs for sm_80 "
                             "and later",
                             has.empty() ? "no programs" : has, describeArchitecture())};
  }

  Result<std::byte *> allocate(uint64_t bytes, const char *what) override {
    if (bytes == 0)
      return nullptr;
    LLMC_RETURN_IF_ERROR(context->makeCurrent());
    Result<DeviceMemory> memory = DeviceMemory::allocate(*context, bytes, what);
    LLMC_RETURN_IF_ERROR(memory);
    LLMC_RETURN_IF_ERROR(zero(memory->data(), bytes));
    memories.push_back(std::move(*memory));
    return memories.back().data();
  }

  void release(std::byte *memory) override {
    settle();
    std::erase_if(memories, [&](const DeviceMemory &owned) { return owned.data() == memory; });
  }

  Status copyIn(std::byte *deviceDst, std::span<const std::byte> hostSrc) override {
    return copies->in(reinterpret_cast<CUdeviceptr>(deviceDst), hostSrc);
  }
  Status copyOut(std::span<std::byte> hostDst, const std::byte *deviceSrc) override {
    return copies->out(hostDst, reinterpret_cast<CUdeviceptr>(deviceSrc));
  }
  Status zero(std::byte *deviceDst, uint64_t bytes) override {
    if (bytes == 0)
      return {};
    LLMC_RETURN_IF_ERROR(context->makeCurrent());
    return context->check(
        context->driver().cuMemsetD8Async(reinterpret_cast<CUdeviceptr>(deviceDst), 0, bytes, context->stream()),
        "filling memory with zeros");
  }

  Status loadCode(const Plan &plan, const TargetPrograms &target, std::span<const std::byte> code) override {
    std::optional<int> architecture = architectureOf(target);
    if (!architecture || *architecture > context->computeCapability())
      return Error{"cannot run " + target.target + " " + target.isa + " on " + describeArchitecture()};
    LLMC_RETURN_IF_ERROR(context->makeCurrent());
    unloadCode();
    if (!code.empty())
      LLMC_RETURN_IF_ERROR(loadModule(code));
    entries = target.entries;
    allowTf32 = plan.precision == "tf32";
    isLoaded = true;
    return {};
  }

  Result<std::unique_ptr<PreparedProgram>> prepare(const Program &program, const DeviceSpaces &spaces,
                                                   CommApi *comm) override {
    if (!isLoaded)
      return Error{"no code is loaded"};
    LLMC_RETURN_IF_ERROR(context->makeCurrent());
    if (comm && !ranks) {
      Result<std::unique_ptr<Ranks>> joined = Ranks::join(*context, options.ncclLibrary, *comm, options.rankTimeout);
      LLMC_RETURN_IF_ERROR(joined);
      ranks = std::move(*joined);
    }
    CudaProgram::Parts parts;
    parts.context = context.get();
    parts.copies = copies.get();
    parts.ranks = comm ? ranks.get() : nullptr;
    parts.stepTimeout = options.stepTimeout;
    parts.order = orderOf(program, comm != nullptr);
    parts.launches = program.launches;
    parts.spaces = spaces;
    LLMC_RETURN_IF_ERROR(addStatusWords(parts));
    if (parts.order.commStream != 0) {
      Result<CollectiveProgress> progress = CollectiveProgress::make(*context, program, *copies);
      LLMC_RETURN_IF_ERROR(progress);
      parts.progress = std::make_unique<CollectiveProgress>(std::move(*progress));
    }
    for (size_t i = 0; i < program.launches.size(); ++i) {
      MadeKernel kernel = makeKernel(parts, i);
      if (!kernel)
        return inContext(fmt::format("{} '{}'", kernelInfo(program.launches[i].kind).name, program.launches[i].name),
                         kernel.error());
      parts.kernels.push_back(std::move(*kernel));
    }
    auto made = CudaProgram::make(std::move(parts));
    LLMC_RETURN_IF_ERROR(made);
    return std::unique_ptr<PreparedProgram>(std::move(*made));
  }

  uint64_t peakBytes() const override { return context->peakBytes(); }

private:
  explicit CudaDevice(const CudaDeviceOptions &options) : options(options) {}

  std::string describeArchitecture() const {
    return fmt::format("{} (sm_{})", context->name(), context->computeCapability());
  }

  /// Before memory is given back: what still uses it, a copy above all, must have ended. In a broken context nothing
  /// does.
  void settle() const {
    if (context && !context->isAbandoned() && context->makeCurrent())
      context->driver().cuStreamSynchronize(context->stream());
  }
  Status loadModule(std::span<const std::byte> code);
  void unloadCode() {
    if (module && !context->isAbandoned() && context->makeCurrent())
      context->driver().cuModuleUnload(module);
    module = nullptr;
  }
  Status addStatusWords(CudaProgram::Parts &parts);
  MadeKernel makeKernel(CudaProgram::Parts &parts, size_t index);
  MadeKernel makeAttention(CudaProgram::Parts &parts, size_t index);
  MadeKernel makeEntry(CudaProgram::Parts &parts, size_t index);
  MadeKernel makeStart(const CudaProgram::Parts &parts, const Launch &launch) const;

  CudaDeviceOptions options;
  std::unique_ptr<Context> context; ///< before everything that uses it
  std::unique_ptr<Copies> copies;
  std::vector<DeviceMemory> memories;
  std::unique_ptr<Contractions> contractions; ///< once a program has one
  std::unique_ptr<Attentions> attentions;     ///< once a program has one
  std::unique_ptr<Ranks> ranks;               ///< once a program has others to sum with
  CUmodule module = nullptr;
  std::vector<CodeEntry> entries;
  bool isLoaded = false, allowTf32 = false;
};

} // namespace

/// The driver compiles the PTX for this device; what it does not like it says in a log.
Status CudaDevice::loadModule(std::span<const std::byte> code) {
  if (code.back() != std::byte(0))
    return Error{"the plan's PTX does not end"};
  std::vector<char> log(8192);
  CUjit_option jit[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void *values[] = {log.data(), reinterpret_cast<void *>(log.size())};
  Status status =
      context->check(context->driver().cuModuleLoadDataEx(&module, code.data(), std::size(jit), jit, values),
                     "compiling the plan's PTX");
  log.back() = '\0';
  return status || log.front() == '\0' ? status : Status(Error{status.error().message + ": " + log.data()});
}

/// A word for each launch that may find data it cannot work with.
Status CudaDevice::addStatusWords(CudaProgram::Parts &parts) {
  for (size_t i = 0; i < parts.launches.size(); ++i)
    if (canFailOnData(parts.launches[i].kind))
      parts.statusLaunches.push_back(i);
  if (parts.statusLaunches.empty())
    return {};
  Result<DeviceMemory> words =
      DeviceMemory::allocate(*context, parts.statusLaunches.size() * sizeof(uint64_t), "status words");
  LLMC_RETURN_IF_ERROR(words);
  parts.statusWords = std::move(*words);
  return {};
}

MadeKernel CudaDevice::makeKernel(CudaProgram::Parts &parts, size_t index) {
  const Launch &launch = parts.launches[index];
  switch (launch.kind) {
  case KernelKind::Zero:
    return makeZeroKernel(*context, launch, parts.spaces);
  case KernelKind::MatMul:
    if (!contractions) {
      Result<std::unique_ptr<Contractions>> opened = Contractions::open(*context, options.blasLibrary);
      LLMC_RETURN_IF_ERROR(opened);
      contractions = std::move(*opened);
    }
    return contractions->makeKernel(launch, parts.spaces, launch.stream, allowTf32);
  case KernelKind::AllReduceStart:
    return makeStart(parts, launch);
  case KernelKind::AllReduceWait:
    return std::unique_ptr<CudaKernel>();
  case KernelKind::Attention:
  case KernelKind::AttentionGrad:
    return makeAttention(parts, index);
  default:
    return makeEntry(parts, index);
  }
}

MadeKernel CudaDevice::makeAttention(CudaProgram::Parts &parts, size_t index) {
  const Launch &launch = parts.launches[index];
  if (!options.openAttention)
    return makeEntry(parts, index);
  if (!attentions)
    attentions =
        std::make_unique<Attentions>(*context, options.openAttention(context->computeCapability()), options.notice);
  MadeKernel kernel = attentions->makeKernel(launch, parts.spaces, launch.stream);
  return !kernel || *kernel ? std::move(kernel) : makeEntry(parts, index);
}

/// The plan's own kernel.
MadeKernel CudaDevice::makeEntry(CudaProgram::Parts &parts, size_t index) {
  const Launch &launch = parts.launches[index];
  if (launch.entry < 0 || static_cast<size_t>(launch.entry) >= entries.size() || !module)
    return Error{fmt::format("code entry {} is not in the loaded code", launch.entry)};
  auto status = std::find(parts.statusLaunches.begin(), parts.statusLaunches.end(), index);
  CUdeviceptr word = status == parts.statusLaunches.end()
                         ? 0
                         : parts.statusWords.address() +
                               static_cast<uint64_t>(status - parts.statusLaunches.begin()) * sizeof(uint64_t);
  return makeEntryKernel(*context, module, entries[static_cast<size_t>(launch.entry)], launch, parts.spaces, word);
}

MadeKernel CudaDevice::makeStart(const CudaProgram::Parts &parts, const Launch &launch) const {
  if (!parts.ranks)
    return std::unique_ptr<CudaKernel>();
  return makeAllReduceKernel(*context, *parts.ranks, launch, parts.spaces, *parts.progress);
}

Result<std::unique_ptr<DeviceApi>> makeCudaDevice(const CudaDeviceOptions &options) {
  return CudaDevice::open(options);
}

} // namespace llmc
