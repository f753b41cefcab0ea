// Roles of inputs, and rows of tokens and labels.
#include "runtime/Batch.h"

#include "runtime/Random.h"

#include <cstring>
#include <fmt/format.h>

namespace llmc {

static bool isInteger(const StateEntry &entry) {
  return entry.type == ElementType::i64 || entry.type == ElementType::i32;
}

static std::string describeEntry(const StateEntry &entry) {
  return fmt::format("'{}' ({} {})", entry.name, elementTypeName(entry.type), fmt::join(entry.shape, "x"));
}

static Error unknownInput(const InputMap &map, const std::string &name) {
  std::string names;
  for (const StateEntry *input : map.inputs)
    names += (names.empty() ? "" : ", ") + input->name;
  return {fmt::format("the plan has no input '{}'; its inputs are: {}", name, names)};
}

/// The input that plays a part: the one named by the flag, else the one the plan says. Nothing when there is none.
template <typename HasRole>
static Result<std::optional<size_t>> findInput(const InputMap &map, const std::string &name, const char *part,
                                               HasRole hasRole) {
  std::optional<size_t> found;
  for (size_t i = 0; i < map.inputs.size(); ++i) {
    if (name.empty() ? !hasRole(map.inputs[i]->role) : map.inputs[i]->name != name)
      continue;
    if (found)
      return Error{fmt::format("inputs '{}' and '{}' both take {}: choose one with --{}-input",
                               map.inputs[*found]->name, map.inputs[i]->name, part, part)};
    found = i;
  }
  if (!found && !name.empty())
    return unknownInput(map, name);
  if (found && !isInteger(*map.inputs[*found]))
    return Error{fmt::format("input {} cannot take {}: it is not integer", describeEntry(*map.inputs[*found]), part)};
  return found;
}

static Status readShapes(InputMap &map) {
  if (!map.tokens)
    return {};
  const StateEntry &tokens = map.tokensEntry();
  if (tokens.shape.size() != 2)
    return Error{fmt::format("input {} cannot take tokens: expected two dimensions (B, T)", describeEntry(tokens))};
  map.rows = tokens.shape[0];
  map.length = tokens.shape[1];
  if (map.labels && map.labelsEntry().buffer.bytes / elementBytes(map.labelsEntry().type) !=
                        tokens.buffer.bytes / elementBytes(tokens.type))
    return Error{fmt::format("input {} cannot take the labels of {}: they differ in size",
                             describeEntry(map.labelsEntry()), describeEntry(tokens))};
  return {};
}

Result<InputMap> mapInputs(const Plan &plan, const InputOverrides &overrides) {
  InputMap map;
  for (const StateEntry &entry : plan.state)
    if (entry.kind == StateKind::input)
      map.inputs.push_back(&entry);
  auto tokens =
      findInput(map, overrides.tokensInput, "tokens", [](const std::string &role) { return role == "tokens"; });
  LLMC_RETURN_IF_ERROR(tokens);
  auto labels = findInput(map, overrides.labelsInput, "labels",
                          [](const std::string &role) { return role.starts_with("labels"); });
  LLMC_RETURN_IF_ERROR(labels);
  map.tokens = *tokens;
  map.labels = *labels;
  if (map.tokens && map.tokens == map.labels)
    return Error{fmt::format("input '{}' cannot take both tokens and labels", map.tokensEntry().name)};
  if (map.labels)
    map.labelsShifted = overrides.labelsShifted.value_or(map.labelsEntry().role != "labels_unshifted");
  LLMC_RETURN_IF_ERROR(readShapes(map));
  return map;
}

std::string InputMap::describe() const {
  if (!tokens)
    return "no input takes tokens";
  std::string text = fmt::format("tokens go to {}", tokensEntry().name);
  if (labels)
    text += fmt::format(", labels to {}, {}", labelsEntry().name,
                        labelsShifted ? "shifted by one" : "unshifted (the graph shifts them)");
  return text;
}

Status requireOnlyTokensAndLabels(const InputMap &map) {
  for (size_t i = 0; i < map.inputs.size(); ++i)
    if (map.tokens != i && map.labels != i)
      return Error{fmt::format("input {} is neither tokens nor labels: give its values with --inputs FILE.safetensors",
                               describeEntry(*map.inputs[i]))};
  if (!map.tokens || map.rows == 0 || map.length == 0)
    return Error{"the plan has no input that takes tokens: name one with --tokens-input"};
  return {};
}

Batch makeBatch(const InputMap &map) {
  Batch batch;
  for (const StateEntry *input : map.inputs)
    batch.inputs.emplace_back(input->buffer.bytes);
  return batch;
}

Status storeId(std::span<std::byte> input, ElementType type, uint64_t index, int64_t value) {
  if (type == ElementType::i64) {
    std::memcpy(&input[index * sizeof(int64_t)], &value, sizeof(int64_t));
    return {};
  }
  int32_t narrow = static_cast<int32_t>(value);
  if (narrow != value)
    return Error{fmt::format("element {} is {}: too large for i32", index, value)};
  std::memcpy(&input[index * sizeof(int32_t)], &narrow, sizeof(int32_t));
  return {};
}

int64_t loadId(std::span<const std::byte> input, ElementType type, uint64_t index) {
  int64_t value = 0;
  int32_t narrow = 0;
  if (type == ElementType::i64)
    std::memcpy(&value, &input[index * sizeof(int64_t)], sizeof(int64_t));
  else
    std::memcpy(&narrow, &input[index * sizeof(int32_t)], sizeof(int32_t));
  return type == ElementType::i64 ? value : narrow;
}

int64_t countLabels(const InputMap &map, const Batch &batch) {
  const StateEntry &labels = map.labelsEntry();
  std::span<const std::byte> bytes = batch.inputs[*map.labels];
  // By what the graph does with them, whatever window the user feeds.
  bool graphShifts = labels.role == "labels_unshifted";
  uint64_t length = labels.shape.empty() ? 1 : static_cast<uint64_t>(labels.shape.back());
  int64_t count = 0;
  for (uint64_t i = 0; i < labels.buffer.bytes / elementBytes(labels.type); ++i) {
    bool isUsed = !graphShifts || i % length != 0;
    count += isUsed && loadId(bytes, labels.type, i) != labels.ignoreIndex;
  }
  return count;
}

static Status storeInput(const StateEntry &input, std::span<std::byte> bytes, uint64_t index, int64_t id) {
  Status status = storeId(bytes, input.type, index, id);
  return status ? status : Status(inContext(fmt::format("input '{}'", input.name), status.error()));
}

Status storeRow(const InputMap &map, int64_t row, std::span<const int64_t> window, Batch &batch) {
  for (int64_t t = 0; t < map.length; ++t) {
    uint64_t index = static_cast<uint64_t>(row * map.length + t);
    size_t place = static_cast<size_t>(t);
    LLMC_RETURN_IF_ERROR(
        storeInput(map.tokensEntry(), batch.inputs[*map.tokens], index, window.empty() ? 0 : window[place]));
    if (map.labels)
      LLMC_RETURN_IF_ERROR(
          storeInput(map.labelsEntry(), batch.inputs[*map.labels], index,
                     window.empty() ? map.labelsEntry().ignoreIndex : window[place + (map.labelsShifted ? 1 : 0)]));
  }
  return {};
}

Result<RandomTokens> RandomTokens::create(const InputMap &map, uint64_t seed, RankShare share) {
  LLMC_RETURN_IF_ERROR(requireOnlyTokensAndLabels(map));
  if (map.tokensEntry().vocabulary <= 0)
    return Error{
        fmt::format("the vocabulary of input '{}' is not known: give --data or --inputs", map.tokensEntry().name)};
  return RandomTokens(map, seed, share);
}

Status RandomTokens::fill(int64_t step, int64_t micro, Batch &batch) {
  uint64_t vocabulary = static_cast<uint64_t>(map.tokensEntry().vocabulary);
  if (map.labels && map.labelsEntry().vocabulary > 0)
    vocabulary = std::min(vocabulary, static_cast<uint64_t>(map.labelsEntry().vocabulary));
  uint64_t key = mixBits(mixBits(seed) ^ static_cast<uint64_t>(step));
  for (int64_t row = 0; row < map.rows; ++row) {
    uint64_t first = static_cast<uint64_t>(share.rowOfStep(micro, map.rows, row)) * window.size();
    for (size_t t = 0; t < window.size(); ++t)
      window[t] = static_cast<int64_t>(uniformBelow(mixBits(key ^ mixBits(first + t)), vocabulary));
    LLMC_RETURN_IF_ERROR(storeRow(map, row, window, batch));
  }
  batch.numTokens = map.rows * map.length;
  batch.numLabels = map.labels ? std::optional(countLabels(map, batch)) : std::nullopt;
  return {};
}

} // namespace llmc
