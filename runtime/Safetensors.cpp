// The header is parsed without exceptions and bounded before it is read; every number of it is checked before it is
// used.
#include "runtime/Safetensors.h"

#include "runtime/PlanCheck.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace llmc {

namespace {
using nlohmann::json;
constexpr const char *kTypeNames[] = {"F32", "BF16", "F16", "F64", "I64", "I32", "I8", "U8", "BOOL"};
/// The reference implementation's limit.
constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr int kMaxJsonDepth = 8;
} // namespace

const char *safetensorsTypeName(ElementType type) { return kTypeNames[static_cast<size_t>(type)]; }

SafetensorsFile::SafetensorsFile(SafetensorsFile &&other) noexcept
    : filePath(std::move(other.filePath)), mapping(std::exchange(other.mapping, nullptr)),
      mappedBytes(other.mappedBytes), views(std::move(other.views)) {}

SafetensorsFile &SafetensorsFile::operator=(SafetensorsFile &&other) noexcept {
  std::swap(filePath, other.filePath);
  std::swap(mapping, other.mapping);
  std::swap(mappedBytes, other.mappedBytes);
  std::swap(views, other.views);
  return *this;
}

SafetensorsFile::~SafetensorsFile() {
  if (mapping)
    munmap(mapping, mappedBytes);
}

Status SafetensorsFile::map() {
  // Without O_NONBLOCK a pipe would wait for its writer; on a file it changes nothing.
  int descriptor = ::open(filePath.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0)
    return Error{std::string("cannot be opened: ") + std::strerror(errno)};
  struct stat info;
  bool isFile = fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode);
  if (isFile && info.st_size >= 8) {
    mappedBytes = static_cast<size_t>(info.st_size);
    void *address = mmap(nullptr, mappedBytes, PROT_READ, MAP_PRIVATE, descriptor, 0);
    mapping = address == MAP_FAILED ? nullptr : address;
  }
  close(descriptor);
  if (!isFile)
    return Error{"not a regular file"};
  if (info.st_size < 8)
    return Error{fmt::format("not a safetensors file: {} bytes", info.st_size)};
  return mapping ? Status() : Error{std::string("cannot be mapped: ") + std::strerror(errno)};
}

static Result<ElementType> readType(const json &tensor) {
  auto found = tensor.find("dtype");
  if (found == tensor.end() || !found->is_string())
    return Error{"has no dtype"};
  const std::string &name = found->get_ref<const std::string &>();
  for (size_t i = 0; i < std::size(kTypeNames); ++i)
    if (name == kTypeNames[i])
      return static_cast<ElementType>(i);
  return Error{fmt::format("has type {}, which is not supported", name)};
}

/// A list of non-negative integers.
static std::optional<std::vector<int64_t>> readIntegers(const json &tensor, const char *key) {
  auto found = tensor.find(key);
  if (found == tensor.end() || !found->is_array() || found->size() > 64)
    return std::nullopt;
  std::vector<int64_t> values;
  for (const json &value : *found) {
    if (!value.is_number_unsigned() || value.get<uint64_t>() > kMaxSpaceBytes)
      return std::nullopt;
    values.push_back(static_cast<int64_t>(value.get<uint64_t>()));
  }
  return values;
}

static Result<SafetensorsView> readTensor(const json &tensor, std::span<const std::byte> data) {
  if (!tensor.is_object())
    return Error{"is no object"};
  SafetensorsView view;
  Result<ElementType> type = readType(tensor);
  LLMC_RETURN_IF_ERROR(type);
  view.type = *type;
  auto shape = readIntegers(tensor, "shape"), offsets = readIntegers(tensor, "data_offsets");
  if (!shape || !offsets || offsets->size() != 2)
    return Error{"has no valid shape or data_offsets"};
  view.shape = *shape;
  std::optional<uint64_t> elements = numElements(view.shape);
  uint64_t begin = static_cast<uint64_t>((*offsets)[0]), end = static_cast<uint64_t>((*offsets)[1]);
  if (begin > end || end > data.size())
    return Error{fmt::format("lies at bytes {} to {}, outside of {} bytes of data", begin, end, data.size())};
  if (!elements || *elements * elementBytes(view.type) != end - begin)
    return Error{fmt::format("has {} bytes, its shape and type need another number", end - begin)};
  view.bytes = data.subspan(begin, end - begin);
  return view;
}

/// Tensors cover the data exactly: no overlap, no hole, nothing left over.
static Status checkCover(const std::map<std::string, SafetensorsView> &views, std::span<const std::byte> data) {
  std::vector<std::span<const std::byte>> ranges;
  ranges.reserve(views.size());
  for (const auto &[name, view] : views)
    ranges.push_back(view.bytes);
  std::sort(ranges.begin(), ranges.end(),
            [](auto a, auto b) { return std::pair(a.data(), a.size()) < std::pair(b.data(), b.size()); });
  const std::byte *end = data.data();
  for (auto range : ranges) {
    if (range.data() != end)
      return Error{"tensors overlap or leave a hole"};
    end += range.size();
  }
  return end == data.data() + data.size() ? Status() : Error{"bytes are left over after the last tensor"};
}

Status SafetensorsFile::parse() {
  uint64_t headerBytes = 0;
  std::span file(static_cast<const std::byte *>(mapping), mappedBytes);
  std::memcpy(&headerBytes, file.data(), sizeof(headerBytes));
  if (headerBytes > kMaxHeaderBytes || headerBytes > mappedBytes - sizeof(headerBytes))
    return Error{fmt::format("not a safetensors file, or truncated: a header of {} bytes in a file of {}", headerBytes,
                             mappedBytes)};
  std::span<const std::byte> data = file.subspan(sizeof(headerBytes) + headerBytes);
  const char *text = reinterpret_cast<const char *>(file.data() + sizeof(headerBytes));
  // Depth is bounded while parsing: a header of brackets must not overflow the stack when it is destroyed.
  bool isTooDeep = false;
  json header = json::parse(
      text, text + headerBytes,
      [&](int depth, json::parse_event_t, json &) {
        isTooDeep = isTooDeep || depth > kMaxJsonDepth;
        return !isTooDeep;
      },
      false);
  if (isTooDeep || !header.is_object())
    return Error{"its header is no JSON object"};
  for (const auto &[name, tensor] : header.items()) {
    if (name == "__metadata__")
      continue;
    Result<SafetensorsView> view = readTensor(tensor, data);
    if (!view)
      return inContext(fmt::format("tensor '{}'", name), view.error());
    views.emplace(name, std::move(*view));
  }
  return checkCover(views, data);
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  SafetensorsFile file;
  file.filePath = path;
  for (auto step : {&SafetensorsFile::map, &SafetensorsFile::parse})
    if (Status status = (file.*step)(); !status)
      return inContext(path, status.error());
  return file;
}

Result<SafetensorsView> SafetensorsFile::find(const std::string &name) const {
  auto found = views.find(name);
  if (found != views.end())
    return found->second;
  std::string names;
  for (const auto &[other, view] : views) {
    if (names.size() > 200) {
      names += ", ...";
      break;
    }
    names += (names.empty() ? "" : ", ") + other;
  }
  return Error{fmt::format("has no tensor '{}'; it has: {}", name, views.empty() ? "none" : names)};
}

Result<SafetensorsWriter> SafetensorsWriter::create(const std::string &path, std::span<const SafetensorsInfo> tensors) {
  nlohmann::ordered_json header;
  header["__metadata__"] = {{"format", "pt"}};
  uint64_t end = 0;
  for (const SafetensorsInfo &tensor : tensors) {
    uint64_t begin = end;
    std::optional<uint64_t> elements = numElements(tensor.shape);
    assert(elements && "a tensor of a checked plan");
    end += *elements * elementBytes(tensor.type);
    header[tensor.name] = {
        {"dtype", safetensorsTypeName(tensor.type)}, {"shape", tensor.shape}, {"data_offsets", {begin, end}}};
  }
  // Names come from an ONNX file and may be no UTF-8; the data starts on 8 bytes, as the reference implementation does.
  std::string text = header.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  uint64_t headerBytes = text.size();
  Result<AtomicFile> file = AtomicFile::create(path);
  LLMC_RETURN_IF_ERROR(file);
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(&headerBytes, 1))));
  LLMC_RETURN_IF_ERROR(file->append(std::as_bytes(std::span(text))));
  return SafetensorsWriter(std::move(*file), sizeof(headerBytes) + headerBytes + end);
}

Status SafetensorsWriter::append(std::span<const std::byte> bytes) { return file.append(bytes); }

Status SafetensorsWriter::commit() {
  if (file.size() != expectedEnd)
    return Error{fmt::format("{}: {} bytes written, expected {}", file.path(), file.size(), expectedEnd)};
  return file.commit();
}

} // namespace llmc
