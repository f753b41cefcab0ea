// Two passes: the first finds the messages that grow and what their lengths become (edits, in the order of the file),
// the second streams the model with its edits. Parameters are read in pieces, but for transposes, which need the whole
// matrix.
#include "runtime/OnnxSplice.h"

#include "runtime/AtomicFile.h"
#include "runtime/ElementConvert.h"
#include "runtime/PlanCheck.h"
#include "runtime/WireFormat.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>

namespace llmc {

namespace {

/// The messages on the way from the model to a TensorProto.
enum class Message { model, graph, node, attribute, function, tensor };

/// A field of `parent` that may hold a TensorProto further down (onnx.proto's numbers).
struct Path {
  Message parent;
  uint32_t field;
  Message child;
};
constexpr Path kPaths[] = {
    {Message::model, 7, Message::graph},       {Message::model, 25, Message::function},
    {Message::graph, 1, Message::node},        {Message::graph, 5, Message::tensor},
    {Message::function, 7, Message::node},     {Message::node, 5, Message::attribute},
    {Message::attribute, 5, Message::tensor},  {Message::attribute, 6, Message::graph},
    {Message::attribute, 10, Message::tensor}, {Message::attribute, 11, Message::graph},
};
constexpr uint32_t kRawDataField = 9, kExternalDataField = 13, kDataLocationField = 14;
constexpr int kMaxDepth = 256;
constexpr uint64_t kExternalAlignment = 4096; ///< so that readers can map single tensors
constexpr uint64_t kPieceElements = 1 << 20;

/// A parameter to be written, and how.
struct Payload {
  const SpliceEntry *splice;
  const StateEntry *parameter;
  std::string fields; ///< what comes before the payload in the model (external: all there is)
};

/// At `offset` of the stored model, `removed` bytes give way to `text` and, where there is one, an inline payload.
struct Edit {
  uint64_t offset = 0;
  uint64_t removed = 0;
  std::string text;
  const Payload *payload = nullptr;
};

std::string header(uint32_t field, uint64_t length) {
  std::string bytes;
  appendHeader(bytes, field, length);
  return bytes;
}

std::string bytesField(uint32_t field, const std::string &content) { return header(field, content.size()) + content; }

std::string numberField(uint32_t field, uint64_t value) {
  std::string bytes;
  appendTag(bytes, field, kWireVarint);
  appendVarint(bytes, value);
  return bytes;
}

class EditFinder {
public:
  EditFinder(std::span<const std::byte> model, std::span<const Payload> payloads, bool isInline)
      : model(reinterpret_cast<const char *>(model.data()), model.size()), payloads(payloads), isInline(isInline) {}

  Result<std::vector<Edit>> find() {
    LLMC_RETURN_IF_ERROR(grow(Message::model, model, 0));
    if (next < payloads.size())
      return misplaced();
    return std::move(edits);
  }

private:
  Error misplaced() const {
    return {fmt::format("parameter '{}': byte {} of the stored model is not the end of a tensor",
                        payloads[next].splice->parameter, payloads[next].splice->modelOffset)};
  }

  uint64_t offsetOf(const char *place) const { return static_cast<uint64_t>(place - model.data()); }

  /// Whether the next payload's place is behind the first byte of a message and not behind its last.
  bool isDue(std::string_view message) const {
    uint64_t begin = offsetOf(message.data());
    return next < payloads.size() && payloads[next].splice->modelOffset > begin &&
           payloads[next].splice->modelOffset <= begin + message.size();
  }

  /// Adds the edits inside a message; how many bytes it grows by.
  Result<uint64_t> grow(Message kind, std::string_view message, int depth) {
    if (depth > kMaxDepth)
      return Error{"the stored model is nested too deeply"};
    if (kind == Message::tensor)
      return growTensor(offsetOf(message.data()) + message.size());
    uint64_t added = 0;
    WireReader reader(message);
    for (WireField field; isDue(message) && reader.next(field);) {
      auto path = std::find_if(std::begin(kPaths), std::end(kPaths),
                               [&](const Path &p) { return p.parent == kind && p.field == field.number; });
      if (!field.isLengthDelimited || path == std::end(kPaths) || !isDue(field.payload))
        continue;
      size_t edit = edits.size();
      edits.push_back({offsetOf(field.length.data()), field.length.size(), {}, nullptr});
      Result<uint64_t> inner = grow(path->child, field.payload, depth + 1);
      LLMC_RETURN_IF_ERROR(inner);
      appendVarint(edits[edit].text, field.payload.size() + *inner);
      added += *inner + edits[edit].text.size() - edits[edit].removed;
    }
    if (reader.isDamaged())
      return Error{fmt::format("the stored model cannot be read at byte {}", offsetOf(reader.position()))};
    return added;
  }

  Result<uint64_t> growTensor(uint64_t end) {
    const Payload &payload = payloads[next];
    if (payload.splice->modelOffset != end)
      return misplaced();
    ++next;
    edits.push_back({end, 0, payload.fields, isInline ? &payload : nullptr});
    return payload.fields.size() + (isInline ? payload.splice->bytes : 0);
  }

  std::string_view model;
  std::span<const Payload> payloads;
  bool isInline;
  size_t next = 0; ///< the payload to place next; they are in the order of the file
  std::vector<Edit> edits;
};

} // namespace

static Status appendText(AtomicFile &file, const std::string &text) {
  return file.append(std::as_bytes(std::span(text)));
}

static Status appendConverted(AtomicFile &file, std::span<const float> values, ElementType type,
                              std::vector<std::byte> &buffer) {
  uint64_t size = elementBytes(type);
  buffer.resize(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i)
    storeElement(values[i], type, &buffer[i * size]);
  return file.append(buffer);
}

/// (rows, columns) as (columns, rows), some columns at a time.
static Status appendTransposed(AtomicFile &file, const Payload &payload, const ReadParameter &read) {
  uint64_t rows = static_cast<uint64_t>(payload.parameter->shape[0]),
           columns = static_cast<uint64_t>(payload.parameter->shape[1]);
  std::vector<float> values(rows * columns), piece;
  std::vector<std::byte> buffer;
  LLMC_RETURN_IF_ERROR(read(*payload.parameter, 0, std::as_writable_bytes(std::span(values))));
  for (uint64_t column = 0; column < columns && rows > 0;) {
    piece.clear();
    for (; column < columns && piece.size() < kPieceElements; ++column)
      for (uint64_t row = 0; row < rows; ++row)
        piece.push_back(values[row * columns + column]);
    LLMC_RETURN_IF_ERROR(appendConverted(file, piece, payload.splice->type, buffer));
  }
  return {};
}

static Status appendPayload(AtomicFile &file, const Payload &payload, const ReadParameter &read) {
  if (payload.splice->transform == "transpose")
    return appendTransposed(file, payload, read);
  uint64_t elements = payload.parameter->buffer.bytes / sizeof(float);
  std::vector<float> values;
  std::vector<std::byte> buffer;
  for (uint64_t first = 0; first < elements; first += values.size()) {
    values.resize(std::min(kPieceElements, elements - first));
    LLMC_RETURN_IF_ERROR(read(*payload.parameter, first * sizeof(float), std::as_writable_bytes(std::span(values))));
    LLMC_RETURN_IF_ERROR(appendConverted(file, values, payload.splice->type, buffer));
  }
  return {};
}

/// The splice table in the order of the file, with the parameters it names.
static Result<std::vector<Payload>> collect(const Plan &plan) {
  std::map<std::string, const StateEntry *> parameters;
  for (const StateEntry &entry : plan.state)
    if (entry.kind == StateKind::parameter)
      parameters.emplace(entry.name, &entry);
  std::vector<Payload> payloads;
  for (const SpliceEntry &entry : plan.splice) {
    auto found = parameters.find(entry.parameter);
    if (found == parameters.end() || found->second->type != ElementType::f32)
      return Error{fmt::format("'{}' is no f32 parameter of the plan", entry.parameter)};
    if (entry.type != ElementType::f32 && entry.type != ElementType::bf16 && entry.type != ElementType::f16 &&
        entry.type != ElementType::f64)
      return Error{fmt::format("parameter '{}' cannot be written as {}", entry.parameter, elementTypeName(entry.type))};
    payloads.push_back({&entry, found->second, {}});
  }
  std::sort(payloads.begin(), payloads.end(),
            [](const Payload &a, const Payload &b) { return a.splice->modelOffset < b.splice->modelOffset; });
  return payloads;
}

/// Writes all payloads to a file and sets the fields that refer to it.
static Result<AtomicFile> writeExternal(const std::string &dataPath, std::span<Payload> payloads,
                                        const ReadParameter &read) {
  Result<AtomicFile> file = AtomicFile::create(dataPath);
  LLMC_RETURN_IF_ERROR(file);
  std::string location = dataPath.substr(dataPath.rfind('/') + 1);
  auto entry = [](const char *key, const std::string &value) {
    return bytesField(kExternalDataField, bytesField(1, key) + bytesField(2, value));
  };
  for (Payload &payload : payloads) {
    LLMC_RETURN_IF_ERROR(
        file->resize((file->size() + kExternalAlignment - 1) / kExternalAlignment * kExternalAlignment));
    payload.fields = entry("location", location) + entry("offset", std::to_string(file->size())) +
                     entry("length", std::to_string(payload.splice->bytes)) + numberField(kDataLocationField, 1);
    LLMC_RETURN_IF_ERROR(appendPayload(*file, payload, read));
  }
  return file;
}

static Status writeModel(AtomicFile &file, std::span<const std::byte> model, std::span<const Edit> edits,
                         const ReadParameter &read) {
  uint64_t at = 0;
  for (const Edit &edit : edits) {
    LLMC_RETURN_IF_ERROR(file.append(model.subspan(at, edit.offset - at)));
    LLMC_RETURN_IF_ERROR(appendText(file, edit.text));
    if (edit.payload)
      LLMC_RETURN_IF_ERROR(appendPayload(file, *edit.payload, read));
    at = edit.offset + edit.removed;
  }
  return file.append(model.subspan(at));
}

std::string trainedDataPath(const std::string &path, const Plan &plan, uint64_t modelBytes, uint64_t maxInlineBytes) {
  uint64_t total = modelBytes;
  for (const SpliceEntry &entry : plan.splice)
    total += entry.bytes;
  return total > maxInlineBytes ? path + ".data" : "";
}

Status writeTrainedModel(const std::string &path, const Plan &plan, std::span<const std::byte> model,
                         const ReadParameter &read, uint64_t maxInlineBytes) {
  if (model.empty())
    return Error{path + ": the plan holds no source model to write the weights into"};
  Result<std::vector<Payload>> payloads = collect(plan);
  if (!payloads)
    return inContext(path, payloads.error());
  for (Payload &payload : *payloads)
    payload.fields = header(kRawDataField, payload.splice->bytes);
  std::string dataPath = trainedDataPath(path, plan, model.size(), maxInlineBytes);
  bool isInline = dataPath.empty();
  std::optional<AtomicFile> dataFile;
  if (!isInline) {
    Result<AtomicFile> written = writeExternal(dataPath, *payloads, read);
    LLMC_RETURN_IF_ERROR(written);
    dataFile = std::move(*written);
  }
  Result<std::vector<Edit>> edits = EditFinder(model, *payloads, isInline).find();
  if (!edits)
    return inContext(path, edits.error());
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(writeModel(*file, model, *edits, read));
  // The model refers to its data: data first.
  if (dataFile)
    LLMC_RETURN_IF_ERROR(dataFile->commit());
  return file->commit();
}

} // namespace llmc
