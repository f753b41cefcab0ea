// One function per struct of Plan.h, from the state to the launches. Sizes are bounded by kMaxSpaceBytes first, so the
// sums below it are exact.
#include "runtime/PlanCheck.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <string_view>

namespace llmc {

namespace {

/// What a buffer may refer into, with the sizes of the program at hand.
struct Spaces {
  uint64_t state = 0;
  uint64_t gradients = 0;
  uint64_t arena = 0;

  uint64_t size(Space space) const {
    return space == Space::state ? state : space == Space::gradients ? gradients : space == Space::arena ? arena : 0;
  }
};

constexpr uint64_t kBufferAlignment = 64;
constexpr uint64_t kCodeAlignment = 4096;
constexpr uint32_t kMaxStreams = 64;
constexpr size_t kMaxRank = 64;
constexpr uint32_t kMaxGrid = 0x7fffffff, kMaxBlock = 1024, kMaxSharedBytes = 227 * 1024; // of any GPU from sm_80 on

} // namespace

static const char *spaceName(Space space) {
  constexpr const char *names[] = {"none", "state", "gradients", "arena"};
  return names[static_cast<size_t>(space)];
}

/// True when [offset, offset + bytes) lies inside a section of `size` bytes.
static bool inside(uint64_t offset, uint64_t bytes, uint64_t size) { return bytes <= size && offset <= size - bytes; }

std::optional<uint64_t> numElements(std::span<const int64_t> shape) {
  uint64_t product = 1;
  bool isEmpty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t dimension : shape) {
    if (dimension < 0)
      return std::nullopt;
    if (!isEmpty && __builtin_mul_overflow(product, static_cast<uint64_t>(dimension), &product))
      return std::nullopt;
    if (product > kMaxSpaceBytes)
      return std::nullopt;
  }
  return isEmpty ? 0 : product;
}

static Status checkBuffer(const BufferRef &buffer, const Spaces &spaces) {
  if (buffer.space == Space::none)
    return buffer.offset == 0 && buffer.bytes == 0 ? Status() : Error{"an absent buffer has a place"};
  if (buffer.offset % kBufferAlignment != 0)
    return Error{fmt::format("offset {} is not a multiple of {}", buffer.offset, kBufferAlignment)};
  uint64_t size = spaces.size(buffer.space);
  if (!inside(buffer.offset, buffer.bytes, size))
    return Error{fmt::format("{} bytes at {} exceed the {} of {} bytes", buffer.bytes, buffer.offset,
                             spaceName(buffer.space), size)};
  return {};
}

/// The rows of a piece: where they lie, dense they are `buffer.bytes`.
static Status checkRows(const StateEntry &entry, const BufferRef &buffer, uint64_t elementSize, const Spaces &spaces) {
  auto [length, stride] = entry.rows;
  uint64_t elements = buffer.bytes / elementSize;
  if (length == 0 || stride < length || stride > kMaxSpaceBytes || elements == 0 || elements % length != 0)
    return Error{fmt::format("{} elements in rows of {}, {} apart", elements, length, stride)};
  uint64_t rows = elements / length, bytes = 0, size = spaces.size(buffer.space);
  if (buffer.offset % elementSize != 0)
    return Error{
        fmt::format("offset {} of a piece is not a multiple of its elements' {} bytes", buffer.offset, elementSize)};
  if (__builtin_mul_overflow(rows - 1, stride * elementSize, &bytes) || bytes > kMaxSpaceBytes ||
      !inside(buffer.offset, bytes + length * elementSize, size))
    return Error{fmt::format("{} rows of {} elements, {} apart, at {} exceed the {} of {} bytes", rows, length, stride,
                             buffer.offset, spaceName(buffer.space), size)};
  return {};
}

/// Where a value of the state or its gradient lies.
static Status checkPlace(const StateEntry &entry, const BufferRef &buffer, uint64_t elementSize, const Spaces &spaces) {
  if (entry.rows == PieceRows{})
    return checkBuffer(buffer, spaces);
  if (entry.kind != StateKind::parameter && entry.kind != StateKind::moment)
    return Error{"only parameters and moments are pieces of others"};
  return checkRows(entry, buffer, elementSize, spaces);
}

static Status checkRole(const StateEntry &entry) {
  auto isOneOf = [&](std::initializer_list<const char *> roles) {
    return std::find(roles.begin(), roles.end(), entry.role) != roles.end();
  };
  bool isKnown = entry.kind == StateKind::input    ? isOneOf({"", "tokens", "labels", "labels_unshifted"})
                 : entry.kind == StateKind::output ? isOneOf({"", "loss", "logits", "grad_norm"})
                                                   : entry.role.empty();
  if (!isKnown)
    return Error{fmt::format("unknown role '{}'", entry.role)};
  if (entry.vocabulary < 0)
    return Error{fmt::format("vocabulary {} is negative", entry.vocabulary)};
  if (entry.kind == StateKind::input && !entry.role.empty() && entry.type != ElementType::i64 &&
      entry.type != ElementType::i32)
    return Error{fmt::format("{} must be i64 or i32, found {}", entry.role, elementTypeName(entry.type))};
  if (entry.kind == StateKind::output && (entry.role == "loss" || entry.role == "grad_norm") &&
      (entry.type != ElementType::f32 || entry.buffer.bytes != sizeof(float)))
    return Error{fmt::format("{} must be one f32", entry.role)};
  return {};
}

static Status checkScalar(const StateEntry &entry) {
  if (std::find_if(kScalarNames.begin(), kScalarNames.end(),
                   [&](std::string_view name) { return name == entry.name; }) == kScalarNames.end())
    return Error{"no hyperparameter of this name"};
  if (entry.type != ElementType::f32 || entry.buffer.bytes != sizeof(float))
    return Error{"a hyperparameter must be one f32"};
  return {};
}

static Status checkGradient(const StateEntry &entry, uint64_t elements, const Spaces &spaces) {
  if (entry.gradient.space == Space::none)
    return checkBuffer(entry.gradient, spaces);
  if (entry.kind != StateKind::parameter || entry.gradient.space != Space::gradients)
    return Error{"a gradient belongs to a parameter and lies in the gradients' space"};
  if (entry.gradient.bytes != elements * sizeof(float))
    return Error{fmt::format("gradient has {} bytes, {} elements of f32 need {}", entry.gradient.bytes, elements,
                             elements * sizeof(float))};
  return checkPlace(entry, entry.gradient, sizeof(float), spaces);
}

/// Outputs that every program may have to give are not.
static bool isInForwardArena(const StateEntry &entry) {
  return entry.kind == StateKind::output && entry.buffer.space == Space::arena && entry.role != "loss" &&
         entry.role != "grad_norm";
}

static Status checkEntry(const StateEntry &entry, const Spaces &spaces, uint64_t weightsBytes) {
  if (entry.shape.size() > kMaxRank)
    return Error{fmt::format("{} dimensions", entry.shape.size())};
  std::optional<uint64_t> elements = numElements(entry.shape);
  if (!elements)
    return Error{"negative or too large shape"};
  if (entry.buffer.space != Space::state && !isInForwardArena(entry))
    return Error{"not in the state"};
  if (entry.buffer.bytes != *elements * elementBytes(entry.type))
    return Error{fmt::format("has {} bytes, {} elements of {} need {}", entry.buffer.bytes, *elements,
                             elementTypeName(entry.type), *elements * elementBytes(entry.type))};
  if (!isInForwardArena(entry))
    LLMC_RETURN_IF_ERROR(checkPlace(entry, entry.buffer, elementBytes(entry.type), spaces));
  LLMC_RETURN_IF_ERROR(checkGradient(entry, *elements, spaces));
  LLMC_RETURN_IF_ERROR(checkRole(entry));
  if (entry.kind == StateKind::scalar)
    return checkScalar(entry);
  bool isStored = entry.kind == StateKind::parameter || entry.kind == StateKind::constant;
  if (isStored && !inside(entry.fileOffset, entry.buffer.bytes, weightsBytes))
    return Error{fmt::format("{} bytes at {} exceed the weights section of {} bytes", entry.buffer.bytes,
                             entry.fileOffset, weightsBytes)};
  return {};
}

/// Weights must not overlap in the file: loading visits each chunk's entries once, in order.
static Status checkStoredRanges(const Plan &plan) {
  std::vector<const StateEntry *> stored;
  for (const StateEntry &entry : plan.state)
    if ((entry.kind == StateKind::parameter || entry.kind == StateKind::constant) && entry.buffer.bytes > 0)
      stored.push_back(&entry);
  std::sort(stored.begin(), stored.end(), [](auto *a, auto *b) { return a->fileOffset < b->fileOffset; });
  for (size_t i = 1; i < stored.size(); ++i)
    if (stored[i - 1]->fileOffset + stored[i - 1]->buffer.bytes > stored[i]->fileOffset)
      return Error{fmt::format("weights '{}' and '{}' overlap in the file", stored[i - 1]->name, stored[i]->name)};
  return {};
}

static Status checkState(const Plan &plan, const Spaces &spaces, uint64_t weightsBytes) {
  std::set<std::pair<StateKind, std::string_view>> names;
  for (const StateEntry &entry : plan.state) {
    if (Status status = checkEntry(entry, spaces, weightsBytes); !status)
      return inContext(fmt::format("state entry '{}'", entry.name), status.error());
    if (!names.emplace(entry.kind, entry.name).second)
      return Error{fmt::format("state entry '{}' appears twice", entry.name)};
  }
  return checkStoredRanges(plan);
}

/// Calls use(name) for each space-separated word.
template <typename Use> static void forEachWord(std::string_view words, Use use) {
  while (!words.empty()) {
    size_t end = std::min(words.find(' '), words.size());
    if (end > 0)
      use(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
}

static size_t countWords(std::string_view words) {
  size_t count = 0;
  forEachWord(words, [&](std::string_view) { ++count; });
  return count;
}

/// Operand counts by Kernels.def: "x" must be there, "x?" may be absent, "x..." stands for any number.
static Status checkOperands(const Launch &launch, const KernelInfo &info, const Spaces &spaces) {
  std::string_view operands = info.operands;
  bool repeats = operands.ends_with("...");
  size_t listed = countWords(operands), numFixed = repeats ? listed - 1 : listed;
  if (repeats ? launch.operands.size() < numFixed : launch.operands.size() != numFixed)
    return Error{fmt::format("has {} operands, needs {} ({})", launch.operands.size(), numFixed, operands)};
  size_t index = 0;
  Status status;
  forEachWord(operands, [&](std::string_view word) {
    if (status && index < numFixed && !word.ends_with('?') && launch.operands[index].space == Space::none)
      status = Error{fmt::format("operand {} is absent", word)};
    ++index;
  });
  LLMC_RETURN_IF_ERROR(status);
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    if (i >= numFixed && launch.operands[i].space == Space::none)
      return Error{fmt::format("operand {} is absent", i)};
    if (Status buffer = checkBuffer(launch.operands[i], spaces); !buffer)
      return inContext(fmt::format("operand {}", i), buffer.error());
  }
  return {};
}

/// Kinds for which a GPU runs a library or the driver, and no code of the plan.
static bool isLibraryCall(KernelKind kind) {
  return kind == KernelKind::MatMul || kind == KernelKind::Zero || kind == KernelKind::AllReduceStart ||
         kind == KernelKind::AllReduceWait;
}

bool needsEntry(std::string_view target, KernelKind kind) {
  return target == "cuda" ? !isLibraryCall(kind) : kind == KernelKind::Generated;
}

static Status checkLaunch(const Launch &launch, const Spaces &spaces, const TargetPrograms &target) {
  const KernelInfo &info = kernelInfo(launch.kind);
  LLMC_RETURN_IF_ERROR(checkOperands(launch, info, spaces));
  if (launch.ints.size() != countWords(info.ints))
    return Error{fmt::format("has {} integers, needs {} ({})", launch.ints.size(), countWords(info.ints), info.ints)};
  if (launch.floats.size() != countWords(info.floats))
    return Error{
        fmt::format("has {} floats, needs {} ({})", launch.floats.size(), countWords(info.floats), info.floats)};
  if (launch.stream >= kMaxStreams)
    return Error{fmt::format("stream {} of {}", launch.stream, kMaxStreams)};
  bool hasEntry = needsEntry(target.target, launch.kind);
  if (!hasEntry && launch.entry != -1)
    return Error{fmt::format("code entry {} where the device has the code", launch.entry)};
  if (hasEntry && (launch.entry < 0 || static_cast<size_t>(launch.entry) >= target.entries.size()))
    return Error{fmt::format("code entry {} of {}", launch.entry, target.entries.size())};
  if (launch.kind == KernelKind::Generated &&
      (launch.ints[0] < 0 || launch.ints[1] < 0 || launch.ints[2] <= 0 || launch.ints[3] <= 0))
    return Error{"grid with a negative size or an empty block"};
  return {};
}

static Status checkProgram(const Program &program, const Spaces &spaces, const TargetPrograms &target) {
  for (size_t i = 0; i < program.launches.size(); ++i) {
    const Launch &launch = program.launches[i];
    if (Status status = checkLaunch(launch, spaces, target); !status)
      return inContext(fmt::format("launch {} ({} '{}')", i, kernelInfo(launch.kind).name, launch.name),
                       status.error());
  }
  for (const ValueRange &value : program.values) {
    if (value.firstLaunch > value.lastLaunch || value.lastLaunch >= program.launches.size())
      return Error{fmt::format("value '{}' lives over launches {} to {} of {}", value.name, value.firstLaunch,
                               value.lastLaunch, program.launches.size())};
    if (Status status = checkBuffer(value.buffer, spaces); !status)
      return inContext(fmt::format("value '{}'", value.name), status.error());
  }
  return {};
}

/// Outputs in the arena of a target's forward program; without one nobody reads them.
static Status checkForwardOutputs(const Plan &plan, const Spaces &spaces) {
  for (const StateEntry &entry : plan.state)
    if (isInForwardArena(entry))
      if (Status status = checkBuffer(entry.buffer, spaces); !status)
        return inContext(fmt::format("output '{}'", entry.name), status.error());
  return {};
}

/// On CPUs a place in the code, on GPUs a name in the PTX and the shape of its launch.
static Status checkEntry(const CodeEntry &entry, const TargetPrograms &target) {
  if (entry.offset >= target.codeBytes)
    return Error{fmt::format("at {} lies outside of {} bytes", entry.offset, target.codeBytes)};
  if (target.target != "cuda")
    return entry == CodeEntry{.name = entry.name, .offset = entry.offset} ? Status()
                                                                          : Error{"is launched like a GPU's"};
  if (entry.symbol.empty() || entry.offset != 0)
    return Error{"has no symbol, or an offset"};
  if (entry.gridX < 1 || entry.gridX > kMaxGrid || entry.blockX < 1 || entry.blockX > kMaxBlock ||
      entry.sharedBytes > kMaxSharedBytes)
    return Error{fmt::format("is launched as {} blocks of {} threads with {} bytes of shared memory", entry.gridX,
                             entry.blockX, entry.sharedBytes)};
  return {};
}

static Status checkTarget(const Plan &plan, const TargetPrograms &target, Spaces spaces, uint64_t codeBytes) {
  if (target.codeOffset % kCodeAlignment != 0 || !inside(target.codeOffset, target.codeBytes, codeBytes))
    return Error{fmt::format("code of {} bytes at {} exceeds the section of {} bytes or is not page-aligned",
                             target.codeBytes, target.codeOffset, codeBytes)};
  for (const CodeEntry &entry : target.entries)
    if (Status status = checkEntry(entry, target); !status)
      return Error{fmt::format("code entry '{}' {}", entry.name, status.error().message)};
  std::set<ProgramKind> kinds;
  for (const Program &program : target.programs) {
    if (!kinds.insert(program.kind).second)
      return Error{fmt::format("program {} appears twice", programKindName(program.kind))};
    if (program.arenaBytes > kMaxSpaceBytes)
      return Error{fmt::format("program {}: arena of {} bytes", programKindName(program.kind), program.arenaBytes)};
    spaces.arena = program.arenaBytes;
    Status status = checkProgram(program, spaces, target);
    if (status && program.kind == ProgramKind::forward)
      status = checkForwardOutputs(plan, spaces);
    if (!status)
      return inContext(fmt::format("program {}", programKindName(program.kind)), status.error());
  }
  return {};
}

static Status checkSplice(const Plan &plan, uint64_t modelBytes) {
  std::map<std::string_view, const StateEntry *> parameters;
  for (const StateEntry &entry : plan.state)
    if (entry.kind == StateKind::parameter)
      parameters.emplace(entry.name, &entry);
  std::set<uint64_t> offsets;
  for (const SpliceEntry &entry : plan.splice) {
    auto found = parameters.find(entry.parameter);
    if (found == parameters.end())
      return Error{fmt::format("splice of '{}': no such parameter", entry.parameter)};
    const StateEntry *parameter = found->second;
    uint64_t expected = *numElements(parameter->shape) * elementBytes(entry.type);
    if (entry.bytes != expected)
      return Error{fmt::format("splice of '{}': {} bytes, expected {}", entry.parameter, entry.bytes, expected)};
    if (!entry.transform.empty() && !(entry.transform == "transpose" && parameter->shape.size() == 2))
      return Error{fmt::format("splice of '{}': transform '{}' of {} dimensions", entry.parameter, entry.transform,
                               parameter->shape.size())};
    if (entry.modelOffset > modelBytes || !offsets.insert(entry.modelOffset).second)
      return Error{
          fmt::format("splice of '{}': place {} is outside of the model or taken", entry.parameter, entry.modelOffset)};
  }
  return {};
}

Status checkPlan(const Plan &plan, const SectionSizes &sizes) {
  if (plan.stateBytes > kMaxSpaceBytes || plan.gradientBytes > kMaxSpaceBytes)
    return Error{fmt::format("state of {} and gradients of {} bytes", plan.stateBytes, plan.gradientBytes)};
  if (plan.batch < 0 || plan.sequence < 0 || plan.vocabulary < 0)
    return Error{"negative batch, sequence or vocabulary"};
  Spaces spaces{plan.stateBytes, plan.gradientBytes, 0};
  LLMC_RETURN_IF_ERROR(checkState(plan, spaces, sizes.weights));
  std::set<std::pair<std::string_view, std::string_view>> levels;
  for (const TargetPrograms &target : plan.targets) {
    if (!levels.emplace(target.target, target.isa).second)
      return Error{fmt::format("target {} {} appears twice", target.target, target.isa)};
    if (Status status = checkTarget(plan, target, spaces, sizes.code); !status)
      return inContext(fmt::format("target {} {}", target.target, target.isa), status.error());
  }
  return checkSplice(plan, sizes.model);
}

} // namespace llmc
